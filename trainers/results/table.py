"""The runs of a sweep as the paper's table: a row for each learning rate and beta_2, a column for each warmup."""

import dataclasses
import itertools
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainers.results.methods import PERIOD, SHARE, TUNED_FLAGS, TUNED_WARMUPS, method_label
from trainers.results.results_csv import place
from trainers.results.trials import Grid, Result

METHOD, SEED = "warmup", "seed"
DIRECTIONS = ("min", "max")

Row = tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Cell:
    """Runs that differ only in the seed."""

    values: Mapping[Any, float] = dataclasses.field(default_factory=dict)  # of the runs that are done, by seed
    ends: Mapping[Any, str] = dataclasses.field(default_factory=dict)  # how the others ended, by seed

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def diverged(self) -> int:
        return self._ended("diverged")

    @property
    def failed(self) -> int:
        return self._ended("failed")

    @property
    def seeds(self) -> frozenset[Any]:
        """The seeds of all runs, however they ended."""
        return frozenset([*self.values, *self.ends])

    @property
    def runs(self) -> int:
        return self.n + len(self.ends)

    @property
    def mean(self) -> float | None:
        return math.fsum(self.values.values()) / self.n if self.values else None

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation over seeds, None for fewer than two."""
        return None if self.n < 2 else deviation(self.values.values())

    def plus(self, result: Result) -> "Cell":
        seed = result.values[SEED]
        if result.objective is not None:
            return dataclasses.replace(self, values={**self.values, seed: result.objective})
        return dataclasses.replace(self, ends={**self.ends, seed: result.status})

    def _ended(self, status: str) -> int:
        return sum(each == status for each in self.ends.values())


@dataclasses.dataclass(frozen=True)
class Table:
    """Cells by row and method. A row is the values of `row_names`: all hyperparameters but the warmup's and the seed.

    `planned` has the seeds that each cell should have.
    """

    objective: str
    direction: str
    row_names: tuple[str, ...]
    rows: tuple[Row, ...]
    methods: tuple[str, ...]
    seeds: tuple[Any, ...]
    cells: Mapping[tuple[Row, str], Cell]
    planned: Mapping[tuple[Row, str], frozenset[Any]]

    def missing(self, row: Row, method: str) -> int:
        """How many planned runs have no result."""
        return len(self.planned.get((row, method), frozenset()) - self.cell(row, method).seeds)

    def _named(self, row: Row) -> dict[str, Any]:
        return dict(zip(self.row_names, row, strict=True))

    def cell(self, row: Row, method: str) -> Cell:
        return self.cells.get((row, method), Cell())

    def best(self, **fixed: Any) -> tuple[Row, str] | None:
        """The cell with the best mean, among those with the most seeds done: a lucky survivor is not the best.

        Args:
            **fixed: Values of names in `row_names`, to consider only rows that have them.
        """
        cells = self._cells_at(fixed)
        most = max((cell.n for cell in cells.values()), default=0)
        candidates = {at: cell.mean for at, cell in cells.items() if cell.n == most and cell.mean is not None}
        if not candidates:
            return None
        sign = 1 if self.direction == "min" else -1
        places = {at: (self.rows.index(at[0]), self.methods.index(at[1])) for at in candidates}
        return min(candidates, key=lambda at: (sign * candidates[at], places[at]))

    def better_with_fewer_seeds(self, best: Cell, **fixed: Any) -> int:
        """How many cells look better than the best one only because they have fewer seeds, all of them done."""
        sign = 1 if self.direction == "min" else -1
        whole = [cell for cell in self._cells_at(fixed).values() if cell.n < best.n and not cell.ends]
        return sum(sign * cell.mean < sign * (best.mean or 0.0) for cell in whole if cell.mean is not None)

    def _cells_at(self, fixed: Mapping[str, Any]) -> dict[tuple[Row, str], Cell]:
        return {at: cell for at, cell in self.cells.items() if self._named(at[0]).items() >= fixed.items()}


def tabulate(results: Iterable[Result], objective: str, direction: str, grid: Grid | None = None) -> Table:
    """The table of a sweep, complete or still running.

    Args:
        results: The runs, in any order; every one has a warmup and a seed.
        objective: The name of the objective.
        direction: "min" or "max": which objective is better.
        grid: The values of each hyperparameter, which give the order of the warmups, and the planned cells and seeds.
            Without it, those of the runs.
    """
    if direction not in DIRECTIONS:
        raise ValueError(f"`direction` must be one of {', '.join(DIRECTIONS)}. Received: direction={direction!r}")
    runs, listed = list(results), grid or {}
    _check_runs(runs)
    names = list(dict.fromkeys(name for values in [listed, *(run.values for run in runs)] for name in values))
    row_names = tuple(name for name in names if name not in (METHOD, SEED, *TUNED_FLAGS))
    cells: dict[tuple[Row, str], Cell] = {}
    for run in sorted(runs, key=lambda run: place(run.values[SEED])):
        at = (tuple(run.values.get(name) for name in row_names), method_label(run.values))
        cells[at] = cells.get(at, Cell()).plus(run)
    planned_rows, planned_methods = _planned_rows(row_names, listed), _planned_methods(listed)
    seeds = _ordered([*listed.get(SEED, ()), *(run.values[SEED] for run in runs)], ())
    planned = list(itertools.product(planned_rows, planned_methods)) if grid else list(cells)
    return Table(
        objective,
        direction,
        row_names,
        rows=_rows(row_names, [*planned_rows, *(row for row, _ in cells)], listed),
        methods=_methods([*planned_methods, *(method for _, method in cells)], runs, planned_methods),
        seeds=seeds,
        cells=cells,
        planned=dict.fromkeys(planned, frozenset(listed.get(SEED, seeds))),
    )


def deviation(values: Iterable[float]) -> float:
    """The sample standard deviation, with n - 1.

    >>> deviation([1.0, 2.0, 3.0])
    1.0
    """
    numbers = list(values)
    mean = math.fsum(numbers) / len(numbers)
    return math.sqrt(math.fsum((number - mean) ** 2 for number in numbers) / (len(numbers) - 1))


def _check_runs(runs: Sequence[Result]) -> None:
    seen = set()
    for run in runs:
        for name in (METHOD, SEED):
            if name not in run.values:
                raise ValueError(f"`values` of a result must have {name!r}. Received: {dict(run.values)}")
        point = tuple(sorted(run.values.items()))
        if point in seen:
            raise ValueError(f"`results` must have one run for each point. Received: two of {dict(run.values)}")
        seen.add(point)


def _planned_rows(names: Sequence[str], grid: Grid) -> list[Row]:
    return list(itertools.product(*(grid[name] for name in names))) if all(name in grid for name in names) else []


def _planned_methods(grid: Grid) -> list[str]:
    """The columns of a grid: its warmups, the tuned ones with each of their periods and shares."""
    tuned = [{name: value} for name in TUNED_FLAGS for value in grid.get(name, ())]
    return [
        method_label({METHOD: warmup, **one})
        for warmup in grid.get(METHOD, ())
        for one in (tuned if warmup in TUNED_WARMUPS else ({},))
    ]


def _methods(labels: Iterable[str], runs: Sequence[Result], planned: Sequence[str]) -> tuple[str, ...]:
    """The planned methods in their order, then the others by name, share and period."""
    keys = {
        method_label(run.values): (run.values[METHOD], *(run.values.get(name) or 0 for name in (SHARE, PERIOD)))
        for run in runs
    }
    return tuple(sorted(dict.fromkeys(labels), key=lambda label: (place(label, planned)[:2], keys.get(label, ("",)))))


def _rows(names: Sequence[str], rows: Iterable[Row], grid: Grid) -> tuple[Row, ...]:
    """Rows in ascending order."""
    # Names keep the order of the grid; numbers ascend.
    listed = [[value for value in grid.get(name, ()) if not isinstance(value, numbers.Real)] for name in names]
    return tuple(sorted(dict.fromkeys(rows), key=lambda row: [place(*pair) for pair in zip(row, listed, strict=True)]))


def _ordered(values: Iterable[Any], listed: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(sorted(dict.fromkeys(values), key=lambda value: place(value, listed)))
