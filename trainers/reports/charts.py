"""Charts as plain dictionaries for Plotly, in the look of the figures."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from trainers.figures.look import PLAIN, style_of
from trainers.reports.palette import DASHES, translucent

MOST_POINTS = 400  # of a curve: more than a screen has columns for it

Trace = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Chart:
    """One chart, or one for each of several choices.

    Args:
        name: Unique on the page.
        title: What stands above it, and what a screen reader says.
        layout: Plotly's layout, without what all charts share.
        choices: What can be chosen among, with the lines of each; a single one needs no name.
    """

    name: str
    title: str
    layout: Mapping[str, Any]
    choices: Mapping[str, Sequence[Trace]]


def axis(title: str, *, log: bool = False, **options: Any) -> dict[str, Any]:
    # On a logarithmic axis Plotly would label every 2 and 5.
    kind = {"type": "log", "dtick": 1} if log else {}
    return {"title": {"text": title}, "hoverformat": ".4~g", **kind, **options}


def updates_axis(title: str, *, log: bool = False) -> dict[str, Any]:
    return axis(title, log=log, tickformat=",d", hoverformat=",d")


def line(method: str, x: Sequence[Any], y: Sequence[Any], **options: Any) -> Trace:
    """The curve of a method, in its colour and dash; a legend click hides all that is of this method."""
    style = style_of(method)
    return _curve(x, y, style.label, {"color": style.colour, "dash": DASHES[style.dash], "width": 2.5}, **options)


def thin_line(method: str, x: Sequence[Any], y: Sequence[Any]) -> Trace:
    """One seed behind the mean of all."""
    style = style_of(method)
    look = {"color": style.colour, "dash": DASHES[style.dash], "width": 1}
    return _curve(x, y, style.label, look, opacity=0.4, showlegend=False, hoverinfo="skip")


def plain_line(label: str, x: Sequence[Any], y: Sequence[Any], **options: Any) -> Trace:
    """A curve that is of no method."""
    return _curve(x, y, label, {"color": PLAIN, "width": 2.5}, **options)


def band(label: str, x: Sequence[Any], low: Sequence[Any], high: Sequence[Any], opacity: float) -> list[Trace]:
    """The area between two curves."""
    edge = {"color": PLAIN, "width": 0}
    return [
        _curve(x, low, label, edge, showlegend=False, hoverinfo="skip"),
        _curve(x, high, label, edge, fill="tonexty", fillcolor=translucent(PLAIN, opacity), hoverinfo="skip"),
    ]


def _curve(x: Sequence[Any], y: Sequence[Any], label: str, look: Trace, **options: Any) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(x),
        "y": [_number(value) for value in y],
        "name": label,
        "legendgroup": label,
        "line": look,
        **options,
    }


def thinned(points: Sequence[Any]) -> list[Any]:
    """At most `MOST_POINTS` of them, evenly, the first and the last among them.

    >>> len(thinned(range(10_000))), thinned(range(10_000))[-1]
    (400, 9999)
    """
    if len(points) <= MOST_POINTS:
        return list(points)
    return [points[round(place * (len(points) - 1) / (MOST_POINTS - 1))] for place in range(MOST_POINTS)]


def _number(value: float | None) -> float | None:
    """Eight digits are more than any screen shows; what is not finite is a gap."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.8g}")
