"""Learning curves: of the methods in each cell of a sweep, with a thin line for each seed, and of single runs."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from trainers.figures.inline import MARGINS, SIZE, TITLED, Chart, chart
from trainers.figures.look import PLAIN
from trainers.results.formats import rounded, upper_first, value_text
from trainers.results.methods import STYLES, Style, label_of, style_of
from trainers.results.results_csv import place
from trainers.results.runs import Records, Sweep, Trial
from trainers.results.table import METHOD, Row

LOOKS = [Style("", PLAIN, "-"), *list(STYLES.values())[1:]]  # of single runs, again and again
SHARING = 3  # charts of single runs, about
LARGEST = 1e100  # what diverged says nothing, and differences of larger numbers overflow
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


def cell_charts(name: str, sweep: Sweep) -> dict[str, list[Chart]]:
    """Training loss and objective over updates, for each cell of the table."""
    cells: dict[str, list[Trial]] = {}
    for trial in sorted(sweep.trials, key=lambda trial: [place(value) for _, value in trial.row]):
        cells.setdefault(cell_label(trial.row), []).append(trial)
    order = list((sweep.grid or {}).get(METHOD, []))
    metrics = [("loss", "training loss", 1.0), (sweep.objective.metric, sweep.objective.label, sweep.objective.factor)]
    found = {}
    for number, (cell, trials) in enumerate(cells.items()):
        drawn = [(label, cell_curves(trials, metric, factor, order)) for metric, label, factor in metrics]
        found[cell] = [
            learning_chart(f"{name}-{number}-{metric}", label, curves, len(metrics) * len(cells))
            for metric, (label, curves) in enumerate(drawn)
            if any(len(curve.points) > 1 for curve in curves)  # else the table suffices
        ]
    return found


def best_cell(sweep: Sweep) -> str:
    """The label of the cell to show first."""
    table = sweep.table()
    best = table.best()
    return cell_label(tuple(zip(table.row_names, best[0], strict=True))) if best else ""


def cell_label(row: Row) -> str:
    return ", ".join(f"{label_of(name)} {value_text(value)}" for name, value in row)


def cell_curves(trials: Sequence[Trial], metric: str, factor: float, order: Sequence[str]) -> list[LearningCurve]:
    """For each method, the mean over its finished seeds, and the curves of all seeds."""
    shown = []
    for method in sorted({trial.method for trial in trials}, key=lambda name: place(name, order)):
        runs = [(each, points(each.records, metric, factor)) for each in trials if each.method == method]
        curves = {f"seed {trial.seed}": curve for trial, curve in runs if curve}
        done = [curve for trial, curve in runs if curve and trial.status == "done"]
        bold = mean_curve(done) if done else next(iter(curves.values()), [])
        seeds = curves if len(curves) > 1 else {}
        if bold:
            shown.append(LearningCurve(style_of(method), bold, seeds))
    return shown


def points(records: Records, metric: str, factor: float = 1.0) -> Points:
    """A metric over updates, wherever it was recorded; a gap where no axis could show it."""
    recorded = [record for record in records if metric in record and record.get("updates") is not None]
    return thinned([(float(record["updates"]), _drawn(record[metric], factor)) for record in recorded])


def _drawn(value: float | None, factor: float) -> float | None:
    return value * factor if value is not None and abs(value * factor) < LARGEST else None


def mean_curve(curves: Sequence[Points]) -> Points:
    """The mean wherever every curve has a value.

    >>> mean_curve([[(1, 2.0), (2, 4.0)], [(1, 4.0)]])
    [(1, 3.0)]
    """
    tables = [{update: value for update, value in curve if value is not None} for curve in curves]
    shared = [update for update in tables[0] if all(update in table for table in tables)]
    return [(update, math.fsum(table[update] for table in tables) / len(tables)) for update in shared]


def run_charts(name: str, runs: Mapping[str, Mapping[str, Points]]) -> list[Chart]:
    """Loss, applied learning rate and validation metrics of runs, from the points of each metric of each run."""
    charts = []
    for number, metric in enumerate(_metrics(runs)):
        curves = [
            LearningCurve(dataclasses.replace(look, label=run), metrics[metric])
            for look, (run, metrics) in zip(itertools.cycle(LOOKS), runs.items(), strict=False)
            if len(metrics.get(metric, ())) > 1  # a single value is in the table of results
        ]
        if curves:
            rate = metric == "learning_rate"
            label = "learning rate, as applied" if rate else metric.replace("val_", "validation ")
            charts.append(learning_chart(f"{name}-{number}", label, curves, SHARING, linear=rate))
    return charts


def _metrics(runs: Mapping[str, Mapping[str, Points]]) -> list[str]:
    """The loss first, the validation loss last."""
    names = dict.fromkeys(metric for metrics in runs.values() for metric in metrics)
    return sorted(names, key=lambda name: (name != "loss", name != "learning_rate", name == "val_loss"))


def run_points(records: Records) -> dict[str, Points]:
    """The points of each metric that is drawn."""
    names = dict.fromkeys(name for record in records for name in record if name.startswith("val_"))
    return {name: points(records, name) for name in ("loss", "learning_rate", *names)}


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
