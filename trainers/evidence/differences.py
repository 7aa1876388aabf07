"""The difference between two methods, with seeds as the sample.

Runs of one seed share their initial weights and the order of their data, whatever their method and cell. So a
difference is taken within each cell and seed and averaged over the cells, which leaves one number for each seed. These
numbers are independent of each other, which is all that the t interval of their mean requires. In terms of linear
models: effects of cell by seed (blocks) and of cell by method (strata), ordinary least squares, and standard errors
clustered by seed. A pooled residual would have more degrees of freedom, but it would mistake the noise of two similar
methods for that of a third, and cells that share a seed for independent ones.
"""

import dataclasses
import functools
import math
from typing import Any

import numpy as np
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW

# The names of two methods; their difference is second - first.
Pair = tuple[str, str]
LEVELS = (0.90, 0.95)  # two one-sided tests at 5 % are one interval at 90 %
# Metrics are float32 numbers: a smaller relative difference is due to rounding alone.
ROUNDING = 1e-6


@dataclasses.dataclass(frozen=True)
class Difference:
    """An estimate with its standard error; NaN where there are fewer than two seeds."""

    pair: Pair  # the methods
    seeds: int  # number of seeds
    cells: int  # number of cells that it is averaged over
    mean: float  # second - first
    error: float  # the standard error of the mean
    freedom: float  # its degrees of freedom

    def interval(self, level: float = LEVELS[0]) -> tuple[float, float]:
        low, high = t_interval(self.mean, self.error, self.freedom, level)
        return float(low), float(high)

    @property
    def p(self) -> float:
        """The p value of the two-sided t test of no difference."""
        return 2 * float(stats.t.sf(abs(self.mean) / self.error, self.freedom)) if self.error > 0 else math.nan


def t_interval(mean: Any, error: Any, freedom: Any, level: float) -> tuple[Any, Any]:
    """The t interval of estimates, which may be arrays."""
    reach = stats.t.ppf((1 + level) / 2, freedom) * error
    return mean - reach, mean + reach


def difference_of(pair: Pair, first: np.ndarray, second: np.ndarray) -> Difference:
    """The difference of two methods from their values, [cells, seeds] each; NaN for a run without a value."""
    apart = second - first
    cells, seeds = ~np.isnan(apart).all(axis=1), ~np.isnan(apart).all(axis=0)
    apart = apart[cells][:, seeds]
    count = apart.shape[1]
    if count == 0:
        return Difference(pair, 0, 0, math.nan, math.nan, 0)
    scores = seed_scores(apart)
    if count == 1:
        return Difference(pair, 1, len(apart), float(scores[0]), math.nan, 0)
    (mean,), (spread,) = mean_and_error(scores)
    error = max(float(spread), rounding_error(np.stack([first, second]), len(apart), count))
    return Difference(pair, count, len(apart), float(mean), error, count - 1)


def mean_and_error(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and their standard errors over seeds, the last axis; all other axes are flattened."""
    described = DescrStatsW(scores.reshape(-1, scores.shape[-1]).T)
    return np.asarray(described.mean), np.asarray(described.std_mean)


def seed_scores(apart: np.ndarray) -> np.ndarray:
    """One number for each seed, [..., seeds], from differences [..., cells, seeds].

    If no run is missing, it is the mean over the cells. Otherwise, it is the seed's contribution to the mean of the
    cells' means, so that a missing run is not mistaken for a difference between cells. The mean of the scores is the
    estimate, and their standard error is the one that is clustered by seed.
    """
    if not np.isnan(apart).any():
        return np.asarray(apart.mean(axis=-2))
    means = np.nanmean(apart, axis=-1, keepdims=True)
    counts = (~np.isnan(apart)).sum(axis=-1, keepdims=True)
    influence = np.nan_to_num((apart - means) / counts).mean(axis=-2)
    return np.asarray(means.mean(axis=-2) + apart.shape[-1] * influence)


def rounding_error(values: np.ndarray, cells: int, seeds: int) -> float:
    """The standard error of a difference from rounding alone, the lower limit of any other.

    Values such as the error on 1,000 images come in steps, so three seeds with the same difference prove little.
    """
    return resolution(values) / math.sqrt(6 * cells * seeds)


def resolution(values: np.ndarray) -> float:
    """The largest step that all values are multiples of, up to a constant; almost 0 for real numbers.

    >>> round(resolution(np.array([5.1, 5.5, 4.9, math.nan])), 9), resolution(np.array([2.0, 2.0]))
    (0.2, 0.0)
    """
    present = np.unique(values[~np.isnan(values)])
    least = ROUNDING * float(np.abs(present).max(initial=0.0))

    def common(first: float, second: float) -> float:
        """Euclid's algorithm, for numbers that are rounded."""
        while second > least:
            rest = first % second
            first, second = second, 0.0 if second - rest <= least else rest
        return first

    gaps = [float(gap) for gap in np.diff(present) if gap > least]
    return functools.reduce(common, gaps) if gaps else 0.0
