"""Training curves: of the runs of a sweep, and of single runs."""

import math
from collections.abc import Sequence
from typing import Any

from trainers.reports.charts import MOST_OF_A_SEED, Chart, Curve, axis, line, plain_line, thin_line, thinned, value_axis
from trainers.reports.tables import HEADINGS
from trainers.reports.words import capitalised
from trainers.results.formats import value_text
from trainers.results.results_csv import place
from trainers.results.runs import Records, Sweep, Training, Trial
from trainers.results.table import METHOD, Row

Points = list[tuple[float, float | None]]


def sweep_charts(name: str, sweep: Sweep) -> list[Chart]:
    """Training loss and objective over updates, for each cell of the table."""
    cells: dict[str, list[Trial]] = {}
    for trial in sorted(sweep.trials, key=lambda trial: [place(value) for _, value in trial.row]):
        cells.setdefault(cell_label(trial.row), []).append(trial)
    order = list((sweep.grid or {}).get(METHOD, []))
    shown = [("loss", "training loss", 1.0), (sweep.objective.metric, sweep.objective.label, sweep.objective.factor)]
    charts = []
    for number, (metric, label, factor) in enumerate(shown):
        choices = {cell: _cell_lines(trials, metric, factor, order) for cell, trials in cells.items()}
        if any(len(curve["x"]) > 1 for curves in choices.values() for curve in curves):  # else the table suffices
            charts.append(
                Chart(f"{name}-{number}", capitalised(label), axis("update"), value_axis(label, choices), choices)
            )
    return charts


def best_cell(sweep: Sweep) -> str:
    """The label of the cell to show first."""
    table = sweep.table()
    best = table.best()
    return cell_label(tuple(zip(table.row_names, best[0], strict=True))) if best else ""


def cell_label(row: Row) -> str:
    return ", ".join(f"{HEADINGS.get(name, name)} {value_text(value)}" for name, value in row)


def _cell_lines(trials: Sequence[Trial], metric: str, factor: float, order: Sequence[str]) -> list[Curve]:
    """For each method, the mean over its finished seeds, drawn over the curves of all seeds."""
    shown: list[Curve] = []
    for method in sorted({trial.method for trial in trials}, key=lambda name: place(name, order)):
        runs = {trial.seed: points(trial.records, metric, factor) for trial in trials if trial.method == method}
        runs = {seed: curve for seed, curve in runs.items() if curve}
        done = [runs[t.seed] for t in trials if t.method == method and t.status == "done" and t.seed in runs]
        bold = mean_curve(done) if done else next(iter(runs.values()), [])
        if len(runs) > 1:
            for seed, curve in runs.items():
                shown.append(thin_line(method, *_columns(thinned(curve, MOST_OF_A_SEED)), f"seed {seed}"))
        if bold:
            shown.append(line(method, *_columns(bold), **_marks(bold)))
    return shown


def _marks(curve: Points) -> dict[str, Any]:
    """Marks the points of a short curve, because a single point draws no line."""
    return {"marks": True} if len(curve) < 8 else {}


def points(records: Records, metric: str, factor: float = 1.0) -> Points:
    """A metric over updates, wherever it was recorded."""
    found = [(record["updates"], record[metric]) for record in records if metric in record and "updates" in record]
    return thinned([(update, None if value is None else value * factor) for update, value in found])


def mean_curve(curves: Sequence[Points]) -> Points:
    """The mean wherever every curve has a value.

    >>> mean_curve([[(1, 2.0), (2, 4.0)], [(1, 4.0)]])
    [(1, 3.0)]
    """
    tables = [{update: value for update, value in curve if value is not None} for curve in curves]
    shared = [update for update in tables[0] if all(update in table for table in tables)]
    return [(update, math.fsum(table[update] for table in tables) / len(tables)) for update in shared]


def training_charts(name: str, run: Training) -> list[Chart]:
    """Loss, applied learning rate and validation metrics of one run."""
    metrics = ["loss", "learning_rate", *_validations(run.records)]
    charts = []
    for number, metric in enumerate(metrics):
        curve = points(run.records, metric)
        if len(curve) > 1:  # a single value is in the table of results
            label = "learning rate, as applied" if metric == "learning_rate" else metric.replace("val_", "validation ")
            choices = {"": [plain_line(label, *_columns(curve), **_marks(curve))]}
            y = axis(label) if metric == "learning_rate" else value_axis(label, choices)
            charts.append(Chart(f"{name}-{number}", capitalised(label), axis("update"), y, choices))
    return charts


def _validations(records: Records) -> list[str]:
    names = dict.fromkeys(name for record in records for name in record if name.startswith("val_"))
    return [name for name in names if name != "val_loss"] + (["val_loss"] if "val_loss" in names else [])


def _columns(curve: Points) -> tuple[list[float], list[float | None]]:
    return [update for update, _ in curve], [value for _, value in curve]
