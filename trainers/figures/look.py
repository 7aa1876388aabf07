"""The common style of all figures: a colour and a dash for each warmup, and four files: SVG, PNG, PDF and CSV."""

import csv
import io
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trainers.system.files import atomic_file

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
    "pdf.fonttype": 42,
    "svg.hashsalt": "tfwarmup",  # so that every run writes the same file
}
# For a single column of a paper, which is 3.3 inches wide: no letter is smaller than 6 points.
COLUMN_WIDTH = 3.3
COLUMN: Any = {
    **SETTINGS,
    "axes.titlesize": 7.5,
    "font.size": 7,
    "legend.fontsize": 6.5,
    "lines.linewidth": 1.3,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
}
CAPTION = "#555555"
REFERENCE: Any = {"color": "#1B1B1B", "linewidth": 1, "linestyle": ":"}
MOST_POINTS = 300  # per curve on a logarithmic axis
# The colour of what belongs to no warmup: a single run, or a simulation without warmup.
PLAIN = "#0B6E4F"


# Removes dates and versions, which would differ from run to run.
_METADATA: Any = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None, "Producer": None}}
# Decorates functions that draw a figure, because titles and legends read the settings when they are created.
in_one_look = matplotlib.rc_context(SETTINGS)


def draw_and_save(
    folder: pathlib.Path,
    name: str,
    panels: Sequence[Callable[[Axes], None]],
    numbers: Mapping[str, Any],
    *,
    caption: str,
    width: float = 7.0,
    height: float = 3.4,
) -> None:
    """Draws a figure twice: panels side by side for a screen, one below the other for the column of a paper.

    Args:
        folder: Where the files go.
        name: Name of the files, without a suffix.
        panels: Each draws into the axes of a panel. The page draws them one by one, see `inline.py`.
        numbers: The columns of the CSV file.
        caption: What the figure shows, with the number of runs.
        width: Width of the figure for the screen, in inches.
        height: Height of a row of panels, in inches.
    """
    count, figures = len(panels), []
    for look, shape, size, letters in (
        (SETTINGS, (1, count), (width, height), 8),
        (COLUMN, (count, 1), (COLUMN_WIDTH, 2.2 * count + 0.2), 6),
    ):
        with matplotlib.rc_context(look):
            figure = Figure(figsize=size, layout="constrained")
            for draw, axes in zip(panels, np.ravel(figure.subplots(*shape)), strict=True):
                draw(axes)
            figure.supxlabel(caption, x=0.01, ha="left", fontsize=letters, color=CAPTION)
        figures.append(figure)
    with matplotlib.rc_context(SETTINGS):
        save(folder, name, figures[0], numbers, figures[1])


def save(
    folder: pathlib.Path, name: str, figure: Figure, numbers: Mapping[str, Any], column: Figure | None = None
) -> None:
    """Writes a figure as `name`.svg, .png and .pdf, which shows `column` if given, and its numbers as .csv."""
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / f"{name}.csv", numbers)
    for kind, drawn in (("svg", figure), ("png", figure), ("pdf", column or figure)):
        with atomic_file(folder / f"{name}.{kind}") as file:
            file.write(picture(drawn, kind))


def picture(figure: Figure, kind: str) -> bytes:
    """The bytes of a figure in a file format, the same at every run."""
    content = io.BytesIO()
    figure.savefig(content, format=kind, dpi=150, metadata=_METADATA[kind])
    return content.getvalue()


def reference_line(axes: Axes, label: str, *, y: float | None = None, x: float | None = None) -> None:
    """Draws a dotted line at one of the paper's numbers, or two lines with one label."""
    if y is not None:
        axes.axhline(y, label=label, **REFERENCE)
    if x is not None:
        axes.axvline(x, label=label if y is None else None, **REFERENCE)


def log_spaced(columns: Mapping[str, Any], most: int = MOST_POINTS) -> dict[str, np.ndarray]:
    """Long columns, reduced to rows that are evenly spaced in log t, including the first and the last.

    >>> log_spaced({"t": range(1, 1001)}, 7)["t"].tolist()
    [1, 3, 10, 32, 100, 316, 1000]
    """
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    t = arrays["t"]
    if len(t) <= most:
        return arrays
    places = np.unique(np.searchsorted(t, np.round(np.geomspace(t[0], t[-1], most))))
    return {name: values[places] for name, values in arrays.items()}


def write_csv(path: pathlib.Path, columns: Mapping[str, Any]) -> None:
    """Writes columns with a header; a missing number is an empty cell."""
    text = io.StringIO()
    rows = ([_cell(value) for value in row] for row in zip(*columns.values(), strict=True))
    csv.writer(text, lineterminator="\n").writerows([list(columns), *rows])
    with atomic_file(path) as file:
        file.write(text.getvalue().encode())


def _cell(value: Any) -> str:
    missing = value is None or value != value
    return "" if missing else f"{value:.9g}" if isinstance(value, float) else str(value)
