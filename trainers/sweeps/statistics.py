"""Paired differences over seeds: mean, interval, p value; Holm's correction; spreads."""

import dataclasses
import math
from collections.abc import Sequence

from scipy import stats

from trainers.sweeps.table import deviation

CONFIDENCE = 0.95
# Metrics are float32 numbers: differences that spread by less than this share of them spread by rounding alone, and a
# test would take, say, the same 4 examples in 5000 for every seed for a certainty.
_ROUNDING = 1e-6


@dataclasses.dataclass(frozen=True)
class TTest:
    """The 95 % t interval of a mean difference, and the p value of the paired t test."""

    low: float
    high: float
    p: float

    @property
    def reach(self) -> float:
        return (self.high - self.low) / 2


@dataclasses.dataclass(frozen=True)
class Difference:
    """The mean of n paired differences; no test for fewer than two of them, or if they do not spread at all."""

    n: int
    mean: float = math.nan
    test: TTest | None = None


def paired_difference(first: Sequence[float], second: Sequence[float]) -> Difference:
    """The mean of second - first over pairs, and its test.

    >>> difference = paired_difference([1.0, 2.0, 3.0], [1.5, 2.0, 4.0])
    >>> difference.mean, round(difference.test.low, 4), round(difference.test.high, 4), round(difference.test.p, 4)
    (0.5, -0.7421, 1.7421, 0.2254)
    """
    differences = [b - a for a, b in zip(first, second, strict=True)]
    n = len(differences)
    if n == 0:
        return Difference(0)
    mean = math.fsum(differences) / n
    if n == 1:
        return Difference(1, mean)
    spread = deviation(differences)
    rounding = _ROUNDING * max(map(abs, [*first, *second]))
    if spread <= rounding:
        return Difference(n, mean if abs(mean) > rounding else 0.0)
    error = spread / math.sqrt(n)
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * error
    p = 2 * float(stats.t.sf(abs(mean) / error, n - 1))
    return Difference(n, mean, TTest(mean - reach, mean + reach, p))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p values: with no true difference, the chance that any is below 0.05 is 0.05 at the most.

    >>> [round(p, 3) for p in holm([0.04, 0.01, 0.03])]
    [0.06, 0.03, 0.06]
    """
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def pooled_deviation(groups: Sequence[Sequence[float]]) -> float | None:
    """The standard deviation within groups, each weighted by its degrees of freedom; None if there are none.

    >>> pooled_deviation([[1.0, 3.0], [10.0, 12.0], [5.0]]) == 2**0.5
    True
    """
    groups = [group for group in groups if len(group) > 1]
    freedom = sum(len(group) - 1 for group in groups)
    if freedom == 0:
        return None
    return math.sqrt(math.fsum((len(group) - 1) * deviation(group) ** 2 for group in groups) / freedom)


def root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(math.fsum(value**2 for value in values) / len(values))
