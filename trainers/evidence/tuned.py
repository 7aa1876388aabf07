"""Compares a tuned warmup with an untuned one: what does the best period (or share) gain, and what does it cost?

The period is chosen on one half of the seeds and judged on the other, and vice versa: a period that is best on all
seeds is partly best by luck, and this luck must not count.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from pandas import DataFrame

from trainers.evidence.comparison import LEAST_SEEDS, Verdict, judge, margin_in
from trainers.evidence.differences import LEVELS, Difference, difference_of
from trainers.evidence.findings import difference_text, pair_text
from trainers.results.formats import counted, value_text
from trainers.results.methods import PERIOD, TUNED_FLAGS, tuned_text
from trainers.results.results_csv import LABEL, csv_text
from trainers.results.table import METHOD, MISSING, Row, Table
from trainers.results.tasks import Terms

UNTUNED_RULES = ("untuned_linear", "untuned_exponential", "radam")


@dataclasses.dataclass(frozen=True)
class Duel:
    """A tuned warmup and an untuned rule in a row of the table, or in several."""

    row: Row  # the row, or the first one
    warmup: str  # the tuned warmup
    rule: str  # the untuned one
    # The periods chosen there on the first and on the second half of the seeds; or the shares
    periods: tuple[float, float]
    # The objective of the tuned warmup, [rows, seeds of the table], with the period chosen on the other half of the
    # seeds; NaN for a seed that either lacks
    tuned: np.ndarray
    untuned: np.ndarray  # the objective of the rule, NaN for the same seeds
    tuned_runs: int  # number of runs for tuning
    untuned_runs: int  # number of runs of the rule
    flag: str = PERIOD  # what is tuned, "warmup_period" or "warmup_share"

    @property
    def difference(self) -> Difference:
        """Tuned - untuned over seeds, averaged over the rows."""
        kind = self.flag.removeprefix("warmup_")
        return difference_of((self.rule, f"{self.warmup} with the best {kind}"), self.untuned, self.tuned)


def duels(table: Table, runs: DataFrame) -> list[Duel]:
    """A duel for each row, tuned warmup with several periods, and untuned rule; none for a row with one seed."""
    found = []
    for flag in (name for name in TUNED_FLAGS if name in runs):
        tuned = runs[runs[flag].notna()].drop_duplicates([METHOD, flag])
        for warmup, each in tuned.groupby(METHOD, sort=False):
            labels = dict(zip(each[flag], each[LABEL], strict=True))
            sides = itertools.product(UNTUNED_RULES, table.rows) if len(labels) > 1 else ()
            found += [make_duel(table, row, (str(warmup), rule), labels, flag) for rule, row in sides]
    return [duel for duel in found if duel is not None]


def outcomes(found: Iterable[Duel]) -> list[Duel]:
    """One duel per pair, over all of its rows."""
    groups = itertools.groupby(found, key=lambda duel: (duel.warmup, duel.flag, duel.rule))
    return [_over_rows(list(group)) for _, group in groups]


def _over_rows(same: Sequence[Duel]) -> Duel:
    tuned, untuned = np.concatenate([duel.tuned for duel in same]), np.concatenate([duel.untuned for duel in same])
    runs = {name: sum(getattr(duel, name) for duel in same) for name in ("tuned_runs", "untuned_runs")}
    return dataclasses.replace(same[0], tuned=tuned, untuned=untuned, **runs)


def duels_csv(table: Table, found: Iterable[Duel]) -> str:
    """A row for each duel: the periods or shares, the difference with its interval, and the runs behind it."""
    names = ["tuned", "untuned", "period_1", "period_2", "share_1", "share_2", "difference", "low", "high", "seeds"]
    rows: list[list[Any]] = []
    for duel in found:
        chosen = [value if flag == duel.flag else None for flag in TUNED_FLAGS for value in duel.periods]
        difference = duel.difference
        ends = difference.interval(LEVELS[1]) if difference.seeds > 1 else (None, None)
        values = [duel.warmup, duel.rule, *chosen, difference.mean, *ends, difference.seeds]
        rows.append([*duel.row, *values, duel.tuned_runs, duel.untuned_runs])
    headings = [*table.row_names, *names, "tuned_runs", "untuned_runs"]
    return csv_text(DataFrame(rows, columns=headings, dtype=object))


def make_duel(
    table: Table, row: Row, pair: tuple[str, str], labels: Mapping[float, str], flag: str = PERIOD
) -> Duel | None:
    """Compares a tuned warmup with a rule; None if fewer than two seeds have both. `labels` has a column per period."""
    warmup, rule = pair
    at = table.rows.index(row)
    ended = table.runs[(table.runs.row == at) & (table.runs.status != MISSING)]
    tunings = ended[ended.method.isin(list(labels.values()))]
    # Every period is planned for every seed: where it has no value, the run diverged or is missing.
    seeds = np.flatnonzero(np.isin(table.seeds, tunings.seed.tolist()) & ~np.isnan(table.values(rule)[at]))
    if len(seeds) < 2:
        return None
    worst = math.inf if table.direction == "min" else -math.inf
    values = {period: np.nan_to_num(table.values(label)[at], nan=worst) for period, label in sorted(labels.items())}
    tuned, untuned = np.full((2, len(table.seeds)), math.nan)
    halves = seeds[::2], seeds[1::2]
    periods = _best_period(values, halves[0], table.direction), _best_period(values, halves[1], table.direction)
    for judged, period in zip(halves, reversed(periods), strict=True):
        tuned[judged] = values[period][judged]
    tuned[np.isinf(tuned)] = math.nan
    untuned[seeds] = np.where(np.isnan(tuned[seeds]), math.nan, table.values(rule)[at][seeds])
    rule_runs = int((ended.method == rule).sum())
    return Duel(row, warmup, rule, periods, tuned[None], untuned[None], len(tunings), rule_runs, flag)


def _best_period(values: Mapping[float, np.ndarray], seeds: np.ndarray, direction: str) -> float:
    """The period or share with the best mean over some seeds; the shortest of those that are equal."""
    sign = 1 if direction == "min" else -1
    return min(values, key=lambda period: (sign * math.fsum(values[period][seeds]), period))


TUNED_TITLE = "Tuned against untuned"
TUNED_NOTE = (
    "Tuned - untuned, with a 90 % t interval over seeds. The period is the best on one half of the seeds, judged on "
    "the other half, and the other way round."
)


def tuned_findings(table: Table, found: Sequence[Duel], terms: Terms) -> list[str]:
    """A sentence for every tuned warmup and untuned rule."""
    return [_tuned_sentence(table, outcome, terms) for outcome in outcomes(found)]


def tuned_table(table: Table, found: Sequence[Duel]) -> list[list[str]]:
    """Headings, then for every row the chosen periods, the difference, and the number of runs."""
    lines = [[*table.row_names, "tuned", "best periods", "untuned", "tuned - untuned", "runs, tuned and untuned"]]
    for duel in found:
        periods = " and ".join(tuned_text(duel.flag, period) for period in duel.periods)
        runs = f"{duel.tuned_runs} and {duel.untuned_runs}"
        text = difference_text(duel.difference, None) if duel.difference.seeds else "nothing to compare"
        lines.append([*map(value_text, duel.row), duel.warmup, periods, duel.rule, text, runs])
    return lines


def _tuned_sentence(table: Table, outcome: Duel, terms: Terms) -> str:
    difference = outcome.difference
    name = pair_text(difference.pair)
    cost = f"The tuning took {counted(outcome.tuned_runs, 'run')}, {outcome.rule} {outcome.untuned_runs}."
    if not difference.seeds:
        return f"{name}: nothing to compare, there is no row and seed in which both are done. {cost}"
    margin = margin_in(table, terms)
    basis = f"{counted(difference.seeds, 'seed')}, {counted(difference.cells, 'row')}"
    text = difference_text(difference, margin, terms.unit, wide=True)
    return f"{name}: {text} ({basis}): {_tuned_meaning(table, difference, margin)}. {cost}"


def _tuned_meaning(table: Table, difference: Difference, margin: float | None) -> str:
    """The verdict by the rule of every other comparison; without a margin, which of the two is better at all."""
    if difference.seeds < LEAST_SEEDS:
        return "inconclusive"
    verdict = judge([difference], margin or 0.0)
    if verdict is Verdict.DIFFERENT:
        better = table.better(difference.mean, 0.0)
        return f"{'the tuned' if better else 'the untuned'} one is better{' by more than the margin' if margin else ''}"
    if margin is None:
        return "no gain from tuning shown, nor a loss"
    return str(verdict.value)
