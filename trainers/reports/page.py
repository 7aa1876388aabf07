"""The page as one self-contained HTML file, with styles, scripts and figures inside; what its sections consist of."""

import base64
import dataclasses
import hashlib
import importlib.resources
from collections.abc import Mapping, Sequence

import jinja2
from markupsafe import Markup

from trainers.figures.inline import Chart
from trainers.results import paper
from trainers.results.methods import DRAWN, style_of

SCRIPTS = ("factors.js", "slider.js")
BETA_2 = 0.999  # that the slider begins with
PRESETS = (0.9, 0.98, 0.99, 0.997, 0.999, 0.9999)  # values of beta_2


class Block:
    """A part of a section; page.html renders each class."""


@dataclasses.dataclass(frozen=True)
class Text(Block):
    text: str
    warns: bool = False


@dataclasses.dataclass(frozen=True)
class Points(Block):
    items: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Charts(Block):
    """Charts side by side, and a note on how to read them; with a `summary`, they can be folded."""

    charts: Sequence[Chart]
    note: str = ""
    summary: str = ""
    unfolded: bool = False


@dataclasses.dataclass(frozen=True)
class WideAndNarrow(Block):
    """A figure that a phone shows in another layout."""

    wide: Chart
    narrow: Chart


@dataclasses.dataclass(frozen=True)
class Factors(Block):
    """The inputs for beta_2 and the length of a run, with a chart and numbers that slider.js computes from them."""

    chart: Chart


@dataclasses.dataclass(frozen=True)
class Configs(Block):
    """The full configuration of each folder, collapsed at first."""

    configs: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Section:
    """A section of the page; `name` is its anchor."""

    name: str
    title: str
    blocks: Sequence[Block]


def make_page(sections: Sequence[Section], title: str) -> str:
    """Returns the whole page as HTML."""
    scripts = [_file(name) for name in SCRIPTS]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_file("page.html")).render(
        title=title,
        introduction=f"The figures, tables and claims of {paper.AUTHORS}, measured again at a small scale.",
        sections=sections,
        css=Markup(_file("page.css")),
        scripts=[Markup(script) for script in scripts],
        allowed=" ".join(f"'sha256-{_digest(script)}'" for script in scripts),
        methods=[(name, style_of(name).label) for name in DRAWN],
        beta_2=BETA_2,
        presets=PRESETS,
    )


def _file(name: str) -> str:
    return importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    """The hash of a script for the page's content security policy, which blocks all other scripts."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
