"""What a section of the page consists of; page.html renders each `kind`."""

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

from trainers.figures.inline import Chart
from trainers.reports.claims import Claim, Holds, Kind
from trainers.reports.page_tables import PageTable


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
    table: PageTable


@dataclasses.dataclass(frozen=True)
class Charts:
    """Charts side by side, and a note on how to read them; with a `summary`, they can be folded."""

    kind: ClassVar[str] = "charts"
    charts: Sequence[Chart]
    note: str = ""
    summary: str = ""
    unfolded: bool = False


@dataclasses.dataclass(frozen=True)
class Claims:
    kind: ClassVar[str] = "claims"
    claims: Sequence[Claim]
    table: PageTable

    @property
    def summary(self) -> str:
        """The number of claims per verdict, separately for each kind."""
        return ". ".join(self._count(kind) for kind in Kind if any(claim.kind is kind for claim in self.claims)) + "."

    def _count(self, kind: Kind) -> str:
        counts = collections.Counter(claim.verdict for claim in self.claims if claim.kind is kind)
        results = ", ".join(f"{counts[verdict]} {verdict.word}" for verdict in Holds if counts[verdict])
        return f"Claims about {kind.value}: {results}"


@dataclasses.dataclass(frozen=True)
class WideAndNarrow:
    """A figure that a phone shows in another layout."""

    kind: ClassVar[str] = "wide_and_narrow"
    wide: Chart
    narrow: Chart


@dataclasses.dataclass(frozen=True)
class Factors:
    """The inputs for beta_2 and the length of a run, with a chart and numbers that slider.js computes from them."""

    kind: ClassVar[str] = "factors"
    chart: Chart


@dataclasses.dataclass(frozen=True)
class Configs:
    """The full configuration of each folder, collapsed at first."""

    kind: ClassVar[str] = "configs"
    configs: Mapping[str, str]


Block = Text | Points | TableBlock | Charts | Claims | WideAndNarrow | Factors | Configs


@dataclasses.dataclass(frozen=True)
class Section:
    """A section of the page; `name` is its anchor."""

    name: str
    title: str
    blocks: Sequence[Block]
