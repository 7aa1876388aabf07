"""Made-up sweeps that several test files share."""

import csv
import io
import itertools

import numpy as np

from trainers.evidence.summary import Summary
from trainers.results.methods import Point
from trainers.results.results_csv import LABEL, csv_text, frame_of
from trainers.results.table import tabulate
from trainers.results.tasks import Objective, Terms
from trainers.results.trials import Result

GRID = {
    "learning_rate": [1e-3, 3e-4],
    "beta_2": [0.999, 0.99],
    "warmup": ["untuned_linear", "radam"],
    "seed": [1, 2, 3],
}


def points(grid):
    return [dict(zip(grid, point, strict=True)) for point in itertools.product(*grid.values())]


def sweep(objective, grid=GRID):
    """A run for every point; `objective(**point)` gives a number, or None for a run that failed."""
    results = []
    for index, point in enumerate(points(grid)):
        value = objective(**point)
        if value is None:
            results.append(Result(f"{index:04}", point, "failed", None, {}, 1.0, "out of memory"))
        else:
            results.append(Result.measured(f"{index:04}", point, value, {}, 1.0))
    return results


def summary_of(results, direction="min", grid=None, title="Sweep", terms=Terms()):  # noqa: B008 - is frozen
    """What is told of a sweep from results alone."""
    runs = frame_of(results, "loss", grid)
    return Summary(tabulate(runs, Objective("loss", "loss", direction), grid), runs, title, terms)


def results_csv(results, objective, grid=None):
    """The text of results.csv."""
    return csv_text(frame_of(results, objective, grid).drop(columns=LABEL))


def csv_rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def table_of(results, direction="min", grid=None):
    return summary_of(results, direction, grid).table


def noisy_sweep(effects, seeds=3, rows=4, noise=0.1, seed=0):
    """A sweep whose values are the sum of a common value, the effects of method and seed, and noise."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(0, 0.3, seeds)
    grid = {
        "learning_rate": [10.0 ** -(i + 1) for i in range(rows)],
        "beta_2": [0.999],
        "warmup": list(effects),
        "seed": list(range(seeds)),
    }

    def objective(learning_rate, beta_2, warmup, seed):
        return 20 + effects[warmup] + shared[seed] + rng.normal(0, noise)

    return sweep(objective, grid)


PERIODS = (10.0, 100.0)


def tuned_sweep(objective, seeds=4, rates=(1e-3,), periods=PERIODS, rules=("radam",)):
    """A run for every point; `objective(rate, warmup, period, seed)` is a number, or None for a run that diverged."""
    methods = [*(("linear", period) for period in periods), *((rule, None) for rule in rules)]
    results = []
    for rate, (warmup, period), seed in itertools.product(rates, methods, range(seeds)):
        values = {"learning_rate": rate, "beta_2": 0.999, "warmup": warmup, "seed": seed}
        values |= {} if period is None else {"warmup_period": period}
        value = objective(rate, warmup, period, seed)
        results.append(Result.measured(str(len(results)), values, float("nan") if value is None else value, {}, 1.0))
    return results


CELLS = [Point(1e-2, 0.9, "none", seed) for seed in (1, 2)]


def result_of(cell, status="done"):
    return Result(cell.name, cell.values, status, 0.5 if status == "done" else None, {}, 1.0)
