"""Charts as plain dictionaries, which charts.js draws as SVG in the style of the figures.

The page does not use Plotly: its Python package ships only the full library, 4.8 MB, and the charts here need no more
than lines, bands and two kinds of axes.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from trainers.figures.look import PLAIN
from trainers.reports.palette import DASHES, variable
from trainers.results.methods import style_of

MOST_POINTS = 400  # per curve: enough for the width of a chart
MOST_OF_A_SEED = 100  # per curve of a single seed: there may be hundreds of seeds
FLAT = 10.0  # values that span more than this factor look flat on a linear axis

Axis = dict[str, Any]
Curve = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Chart:
    """One chart, or one for each of several choices.

    Args:
        name: A name that is unique on the page; also the name of its files.
        title: Shown above the chart, and read by screen readers.
        x: The horizontal axis.
        y: The vertical axis.
        choices: The curves of each choice; a single choice needs no name.
        lines: Reference lines: the `y` and the `label` of each.
    """

    name: str
    title: str
    x: Axis
    y: Axis
    choices: Mapping[str, Sequence[Curve]]
    lines: Sequence[Mapping[str, Any]] = ()

    def document(self) -> dict[str, Any]:
        """Returns the dictionary that charts.js draws."""
        return {
            "title": self.title,
            "x": self.x,
            "y": self.y,
            "lines": list(self.lines),
            "choices": {name: list(curves) for name, curves in self.choices.items()},
        }


def axis(title: str, *, log: bool = False, **options: Any) -> Axis:
    """An axis. `zero` makes it begin at 0, `range` fixes both ends, and `ticks` are pairs of a value and its label."""
    return {"title": title, "log": log, **options}


def value_axis(title: str, choices: Mapping[str, Sequence[Curve]]) -> Axis:
    """A vertical axis for some curves: logarithmic where a linear one would be flat."""
    values = [y for curves in choices.values() for curve in curves for y in curve["y"] if y is not None]
    return axis(title, log=bool(values) and min(values) > 0 and max(values) > FLAT * min(values))


def line(method: str, x: Sequence[Any], y: Sequence[Any], **options: Any) -> Curve:
    """The curve of a method, in its colour and dash."""
    style = style_of(method)
    return _curve(x, y, style.label, variable(style.colour), dash=DASHES[style.dash], **options)


def thin_line(method: str, x: Sequence[Any], y: Sequence[Any], part: str) -> Curve:
    """The curve of one seed, drawn behind the mean; `part` names the seed."""
    return {**line(method, x, y), "thin": True, "part": part}


def plain_line(label: str, x: Sequence[Any], y: Sequence[Any], **options: Any) -> Curve:
    """A curve that belongs to no method."""
    return _curve(x, y, label, variable(PLAIN), **options)


def band(label: str, x: Sequence[Any], low: Sequence[Any], high: Sequence[Any], opacity: float) -> Curve:
    """The area between two curves."""
    return _curve(x, high, label, variable(PLAIN), low=[_number(value) for value in low], opacity=opacity)


def _curve(x: Sequence[Any], y: Sequence[Any], label: str, colour: str, **options: Any) -> Curve:
    return {"name": label, "x": list(x), "y": [_number(value) for value in y], "colour": colour, **options}


def thinned(points: Sequence[Any], most: int = MOST_POINTS) -> list[Any]:
    """Returns at most `most` points, evenly spaced, including the first and the last.

    >>> len(thinned(range(10_000))), thinned(range(10_000))[-1]
    (400, 9999)
    """
    if len(points) <= most:
        return list(points)
    return [points[round(place * (len(points) - 1) / (most - 1))] for place in range(most)]


def _number(value: float | None) -> float | None:
    """Rounds to six digits, more than any screen shows; None, a gap, if not finite."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
