"""The runs of a sweep as the paper's table: a row for each learning rate and beta_2, a column for each warmup."""

import dataclasses
import functools
import itertools
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from pandas import DataFrame

from trainers.results.methods import PERIOD, SHARE, TUNED_FLAGS, TUNED_WARMUPS, method_label
from trainers.results.results_csv import LABEL, hyperparameters, place
from trainers.results.tasks import Objective
from trainers.results.trials import Grid

METHOD, SEED = "warmup", "seed"
DONE, MISSING = "done", "missing"  # a planned run without a result is missing

Row = tuple[Any, ...]


class Cell(NamedTuple):
    """Runs that differ only in the seed: what those that are done reach, and how many others there are."""

    mean: float | None = None
    deviation: float | None = None  # of a sample; None for fewer than two seeds
    n: int = 0
    diverged: int = 0
    failed: int = 0
    missing: int = 0

    @classmethod
    def of(cls, values: Sequence[float], others: Sequence[str] = ()) -> "Cell":
        """The cell of the values of the runs that are done, and of how the others ended.

        >>> Cell.of([1.0, 2.0, 3.0], ["failed"])
        Cell(mean=2.0, deviation=1.0, n=3, diverged=0, failed=1, missing=0)
        """
        n, deviation = len(values), None
        mean = math.fsum(values) / n if n else None
        if mean is not None and n > 1:
            deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
        return cls(mean, deviation, n, *map(others.count, ("diverged", "failed", MISSING)))

    @property
    def runs(self) -> int:
        """How many runs have ended."""
        return self.n + self.diverged + self.failed


@dataclasses.dataclass(frozen=True)
class Table:
    """Runs by row and method. A row is the values of `row_names`: all hyperparameters but the warmup's and the seed."""

    objective: str  # what to call the objective
    direction: str  # "min" or "max": which objective is better
    row_names: tuple[str, ...]  # the names of the values of a row
    rows: tuple[Row, ...]  # the rows, in order
    methods: tuple[str, ...]  # the methods, in order
    seeds: tuple[Any, ...]  # the seeds, in order
    # A row for every run that has ended or is planned, ordered by method, row and seed: the number of its row, its
    # method, its seed, the objective in the unit of the table, NaN if there is none, and its status
    runs: DataFrame
    planned: int  # the number of planned runs
    _values: dict[str, np.ndarray] = dataclasses.field(init=False, default_factory=dict, compare=False, repr=False)

    @functools.cached_property
    def cells(self) -> Mapping[tuple[Row, str], Cell]:
        found: Any = {at: ([], []) for at in itertools.product(self.rows, self.methods)}
        for row, method, _, value, status in self.runs.itertuples(index=False, name=None):
            values, others = found[self.rows[row], method]
            if status == DONE:
                values.append(value)
            else:
                others.append(status)
        return {at: Cell.of(*runs) for at, runs in found.items()}

    def cell(self, row: Row, method: str) -> Cell:
        return self.cells.get((row, method), Cell())

    def values(self, method: str) -> np.ndarray:
        """The values of a method, [rows, seeds], NaN where a run has none."""
        if method not in self._values:
            runs = self.runs[self.runs.method == method].pivot(index="row", columns="seed", values="value")
            whole = runs.reindex(index=range(len(self.rows)), columns=list(self.seeds))
            self._values[method] = np.asarray(whole, float)
        return self._values[method]

    def ran(self, methods: Iterable[str]) -> tuple[str, ...]:
        """Those of some methods that have runs, in the order of the table."""
        found = {*self.runs.method[self.runs.status != MISSING]}.intersection(methods)
        return tuple(method for method in self.methods if method in found)

    def better(self, first: float, second: float) -> bool:
        return first < second if self.direction == "min" else first > second

    def best(self, **fixed: Any) -> tuple[Row, str] | None:
        """The cell with the best mean, among those with the most seeds done: a lucky survivor is not the best.

        Args:
            **fixed: Values of names in `row_names`, to consider only rows that have them.
        """
        cells = self._cells_at(fixed)
        most = max((cell.n for cell in cells.values()), default=0)
        candidates = {at: cell.mean for at, cell in cells.items() if cell.n == most and cell.mean is not None}
        sign = 1 if self.direction == "min" else -1
        return min(candidates, key=lambda at: sign * candidates[at], default=None)  # the first of those that are equal

    def better_with_fewer_seeds(self, best: Cell, **fixed: Any) -> int:
        """How many cells look better than the best one only because they have fewer seeds, all of them done."""
        fewer = [cell for cell in self._cells_at(fixed).values() if 0 < cell.n == cell.runs < best.n]
        return sum(self.better(cell.mean or 0.0, best.mean or 0.0) for cell in fewer)

    def named(self, row: Row) -> dict[str, Any]:
        return dict(zip(self.row_names, row, strict=True))

    def _cells_at(self, fixed: Mapping[str, Any]) -> dict[tuple[Row, str], Cell]:
        return {at: cell for at, cell in self.cells.items() if self.named(at[0]).items() >= fixed.items()}


