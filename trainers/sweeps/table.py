"""The runs of a sweep as the paper's table: a row for each learning rate and beta_2, a column for each warmup."""

import dataclasses
import itertools
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainers.sweeps.results import Grid, Result, place

METHOD, SEED = "warmup", "seed"
DIRECTIONS = ("min", "max")

Row = tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Cell:
    """The runs that differ in nothing but the seed."""

    values: Mapping[Any, float] = dataclasses.field(default_factory=dict)  # of the runs that are done, by seed
    diverged: int = 0
    failed: int = 0

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def runs(self) -> int:
        return self.n + self.diverged + self.failed

    @property
    def mean(self) -> float | None:
        return math.fsum(self.values.values()) / self.n if self.values else None

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation over seeds, None for fewer than two."""
        return None if self.n < 2 else deviation(self.values.values())

    def plus(self, result: Result) -> "Cell":
        if result.objective is not None:
            return dataclasses.replace(self, values={**self.values, result.values[SEED]: result.objective})
        return dataclasses.replace(self, **{result.status: getattr(self, result.status) + 1})


@dataclasses.dataclass(frozen=True)
class Table:
    """Cells by row and warmup. A row is the values of `row_names`: all hyperparameters but warmup and seed."""

    objective: str
    direction: str
    row_names: tuple[str, ...]
    rows: tuple[Row, ...]
    methods: tuple[str, ...]
    seeds: tuple[Any, ...]
    cells: Mapping[tuple[Row, str], Cell]

    def cell(self, row: Row, method: str) -> Cell:
        return self.cells.get((row, method), Cell())

    def best(self) -> tuple[Row, str] | None:
        """Where the mean is best, among the cells with the most seeds done: a lucky survivor is not the best."""
        most = max((cell.n for cell in self.cells.values()), default=0)
        candidates = {at: cell.mean for at, cell in self.cells.items() if cell.n == most and cell.mean is not None}
        if not candidates:
            return None
        sign = 1 if self.direction == "min" else -1
        return min(candidates, key=lambda at: (sign * candidates[at], self.rows.index(at[0])))


def tabulate(results: Iterable[Result], objective: str, direction: str, grid: Grid | None = None) -> Table:
    """The table of a sweep, whole or still running.

    Args:
        results: The runs, in any order; every one has a warmup and a seed.
        objective: The name of the objective.
        direction: "min" or "max": which objective is better.
        grid: The values of each hyperparameter: the order of the warmups, and the cells and seeds that are still to
            come. Without it, what the runs have.
    """
    if direction not in DIRECTIONS:
        raise ValueError(f"`direction` must be one of {', '.join(DIRECTIONS)}. Received: direction={direction!r}")
    runs, grid = list(results), grid or {}
    _check_runs(runs)
    names = list(dict.fromkeys(name for values in [grid, *(run.values for run in runs)] for name in values))
    row_names = tuple(name for name in names if name not in (METHOD, SEED))
    cells: dict[tuple[Row, str], Cell] = {}
    for run in sorted(runs, key=lambda run: place(run.values[SEED])):
        at = (tuple(run.values.get(name) for name in row_names), run.values[METHOD])
        cells[at] = cells.get(at, Cell()).plus(run)
    return Table(
        objective,
        direction,
        row_names,
        rows=_rows(row_names, [row for row, _ in cells], grid),
        methods=_ordered([*grid.get(METHOD, ()), *(method for _, method in cells)], grid.get(METHOD, ())),
        seeds=_ordered([*grid.get(SEED, ()), *(run.values[SEED] for run in runs)], ()),
        cells=cells,
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


def _rows(names: Sequence[str], present: Iterable[Row], grid: Grid) -> tuple[Row, ...]:
    """The rows of the grid and of the runs, in ascending order."""
    planned = itertools.product(*(grid[name] for name in names)) if all(name in grid for name in names) else ()
    # Names keep the order of the grid; numbers ascend.
    listed = [[value for value in grid.get(name, ()) if not isinstance(value, numbers.Real)] for name in names]
    rows = dict.fromkeys([*planned, *present])
    return tuple(sorted(rows, key=lambda row: [place(*pair) for pair in zip(row, listed, strict=True)]))


def _ordered(values: Iterable[Any], listed: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(sorted(dict.fromkeys(values), key=lambda value: place(value, listed)))
