"""Simulates Adam at a local minimum: the size of its updates when the gradient is pure noise.

The paper's argument for warmup: even there, where nothing is left to learn, Adam's first updates are six times as large
as its later ones.
"""

import dataclasses
import itertools
import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tfwarmup import checks, formula, warmups

QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}

# Parameters per random stream. Each stream has its own generator, so the result does not depend on the threads.
_STREAM = 8192
# Iterations whose magnitudes are in memory at the same time.
_BLOCK = 64


@dataclasses.dataclass(frozen=True)
class Magnitudes:
    """Update magnitudes in units of alpha: quantiles over the parameters and root mean square, at t = 1, 2, 3, ..."""

    t: np.ndarray
    q05: np.ndarray
    q25: np.ndarray
    median: np.ndarray
    q75: np.ndarray
    q95: np.ndarray
    rms: np.ndarray


def simulate_updates(
    parameters: int = 25_000,
    iterations: int = 1000,
    *,
    variance: float = 1e-9,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 0.0,
    warmup: Any = "none",
    period: float | None = None,
    seed: int = 0,
) -> Magnitudes:
    """Runs Adam on independent normal gradients of mean zero and returns the size of its updates.

    Args:
        parameters: The number of parameters, each with its own gradients.
        iterations: The number of updates.
        variance: The variance of the gradients. With epsilon = 0, it affects only momentum steps.
        beta_1: The discount of the first moment, in [0, 1).
        beta_2: The discount of the second moment, in (0, 1).
        epsilon: The paper's epsilon, added after the bias correction.
        warmup: A name of `tfwarmup.WARMUPS`, an object of `tfwarmup.warmups`, or a function of t. RAdam itself, which
            has momentum steps, is `warmups.Rectified(first_steps="momentum")`.
        period: The warmup period, for "linear" and "exponential" by name.
        seed: The same seed gives the same result.

    >>> magnitudes = simulate_updates(parameters=1000, iterations=200)
    >>> round(float(magnitudes.median[0]), 6), round(float(magnitudes.median[-1]), 1)
    (1.0, 0.2)

    Reference:
        [Ma and Yarats, 2021](https://arxiv.org/abs/1910.04209), section "High Initial Update Step Magnitudes
        Necessitate Warmup in Adam"
    """
    checks.integer("parameters", parameters, least=1)
    checks.integer("iterations", iterations, least=1)
    checks.integer("seed", seed, least=0)
    updates = _Updates.of(
        iterations,
        warmups.get(warmup, period=period).with_beta_2(checks.beta_2(beta_2)),
        checks.fraction("beta_1", beta_1),
        checks.beta_2(beta_2),
        checks.not_negative("epsilon", epsilon),
        math.sqrt(checks.positive("variance", variance)),
    )
    sizes = _stream_sizes(parameters)
    seeds = np.random.SeedSequence(seed).spawn(len(sizes))
    streams = [_Stream(size, np.random.default_rng(own), updates) for size, own in zip(sizes, seeds, strict=True)]
    rows = np.empty((iterations, len(QUANTILES) + 1))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for first, block in _blocks(streams, parameters, iterations, pool):
            rows[first : first + len(block)] = _statistics(block, pool)
    return Magnitudes(np.arange(1, iterations + 1), *rows.T.copy())


@dataclasses.dataclass(frozen=True)
class _Updates:
    """The numbers of every update, with gradients in units of their standard deviation.

    In these units, only epsilon and momentum steps depend on the deviation.
    """

    beta_1: float
    beta_2: float
    rate: np.ndarray
    epsilon: np.ndarray

    @classmethod
    def of(
        cls, iterations: int, warmup: warmups.Warmup, beta_1: float, beta_2: float, epsilon: float, deviation: float
    ) -> "_Updates":
        t = np.arange(1, iterations + 1)
        alpha = np.where(t <= warmup.momentum_steps, deviation, 1.0)
        numbers = formula.update(alpha, t, warmup, beta_1, beta_2, epsilon / deviation)
        return cls(beta_1, beta_2, numbers.rate.astype(np.float32), numbers.epsilon.astype(np.float32))

    def magnitude(self, index: int, m: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
        np.sqrt(v, out=out)
        if self.epsilon[index]:
            out += self.epsilon[index]
        np.divide(m, out, out=out)
        out *= self.rate[index]
        np.abs(out, out=out)


class _Stream:
    """A part of the parameters, with their gradients and moments."""

    def __init__(self, size: int, generator: np.random.Generator, updates: _Updates) -> None:
        self.generator, self.updates = generator, updates
        self.m, self.v, self.change = (np.zeros(size, np.float32) for _ in range(3))

    def advance(self, first: int, out: np.ndarray) -> None:
        """Makes updates first + 1, first + 2, ..., and writes the magnitudes of each to a row of `out`."""
        gradients = self.generator.standard_normal(out.shape, np.float32)
        for row, gradient in enumerate(gradients):
            self._average(self.m, gradient, self.updates.beta_1)
            self._average(self.v, np.square(gradient, out=gradient), self.updates.beta_2)
            self.updates.magnitude(first + row, self.m, self.v, out[row])

    def _average(self, average: np.ndarray, value: np.ndarray, beta: float) -> None:
        np.subtract(value, average, out=self.change)
        self.change *= np.float32(1 - beta)
        average += self.change


def _stream_sizes(parameters: int) -> list[int]:
    count = -(-parameters // _STREAM)
    return [parameters // count + (number < parameters % count) for number in range(count)]


def _blocks(
    streams: list[_Stream], parameters: int, iterations: int, pool: ThreadPoolExecutor
) -> Iterator[tuple[int, np.ndarray]]:
    """Yields the magnitudes of a few iterations at a time. The streams run in threads: numpy releases Python's lock."""
    edges = np.cumsum([0, *(len(stream.m) for stream in streams)])
    for first in range(0, iterations, _BLOCK):
        block = np.empty((min(_BLOCK, iterations - first), parameters), np.float32)
        parts = (block[:, start:end] for start, end in itertools.pairwise(edges))
        list(pool.map(_Stream.advance, streams, itertools.repeat(first), parts))
        yield first, block


def _statistics(block: np.ndarray, pool: ThreadPoolExecutor) -> np.ndarray:
    """Quantiles (interpolated, as `np.quantile` does) and root mean square of every row; sorts the block in place."""
    list(pool.map(np.ndarray.sort, block))  # vectorized, and faster than selecting ten positions
    positions = np.array(list(QUANTILES.values())) * (block.shape[1] - 1)
    below = np.floor(positions).astype(int)
    above = np.minimum(below + 1, block.shape[1] - 1)
    low, high = block[:, below].astype(float), block[:, above]
    rms = np.sqrt(np.square(block).mean(axis=1, dtype=np.float64))
    return np.column_stack([low + (high - low) * (positions - below), rms])
