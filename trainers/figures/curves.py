"""Learning curves: of the methods of a sweep, with a thin line for each seed, and of single runs."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from trainers.figures.inline import MARGINS, SIZE, TITLED, Chart, chart
from trainers.results.formats import rounded, upper_first
from trainers.results.methods import Style

FLAT = 10.0  # values that span more than this factor look flat on a linear axis
LEAST_POINTS, MOST_POINTS = 16, 300  # per curve
MOST_OF_A_FIGURE = 10_000  # points: where there are more curves, each has fewer
MOST_IN_LEGEND = 8
IN_A_ROW, ROW = 2, 0.2  # names in a row of the legend, and its height in inches
MARKED = 8  # points, below which each is marked, because a single one draws no line

Points = Sequence[tuple[float, float | None]]


@dataclasses.dataclass(frozen=True)
class LearningCurve:
    """A metric over updates: of a run, or the mean of a method with the curves of its seeds."""

    style: Style
    points: Points
    seeds: Mapping[str, Points] = dataclasses.field(default_factory=dict)


def learning_chart(name: str, metric: str, curves: Sequence[LearningCurve], of: int = 1, linear: bool = False) -> Chart:
    """Draws curves for the page.

    Args:
        name: A name that is unique on the page.
        metric: What the vertical axis shows.
        curves: What is drawn.
        of: The number of such charts, which share the points that a page has room for.
        linear: Whether the vertical axis is linear whatever the values.
    """
    named = len(curves) if 1 < len(curves) <= MOST_IN_LEGEND else 0
    room = ROW * -(-named // IN_A_ROW)
    left, right, bottom, top = MARGINS
    draw = functools.partial(_draw, metric, curves, of, named, linear)
    title = upper_first(metric)
    return chart(name, draw, title, (SIZE[0], SIZE[1] + room), (left, right, bottom, top + room))


def _draw(metric: str, curves: Sequence[LearningCurve], of: int, named: int, linear: bool, axes: Axes) -> None:
    most = MOST_OF_A_FIGURE // (of * max(len(curves), 1))
    for curve in curves:
        for seed, points in curve.seeds.items():
            few = thinned(points, most // max(len(curve.seeds), 1))
            label = f"{TITLED}{curve.style.label}, {seed}"
            # There may be hundreds, and `axes.plot` takes three times as long.
            axes.add_line(Line2D(*_columns(few), color=curve.style.colour, linewidth=0.6, label=label))
    for curve in curves:
        points = thinned(curve.points, most)
        label = curve.style.label
        if len(curves) > MOST_IN_LEGEND:  # too many to show values of each under the pointer
            label = f"{TITLED}{label}: {_last(points)}"
        axes.plot(
            *_columns(points),
            curve.style.dash,
            color=curve.style.colour,
            marker="o" if len(points) < MARKED else "",
            markersize=5,
            label=label,
            linewidth=2 if len(curves) <= MOST_IN_LEGEND else 0.8,
        )
    axes.set(xlabel="update", ylabel=metric)
    axes.xaxis.set_major_formatter("{x:,g}")
    _scale(axes, [value for curve in curves for _, value in curve.points if value is not None], linear)
    if named:
        axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=IN_A_ROW, borderaxespad=0)


def _last(points: Points) -> str:
    return next((f"{rounded(y)} at {rounded(x)}" for x, y in reversed(points) if y is not None), "no values")


def _scale(axes: Axes, values: Sequence[float], linear: bool) -> None:
    """A logarithmic axis where a linear one would be flat, unless it must be linear."""
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=(1, 2, 5, 10)))
    if not linear and values and min(values) > 0 and max(values) > FLAT * min(values):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(values) < FLAT**2 * min(values) else (1,)))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter("{x:,g}")


def thinned(points: Points, most: int = MOST_POINTS) -> Points:
    """At most `most` points, but at least 16, evenly spaced, including the first and the last.

    >>> len(thinned([(t, 0.0) for t in range(10_000)])), thinned([(t, 0.0) for t in range(10_000)], 1)[-1]
    (300, (9999, 0.0))
    """
    most = min(max(most, LEAST_POINTS), MOST_POINTS)
    if len(points) <= most:
        return points
    return [points[round(place * (len(points) - 1) / (most - 1))] for place in range(most)]


def _columns(points: Points) -> tuple[np.ndarray, np.ndarray]:
    return np.array([x for x, _ in points], float), np.array([y for _, y in points], float)
