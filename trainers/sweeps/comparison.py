"""The paper's claim as numbers: how far apart the warmups are, measured by how far apart the seeds are."""

import dataclasses
import itertools
import math
from collections.abc import Mapping

from trainers.sweeps.statistics import Difference, holm, paired_difference, pooled_deviation, root_mean_square
from trainers.sweeps.table import Row, Table, deviation

# The names of two warmups; their difference is second - first.
Pair = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Spread:
    """Standard deviations: of the means of the methods; between seeds; and of such means if only seeds differed."""

    methods: float
    seeds: float
    chance: float


@dataclasses.dataclass(frozen=True)
class Overall:
    """A pair of methods over the whole table: the difference over seeds of what each row's difference averages to."""

    pair: Pair
    difference: Difference
    rows: int  # the rows in which both have every seed: the others are left out
    adjusted_p: float | None = None


@dataclasses.dataclass(frozen=True)
class Comparison:
    """All that is compared: row by row, and over the rows."""

    overall: tuple[Overall, ...]
    spread: Spread | None
    row_differences: Mapping[tuple[Row, Pair], Difference]
    row_spreads: Mapping[Row, Spread | None]


def compare(table: Table) -> Comparison:
    """Compares every two methods with the seed as the unit of pairing; only runs that are done count."""
    pairs = list(itertools.combinations(table.methods, 2))
    spreads = {row: _spread(table, row) for row in table.rows}
    return Comparison(
        overall=_adjusted([_overall(table, pair) for pair in pairs]),
        spread=_joint_spread(table, [row for row, spread in spreads.items() if spread is not None], spreads),
        row_differences={(row, pair): _row_difference(table, row, pair) for row in table.rows for pair in pairs},
        row_spreads=spreads,
    )


def _row_difference(table: Table, row: Row, pair: Pair) -> Difference:
    first, second = (table.cell(row, method).values for method in pair)
    shared = [seed for seed in table.seeds if seed in first and seed in second]
    return paired_difference([first[seed] for seed in shared], [second[seed] for seed in shared])


def _overall(table: Table, pair: Pair) -> Overall:
    """Per seed the mean over the same rows, so that a missing run cannot pass for a difference."""
    seeds = [seed for seed in table.seeds if any(seed in cell.values for cell in table.cells.values())]
    rows = [
        row for row in table.rows if all(seed in table.cell(row, method).values for method in pair for seed in seeds)
    ]
    if not (rows and seeds):
        return Overall(pair, Difference(0), 0)
    first, second = (
        [math.fsum(table.cell(row, method).values[seed] for row in rows) / len(rows) for seed in seeds]
        for method in pair
    )
    return Overall(pair, paired_difference(first, second), len(rows))


def _adjusted(overall: list[Overall]) -> tuple[Overall, ...]:
    adjusted = iter(holm([each.difference.test.p for each in overall if each.difference.test]))
    return tuple(
        dataclasses.replace(each, adjusted_p=next(adjusted)) if each.difference.test else each for each in overall
    )


def _groups(table: Table, row: Row) -> list[list[float]]:
    """The values of each method that has any, at the seeds they all have: other seeds would tilt their means."""
    cells = [cell for method in table.methods if (cell := table.cell(row, method)).n]
    shared = [seed for seed in table.seeds if all(seed in cell.values for cell in cells)]
    return [[cell.values[seed] for seed in shared] for cell in cells]


def _spread(table: Table, row: Row) -> Spread | None:
    """None where there are fewer than two methods, or fewer than two seeds that they share."""
    groups = _groups(table, row)
    seeds = pooled_deviation(groups)
    if len(groups) < 2 or seeds is None:
        return None
    n = len(groups[0])
    return Spread(deviation([math.fsum(group) / n for group in groups]), seeds, seeds / math.sqrt(n))


def _joint_spread(table: Table, rows: list[Row], spreads: Mapping[Row, Spread | None]) -> Spread | None:
    present = [spread for row in rows if (spread := spreads[row]) is not None]
    seeds = pooled_deviation([group for row in rows for group in _groups(table, row)])
    if not present or seeds is None:
        return None
    return Spread(
        root_mean_square([spread.methods for spread in present]),
        seeds,
        root_mean_square([spread.chance for spread in present]),
    )
