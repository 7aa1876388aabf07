"""Verdicts: methods compared by their differences, and by how many of their runs diverged, as these have no value."""

import bisect
import dataclasses
import enum
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests

from trainers.evidence.differences import Difference, Pair, difference_of
from trainers.results.table import DONE, MISSING, Row, Table
from trainers.results.tasks import Terms

RATE_LEVEL = 0.05


@dataclasses.dataclass(frozen=True)
class Rates:
    """How many runs of two methods diverged, of how many; Fisher's exact p value, after Holm's correction."""

    pair: Pair
    diverged: tuple[int, ...]
    runs: tuple[int, ...]
    p: float

    @property
    def differ(self) -> bool:
        return self.p < RATE_LEVEL


def divergence_rates(table: Table, methods: tuple[str, ...]) -> tuple[Rates, ...]:
    """The rates of each pair of methods; empty if no run has diverged."""
    runs = table.runs[table.runs.method.isin(methods) & table.runs.status.isin(["diverged", DONE])]
    counts = runs.groupby("method").status.agg(diverged=lambda ends: int((ends == "diverged").sum()), runs="size")
    pairs = [pair for pair in itertools.combinations(methods, 2) if {*pair} <= {*counts.index}]
    if not pairs or not counts.diverged.any():
        return ()
    found = [counts.loc[list(pair)] for pair in pairs]
    p_values = [stats.fisher_exact(np.stack([each.diverged, each.runs - each.diverged], 1)).pvalue for each in found]
    return tuple(
        Rates(pair, tuple(each.diverged.tolist()), tuple(each.runs.tolist()), float(p))
        for pair, each, p in zip(pairs, found, multipletests(p_values, method="holm")[1], strict=True)
    )


def same_runs_diverged(table: Table, methods: tuple[str, ...]) -> bool:
    """Whether runs of the same cells and seeds diverged for each method: then the others compare fairly."""
    lost = table.runs[table.runs.status == "diverged"]
    places = [{*lost[lost.method == method][["row", "seed"]].itertuples(index=False)} for method in methods]
    return all(each == places[0] for each in places)


LEAST_SEEDS = 3


