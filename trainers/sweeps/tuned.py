"""Compares a tuned warmup with an untuned one: what does the best period gain, and what does it cost to find it?

The period is chosen on one half of the seeds and judged on the other, and vice versa: a period that is best on all
seeds is partly best by luck, and this luck must not count.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from trainers.evidence.differences import LEVELS, Difference, difference_of
from trainers.sweeps.cells import PERIOD, method_label
from trainers.sweeps.results import Result, csv_text
from trainers.sweeps.table import METHOD, Row, Table

RULES = ("untuned_linear", "untuned_exponential", "radam")


@dataclasses.dataclass(frozen=True)
class Duel:
    """A tuned warmup and an untuned rule in one row of the table.

    Args:
        row: The row.
        warmup: The tuned warmup.
        rule: The untuned one.
        periods: The periods chosen on the first and on the second half of the seeds.
        tuned: The objective of the tuned warmup by seed, with the period chosen on the other half of the seeds.
        untuned: The objective of the rule by seed.
        tuned_runs: Number of runs for tuning.
        untuned_runs: Number of runs of the rule.
    """

    row: Row
    warmup: str
    rule: str
    periods: tuple[float, float]
    tuned: Mapping[Any, float]
    untuned: Mapping[Any, float]
    tuned_runs: int
    untuned_runs: int

    @property
    def difference(self) -> Difference:
        """Tuned - untuned over seeds."""
        return _difference([self])


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A tuned warmup and an untuned rule over all rows."""

    warmup: str
    rule: str
    difference: Difference
    tuned_runs: int
    untuned_runs: int


def duels(table: Table, results: Iterable[Result]) -> list[Duel]:
    """A duel for each row, tuned warmup with several periods, and untuned rule; none for a row with one seed."""
    periods: dict[str, dict[float, str]] = {}
    for result in results:
        if result.values.get(PERIOD) is not None:
            tuned = periods.setdefault(result.values[METHOD], {})
            tuned[result.values[PERIOD]] = method_label(result.values)
    pairs = itertools.product([name for name, found in periods.items() if len(found) > 1], RULES)
    found = [make_duel(table, row, pair, periods[pair[0]]) for pair in pairs for row in table.rows]
    return [duel for duel in found if duel is not None]


def outcomes(found: Sequence[Duel]) -> list[Outcome]:
    """One outcome per pair: the difference over seeds, averaged over its rows."""
    pairs = dict.fromkeys((duel.warmup, duel.rule) for duel in found)
    return [_outcome([duel for duel in found if (duel.warmup, duel.rule) == pair]) for pair in pairs]


def duels_csv(table: Table, found: Iterable[Duel]) -> str:
    """A row for each duel: the periods, the difference with its interval, and the runs behind it."""
    names = ["tuned", "untuned", "period_1", "period_2", "difference", "low", "high", "seeds", "tuned_runs"]
    rows: list[list[Any]] = [[*table.row_names, *names, "untuned_runs"]]
    for duel in found:
        difference = duel.difference
        ends = difference.interval(LEVELS[1]) if difference.seeds > 1 else (None, None)
        values = [duel.warmup, duel.rule, *duel.periods, difference.mean, *ends, difference.seeds]
        rows.append([*duel.row, *values, duel.tuned_runs, duel.untuned_runs])
    return csv_text(rows)


def make_duel(table: Table, row: Row, pair: tuple[str, str], labels: Mapping[float, str]) -> Duel | None:
    """Compares a tuned warmup with a rule; None if fewer than two seeds have both. `labels` has a column per period."""
    warmup, rule = pair
    cells = {period: table.cell(row, label) for period, label in sorted(labels.items())}
    other = table.cell(row, rule)
    # Every period is planned for every seed: where it has no value, the run diverged or is missing.
    seeds = [seed for seed in table.seeds if seed in other.values and any(seed in c.seeds for c in cells.values())]
    halves = seeds[::2], seeds[1::2]
    if not halves[1]:
        return None
    worst = math.inf if table.direction == "min" else -math.inf
    values = {period: {seed: cell.values.get(seed, worst) for seed in seeds} for period, cell in cells.items()}
    first, second = (_best(values, half, table.direction) for half in halves)
    judged = {seed: values[second if seed in halves[0] else first][seed] for seed in seeds}
    kept = [seed for seed in seeds if math.isfinite(judged[seed])]
    return Duel(
        row,
        warmup,
        rule,
        (first, second),
        {seed: judged[seed] for seed in kept},
        {seed: other.values[seed] for seed in kept},
        sum(cell.runs for cell in cells.values()),
        other.runs,
    )


def _best(values: Mapping[float, Mapping[Any, float]], seeds: Sequence[Any], direction: str) -> float:
    """The period with the best mean over some seeds; the shortest of those that are equal."""
    sign = 1 if direction == "min" else -1
    return min(values, key=lambda period: (sign * math.fsum(values[period][seed] for seed in seeds), period))


def _outcome(found: Sequence[Duel]) -> Outcome:
    return Outcome(
        found[0].warmup,
        found[0].rule,
        _difference(found),
        sum(duel.tuned_runs for duel in found),
        sum(duel.untuned_runs for duel in found),
    )


def _difference(found: Sequence[Duel]) -> Difference:
    """Tuned - untuned, averaged over the rows of some duels of one pair."""
    seeds = list(dict.fromkeys(seed for duel in found for seed in duel.untuned))
    untuned, tuned = (
        np.array([[values.get(seed, math.nan) for seed in seeds] for values in sides]).reshape(len(found), len(seeds))
        for sides in ([duel.untuned for duel in found], [duel.tuned for duel in found])
    )
    return difference_of((found[0].rule, f"{found[0].warmup} with the best period"), untuned, tuned)
