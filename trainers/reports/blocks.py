"""The blocks that make up a section of the page; page.html renders each `kind`."""

import base64
import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

from trainers.reports.charts import Chart
from trainers.reports.claims import Claim, Holds, Kind
from trainers.reports.tables import Shown


@dataclasses.dataclass(frozen=True)
class Text:
    kind: ClassVar[str] = "text"
    text: str
    warns: bool = False


@dataclasses.dataclass(frozen=True)
class Points:
    kind: ClassVar[str] = "points"
    items: Sequence[str]


@dataclasses.dataclass(frozen=True)
class TableBlock:
    kind: ClassVar[str] = "table"
    table: Shown


@dataclasses.dataclass(frozen=True)
class Charts:
    """Charts side by side with linked legends, and a note on how to read them.

    If there are several choices, `chosen` is shown first.
    """

    kind: ClassVar[str] = "charts"
    group: str
    charts: Sequence[Chart]
    note: str = ""
    chosen: str = ""

    @property
    def choices(self) -> list[str]:
        return list(dict.fromkeys(name for chart in self.charts for name in chart.choices))


@dataclasses.dataclass(frozen=True)
class Claims:
    kind: ClassVar[str] = "claims"
    claims: Sequence[Claim]
    table: Shown

    @property
    def summary(self) -> str:
        """The number of claims per verdict, separately for each kind."""
        return ". ".join(self._count(kind) for kind in Kind if any(claim.kind is kind for claim in self.claims)) + "."

    def _count(self, kind: Kind) -> str:
        counts = collections.Counter(claim.verdict for claim in self.claims if claim.kind is kind)
        results = ", ".join(f"{counts[verdict]} {verdict.word}" for verdict in Holds if counts[verdict])
        return f"Claims about {kind.value}: {results}"


@dataclasses.dataclass(frozen=True)
class Picture:
    """A figure embedded in the page, with a narrow version for phones; `alt` describes it in words."""

    kind: ClassVar[str] = "picture"
    svg: bytes
    narrow_svg: bytes
    alt: str

    @property
    def address(self) -> str:
        return _data_address(self.svg)

    @property
    def narrow_address(self) -> str:
        return _data_address(self.narrow_svg)


def _data_address(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


@dataclasses.dataclass(frozen=True)
class Factors:
    """The inputs for beta_2 and the length of a run, with numbers that the page computes from them."""

    kind: ClassVar[str] = "factors"


@dataclasses.dataclass(frozen=True)
class Configs:
    """The full configuration of each folder, collapsed at first."""

    kind: ClassVar[str] = "configs"
    configs: Mapping[str, str]


Block = Text | Points | TableBlock | Charts | Claims | Picture | Factors | Configs


@dataclasses.dataclass(frozen=True)
class Section:
    """A section of the page; `name` is its anchor."""

    name: str
    title: str
    blocks: Sequence[Block]
