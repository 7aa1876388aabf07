"""One look for every picture: a colour and a dash for each warmup, and three files a figure: SVG, PNG, CSV."""

import dataclasses
import io
import pathlib
from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trainers.engine.files import atomic_file

SETTINGS: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "font.size": 9.5,
    "grid.color": "#E3E3E3",
    "legend.frameon": False,
    "lines.linewidth": 2,
    "svg.hashsalt": "tfwarmup",  # the same file at every run
}


@dataclasses.dataclass(frozen=True)
class Style:
    """How a warmup looks wherever it is drawn. Colours of one picture differ in lightness too, and dashes help."""

    label: str
    colour: str
    dash: str


STYLES = {
    "none": Style("No warmup", "#8A8A8A", "-."),
    "linear": Style("Linear", "#56B4E9", "-"),
    "exponential": Style("Exponential", "#E69F00", "--"),
    "untuned_linear": Style("Untuned linear", "#0072B2", "-"),
    "untuned_exponential": Style("Untuned exponential", "#D55E00", "--"),
    "radam": Style("RAdam", "#1B1B1B", ":"),
}
# RAdam with another rule for its first four steps, as a sweep names it.
VARIANTS = {
    "radam_nothing": Style("RAdam, nothing first", "#CC79A7", "-."),
    "radam_constant_adam": Style("RAdam, constant Adam first", "#009E73", "--"),
    "radam_linear_adam": Style("RAdam, linear Adam first", "#56B4E9", "-"),
}
# What the paper compares.
METHODS = ("untuned_linear", "untuned_exponential", "radam")
# What belongs to no warmup: a run of one's own, a simulation without one.
PLAIN = "#0B6E4F"


def style_of(method: str) -> Style:
    """The look of anything that a sweep may compare; a name that nobody knows has one too."""
    return {**STYLES, **VARIANTS}.get(method, Style(method, "#7A4FA3", "-"))


# Decorates what draws a figure: titles and legends read the settings when they are made.
in_one_look = matplotlib.rc_context(SETTINGS)


def new_figure(columns: int = 1, width: float = 7.0, height: float = 3.4) -> tuple[Figure, list[Axes]]:
    """A figure with its axes side by side."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(np.ravel(figure.subplots(1, columns)))


def save(folder: pathlib.Path, name: str, figure: Figure, numbers: Mapping[str, Any]) -> None:
    """Writes `name`.csv with the numbers behind a figure, and the figure as `name`.svg and `name`.png."""
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / f"{name}.csv", numbers)
    _write(folder / f"{name}.svg", figure, format="svg", metadata={"Date": None})
    _write(folder / f"{name}.png", figure, format="png", dpi=150, metadata={"Software": None})


def write_csv(path: pathlib.Path, columns: Mapping[str, Any]) -> None:
    """A header and a row for each entry of the columns; a missing number is an empty cell."""
    lines = [",".join(columns)]
    for row in zip(*columns.values(), strict=True):
        lines.append(",".join(_cell(value) for value in row))
    with atomic_file(path) as file:
        file.write("\n".join([*lines, ""]).encode())


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _write(path: pathlib.Path, figure: Figure, **options: Any) -> None:
    content = io.BytesIO()
    figure.savefig(content, **options)
    with atomic_file(path) as file:
        file.write(content.getvalue())
