"""How many seeds it takes to show that methods are equivalent, if they are."""

import functools
import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

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

    def enough(seeds: int) -> bool:
        return equivalence_power(margin, deviations, seeds, freedom) >= POWER

    if not enough(MOST):
        return None
    low, high = 2, MOST  # too few for a verdict, and enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@functools.cache
def _chi_square(freedom: float) -> np.ndarray:
    return np.asarray(stats.chi2.ppf((np.arange(NODES) + 0.5) / NODES, freedom))


@functools.cache
def _quantile(freedom: float) -> float:
    return float(stats.t.ppf(0.95, freedom))