def tabulate(runs: DataFrame, objective: Objective, grid: Grid | None = None) -> Table:
    """The table of a sweep, complete or still running.

    Args:
        runs: The runs, as `frame_of` makes them; every one has a warmup and a seed.
        objective: What they are compared by.
        grid: The values of each hyperparameter, which give the order of the warmups, and the planned cells and seeds.
            Without it, those of the runs.
    """
    listed, records = grid or {}, runs.to_dict("records")
    names = tuple(name for name in hyperparameters(runs) if name not in (METHOD, SEED, *TUNED_FLAGS))
    ended: dict[tuple[Row, str, Any], tuple[float, str]] = {}
    for run in records:
        at = tuple(run[name] for name in names), run[LABEL], run[SEED]
        if at in ended:
            raise ValueError(f"A sweep must have one run for each point. Received: two of {run}")
        value = math.nan if run["status"] != DONE else objective.shown(run[objective.metric])
        if math.isinf(value):
            raise ValueError(f"The objective must be finite in its unit. Received: {run[objective.metric]}")
        ended[at] = value, run["status"]
    planned_methods = _planned_methods(listed)
    planned_rows = [*itertools.product(*(listed[name] for name in names))] if {*names} <= {*listed} else []
    seeds = tuple(sorted(dict.fromkeys([*listed.get(SEED, ()), *(seed for _, _, seed in ended)]), key=place))
    cells = [*itertools.product(planned_rows, planned_methods)] if grid else [*dict.fromkeys(at[:2] for at in ended)]
    planned = {(*cell, seed): (math.nan, MISSING) for cell in cells for seed in listed.get(SEED, seeds)}
    rows = _rows(names, [*planned_rows, *(row for row, _, _ in ended)], listed)
    methods = _methods([*planned_methods, *(method for _, method, _ in ended)], records, planned_methods)
    at_row, at_method, at_seed = (dict(zip(axis, itertools.count(), strict=False)) for axis in (rows, methods, seeds))
    whole = [(at_row[row], method, seed, *how) for (row, method, seed), how in {**planned, **ended}.items()]
    whole.sort(key=lambda run: (at_method[run[1]], run[0], at_seed[run[2]]))
    shown = DataFrame(whole, columns=["row", "method", "seed", "value", "status"])
    return Table(objective.label, objective.direction, names, rows, methods, seeds, shown, len(planned))


def _planned_methods(grid: Grid) -> list[str]:
    """The columns of a grid: its warmups, the tuned ones with each of their periods and shares."""
    tuned = [{name: value} for name in TUNED_FLAGS for value in grid.get(name, ())]
    return [
        method_label({METHOD: warmup, **one})
        for warmup in grid.get(METHOD, ())
        for one in (tuned if warmup in TUNED_WARMUPS else ({},))
    ]


def _methods(labels: Iterable[str], runs: Iterable[Mapping[str, Any]], planned: Sequence[str]) -> tuple[str, ...]:
    """The planned methods in their order, then the others by name, share and period."""
    keys = {run[LABEL]: (run[METHOD], *(run.get(name) or 0 for name in (SHARE, PERIOD))) for run in runs}
    return tuple(sorted(dict.fromkeys(labels), key=lambda label: (place(label, planned)[:2], keys.get(label, ("",)))))


def _rows(names: Sequence[str], rows: Iterable[Row], grid: Grid) -> tuple[Row, ...]:
    """Rows in ascending order."""
    # Names keep the order of the grid; numbers ascend.
    listed = [[value for value in grid.get(name, ()) if not isinstance(value, numbers.Real)] for name in names]
    return tuple(sorted(dict.fromkeys(rows), key=lambda row: [place(*pair) for pair in zip(row, listed, strict=True)]))
