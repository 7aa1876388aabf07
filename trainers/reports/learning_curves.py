"""Learning curves from the records of runs: of the cells of a sweep, and of runs side by side."""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

from trainers.figures.curves import LearningCurve, learning_chart, thinned
from trainers.figures.inline import Chart
from trainers.figures.look import PLAIN
from trainers.reports.page_tables import HEADINGS
from trainers.results.formats import value_text
from trainers.results.methods import STYLES, Style, style_of
from trainers.results.results_csv import place
from trainers.results.runs import Records, Sweep, Trial
from trainers.results.table import METHOD, Row

LOOKS = [Style("", PLAIN, "-"), *list(STYLES.values())[1:]]  # of single runs, again and again
SHARING = 3  # charts of single runs, about
LARGEST = 1e100  # what diverged says nothing, and differences of larger numbers overflow

Points = Sequence[tuple[float, float | None]]


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
    return ", ".join(f"{HEADINGS.get(name, name)} {value_text(value)}" for name, value in row)


def cell_curves(trials: Sequence[Trial], metric: str, factor: float, order: Sequence[str]) -> list[LearningCurve]:
    """For each method, the mean over its finished seeds, and the curves of all seeds."""
    shown = []
    for method in sorted({trial.method for trial in trials}, key=lambda name: place(name, order)):
        runs = {trial.seed: points(trial.records, metric, factor) for trial in trials if trial.method == method}
        runs = {seed: curve for seed, curve in runs.items() if curve}
        done = [runs[t.seed] for t in trials if t.method == method and t.status == "done" and t.seed in runs]
        bold = mean_curve(done) if done else next(iter(runs.values()), [])
        seeds = {f"seed {seed}": curve for seed, curve in runs.items()} if len(runs) > 1 else {}
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