class Verdict(enum.Enum):
    """How the 90 % intervals of all pairs compare with the margin."""

    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    INCONCLUSIVE = "inconclusive"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Everything that a verdict is based on."""

    methods: tuple[str, ...]  # the methods that have runs
    differences: tuple[Difference, ...]  # the difference of each pair of methods
    margin: float | None  # the smallest difference that matters, in the unit of the objective; None if none was fixed
    terms: Terms  # what they are judged by
    direction: str = "min"  # "min" or "max": which value is better
    rates: tuple[Rates, ...] = ()  # how often runs diverged, if any did
    # The runs that failed: the method, then the names and values of its cell and seed
    failed: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()
    missing: int = 0  # how many planned runs have no result yet
    alike: bool = True  # whether runs of the same cells and seeds diverged for each method
    seeds: tuple[Any, ...] = ()  # the seeds of the runs that are done

    @property
    def verdict(self) -> Verdict:
        if self.incomplete or self.margin is None or not self.differences:
            return Verdict.INCONCLUSIVE
        if any(rates.differ for rates in self.rates):
            return Verdict.DIFFERENT
        if not self.alike or not self.enough_seeds:
            return Verdict.INCONCLUSIVE
        return judge(self.differences, self.margin)

    def labelled(self, label: Callable[[str], str]) -> "Comparison":
        """The same comparison with other names of methods and of axes."""

        def pairs(found: Iterable[Any]) -> tuple[Any, ...]:
            return tuple(dataclasses.replace(each, pair=tuple(map(label, each.pair))) for each in found)

        methods = tuple(map(label, self.methods))
        failed = tuple((label(at), tuple((label(name), value) for name, value in where)) for at, where in self.failed)
        names: dict[str, Any] = {"methods": methods, "failed": failed}
        return dataclasses.replace(self, differences=pairs(self.differences), rates=pairs(self.rates), **names)

    @property
    def incomplete(self) -> bool:
        return bool(self.failed or self.missing)

    @property
    def enough_seeds(self) -> bool:
        return all(each.seeds >= LEAST_SEEDS for each in self.differences)

    @property
    def plan(self) -> "SeedPlan":
        """How many seeds would decide with a probability of 80 %.

        The plan assumes methods that do not differ. If an open pair differs (p < 5 %, by Bonferroni's inequality over
        pairs), or if that many seeds have not decided, there is a difference near the margin, and the plan assumes the
        one that was found.
        """
        tested = [each for each in self.differences if each.seeds > 1 and each.error > 0]
        if not tested or not self.margin:
            return SeedPlan(None, True)
        deviations = [each.error * math.sqrt(each.seeds) for each in tested]
        freedom = (min(each.seeds for each in tested) - 1) * (len(self.methods) - 1)
        planned = seeds_needed(self.margin, deviations, freedom)
        open_pairs = [each for each in tested if judge([each], self.margin) is Verdict.INCONCLUSIVE]
        if (planned is None or planned > len(self.seeds)) and all(each.p * len(tested) > 0.05 for each in open_pairs):
            return SeedPlan(planned, True)
        gaps = [abs(self.margin - abs(each.mean)) for each in open_pairs]
        found = seeds_needed(min(gaps), [max(deviations)], freedom) if gaps and min(gaps) > 0 else None
        return SeedPlan(None if found is None else max(found, len(self.seeds) + 1), False)


@dataclasses.dataclass(frozen=True)
class SeedPlan:
    """The number of seeds that would decide, None if too many; and whether it assumes methods that do not differ."""

    seeds: int | None
    no_difference: bool


def judge(differences: Iterable[Difference], margin: float) -> Verdict:
    """The verdict by the 90 % intervals alone."""
    ends = np.array([each.interval() for each in differences])
    equivalent, different = decide(ends[:, 0], ends[:, 1], margin)
    if different:
        return Verdict.DIFFERENT
    return Verdict.EQUIVALENT if equivalent else Verdict.INCONCLUSIVE


def decide(low: np.ndarray, high: np.ndarray, margin: Any) -> tuple[Any, Any]:
    """Whether all intervals of the last axis lie inside the margin, and whether any lies wholly outside."""
    inside = (low > -margin) & (high < margin)
    outside = (low > margin) | (high < -margin)
    return inside.all(axis=-1), outside.any(axis=-1)


def compare(table: Table, terms: Terms, methods: Sequence[str] | None = None) -> Comparison:
    """Compares the methods of a table that have runs; only those in `methods` if given."""
    asked = table.methods if methods is None else methods
    ran = table.ran(asked)
    values = {method: table.values(method) for method in ran}
    ends = table.runs[table.runs.method.isin(asked)].status
    failed = table.runs[(table.runs.status == "failed") & table.runs.method.isin(ran)].itertuples()
    return Comparison(
        ran,
        tuple(difference_of(pair, values[pair[0]], values[pair[1]]) for pair in itertools.combinations(ran, 2)),
        margin_in(table, terms, ran),
        terms,
        table.direction,
        divergence_rates(table, ran),
        tuple((run.method, (*table.named(table.rows[run.row]).items(), ("seed", run.seed))) for run in failed),
        int((ends == MISSING).sum()),
        same_runs_diverged(table, ran),
        tuple(seed for seed in table.seeds if seed in {*table.runs.seed[table.runs.status == DONE]}),
    )


def margin_in(table: Table, terms: Terms, methods: Sequence[str] | None = None) -> float | None:
    """The margin in the unit of a table; None without one, or while no run is done."""
    chosen = table.methods if methods is None else methods
    means = [mean for row in table.rows for method in chosen if (mean := table.cell(row, method).mean) is not None]
    return terms.margin.absolute(math.fsum(means) / len(means)) if terms.margin and means else None


def cell_differences(table: Table, row: Row, pairs: Iterable[Pair]) -> list[Difference]:
    """The differences of pairs in a single cell."""
    at = table.rows.index(row)
    return [difference_of(pair, *(table.values(method)[at : at + 1] for method in pair)) for pair in pairs]


# How many seeds it takes to show that methods are equivalent, if they are.
POWER = 0.8
MOST = 1000  # seeds; if more are needed, the margin is too small to test
# Integrals over a chi square distribution are means over this many of its quantiles.
NODES = 100


def equivalence_power(margin: float, deviations: Sequence[float], seeds: int, freedom: float = math.inf) -> float:
    """A lower bound of the probability that equal methods are found equivalent, by Bonferroni's inequality over pairs.

    The probability that methods twice the margin apart are found different is never smaller: for this, one bound of one
    pair must clear the margin, whereas equivalence takes both bounds of all pairs.

    Args:
        margin: The margin of the verdict.
        deviations: The standard deviation over seeds of the difference of each pair.
        seeds: Number of seeds.
        freedom: The degrees of freedom of the deviations. The fewer, the less certain the deviations are; the
            probability is the mean over their possible true values.
    """
    if seeds < 2:
        return 0.0
    real = np.ones(1) if math.isinf(freedom) else np.sqrt(freedom / _chi_square(freedom))  # true deviation / estimate
    reach = _quantile(seeds - 1) * np.sqrt(_chi_square(seeds - 1) / (seeds - 1))
    room = margin * math.sqrt(seeds) / np.multiply.outer(real, np.maximum(deviations, 1e-12))
    inside = np.maximum(0.0, 2 * stats.norm.cdf(room[..., None] - reach) - 1).mean(axis=-1)
    return float(np.maximum(0.0, 1 - (1 - inside).sum(axis=-1)).mean())


def seeds_needed(margin: float, deviations: Sequence[float], freedom: float = math.inf) -> int | None:
    """The smallest number of seeds with a power of 80 %, at least 3; None if `MOST` are too few.

    >>> seeds_needed(1.0, [1.0]), seeds_needed(1.0, [1.0, 1.0, 1.0]), seeds_needed(1.0, [1.0], freedom=4)
    (11, 14, 17)
    """

    seeds = range(LEAST_SEEDS, MOST + 1)
    found = bisect.bisect_left(
        seeds, True, key=lambda count: equivalence_power(margin, deviations, count, freedom) >= POWER
    )
    return seeds[found] if found < len(seeds) else None


@functools.cache
def _chi_square(freedom: float) -> np.ndarray:
    return np.asarray(stats.chi2.ppf((np.arange(NODES) + 0.5) / NODES, freedom))


@functools.cache
def _quantile(freedom: float) -> float:
    return float(stats.t.ppf(0.95, freedom))
