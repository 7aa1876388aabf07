"""What a study reports about each method."""

import math
from collections.abc import Iterable

import numpy as np

from trainers.evidence.differences import Difference, difference_of
from trainers.study.failures import Place, Trained
from trainers.sweeps.formats import NOTHING, fixed, value_text
from trainers.sweeps.results import in_unit
from trainers.sweeps.summary import cell_text
from trainers.sweeps.table import Cell

HEADINGS = ("method", "best cell", "default cell", "largest rate without failures", "failed runs", "mean loss")


def method_table(trained: Trained) -> list[list[str]]:
    """Headings, then a row for each method."""
    return [list(HEADINGS), *(_row(trained, method) for method in trained.methods)]


def _row(trained: Trained, method: str) -> list[str]:
    runs = [run for seeds in trained.runs[method].values() for run in seeds.values()]
    failed = sum(map(trained.fails, runs))
    losses = math.fsum(map(trained.loss, runs)) / len(runs)
    return [
        method,
        _best(trained, method),
        value_with_spread(trained, method, default_place(trained)),
        "; ".join(_largest_rates(trained, method)),
        f"{failed} of {len(runs)}",
        fixed(losses, 3),
    ]


def default_place(trained: Trained) -> Place:
    """The smallest rate with the largest beta_2."""
    return min(rate for rate, _ in trained.places), max(beta_2 for _, beta_2 in trained.places)


def cell_at(trained: Trained, method: str, place: Place) -> Cell:
    """The runs at a place, in the unit of the objective."""
    cell = Cell()
    for run in trained.runs[method].get(place, {}).values():
        cell = cell.plus(in_unit(run, trained.sweep.objective.shown))
    return cell


def _best(trained: Trained, method: str) -> str:
    cells = {place: cell_at(trained, method, place) for place in trained.runs[method]}
    most = max(cell.n for cell in cells.values())
    means = {place: cell.mean for place, cell in cells.items() if cell.n == most and cell.mean is not None}
    if not means:
        return NOTHING
    sign = 1 if trained.sweep.objective.direction == "min" else -1
    place = min(means, key=lambda at: (sign * means[at], at))
    return f"{value_with_spread(trained, method, place)} at {value_text(place[0])}, {value_text(place[1])}"


def value_with_spread(trained: Trained, method: str, place: Place) -> str:
    cell = cell_at(trained, method, place)
    return cell_text(cell, cell.runs, 2) if cell.runs else NOTHING


def _largest_rates(trained: Trained, method: str) -> Iterable[str]:
    """For each beta_2, the largest rate up to which no seed fails."""
    for beta_2 in sorted({beta_2 for _, beta_2 in trained.places}):
        largest = None
        for rate in sorted(rate for rate, other in trained.runs[method] if other == beta_2):
            if trained.failed(method, (rate, beta_2)):
                break
            largest = rate
        yield f"{NOTHING if largest is None else value_text(largest)} ({value_text(beta_2)})"


def difference(trained: Trained, first: str, second: str, places: Iterable[Place]) -> Difference:
    """second - first in the unit of the objective, over seeds, averaged over some places."""
    chosen = list(places)
    seeds = sorted({seed for place in chosen for seed in trained.runs[first].get(place, {})})
    tables = [
        [[cell_at(trained, method, place).values.get(seed, math.nan) for seed in seeds] for place in chosen]
        for method in (first, second)
    ]
    shape = len(chosen), len(seeds)
    return difference_of((first, second), *(np.array(table).reshape(shape) for table in tables))
