"""The verdicts are right as often as they should be: thousands of made-up sweeps whose truth is known."""

import dataclasses
import functools
import itertools
import math

import numpy as np
import pytest

from trainers.evidence.comparison import POWER, decide, equivalence_power, seeds_needed
from trainers.evidence.differences import mean_and_error, seed_scores, t_interval

SWEEPS = 2000
MARGIN = 0.2
PAIRS = tuple(itertools.combinations(range(3), 2))


@dataclasses.dataclass(frozen=True)
class World:
    """How runs of three methods vary, beside what they differ by. Numbers are standard deviations, in points.

    Args:
        cells: One number for each cell: what a run of it varies by on its own.
        block: What all methods share in a cell and seed.
        seed: What a method has in all cells of a seed.
        alike: Whether the first two methods share most of what they vary by, and the third does not.
        tails: Degrees of freedom of Student's t in the place of a normal distribution.
    """

    cells: tuple[float, ...] = (0.4,) * 9
    block: float = 0.4
    seed: float = 0.0
    alike: bool = False
    tails: float = math.inf

    def sweeps(self, seeds, effect=0.0, count=SWEEPS, seed=0):
        """Values, [count, methods, cells, seeds]; the third method differs by the effect."""
        rng = np.random.default_rng(seed)
        cells = np.array(self.cells)[:, None]
        shape = (count, 3, len(self.cells), seeds)
        own = self._draw(rng, shape)
        if self.alike:
            own[:, 1] = 0.95 * own[:, 0] + math.sqrt(1 - 0.95**2) * own[:, 1]
        values = 5 + cells * own + self.block * self._draw(rng, (count, 1, *shape[2:]))
        values += self.seed * self._draw(rng, (count, 3, 1, seeds))
        values[:, 2] += effect
        return values

    def _draw(self, rng, shape):
        if math.isinf(self.tails):
            return rng.standard_normal(shape)
        return rng.standard_t(self.tails, shape) / math.sqrt(self.tails / (self.tails - 2))

    @functools.cached_property
    def seeds_needed(self):
        """From the real spread, which takes many seeds to know."""
        _, errors = estimates(self.sweeps(4000, count=20))
        return seeds_needed(MARGIN, np.sqrt((errors**2 * 4000).mean(axis=0)))


WORLDS = {
    "nine cells": World(),
    "one cell": World(cells=(0.25,)),
    "runs that share nothing": World(block=0.0),
    "runs that share nearly all": World(block=2.0),
    "heavy tails": World(cells=(0.25,), tails=3),
    "unequal cells": World(cells=(0.1, 0.1, 0.2, 0.3, 0.3, 0.5, 0.5, 0.8, 1.5)),
    "seeds that favour a method in every cell": World(seed=0.15),
    "two methods alike": World(alike=True),
    "all at once": World(cells=(0.1, 0.2, 0.4, 1.2), seed=0.1, alike=True, tails=4),
}


def estimates(values):
    """Means and errors of all pairs, [sweeps, pairs] each."""
    scores = np.stack([seed_scores(values[:, b] - values[:, a]) for a, b in PAIRS], axis=1)
    means, errors = mean_and_error(scores)
    return means.reshape(len(values), -1), errors.reshape(len(values), -1)


def verdicts(values, margin=MARGIN):
    """How often methods are found equivalent, and how often different."""
    means, errors = estimates(values)
    low, high = t_interval(means, errors, values.shape[-1] - 1, 0.90)
    equivalent, different = decide(low, high, margin)
    return equivalent.mean(), different.mean()


def at_most(share, count=SWEEPS):
    """What a share may come out as by the luck of so many draws: three standard deviations."""
    return share + 3 * math.sqrt(share * (1 - share) / count)


@pytest.fixture(params=WORLDS, ids=str)
def world(request):
    return WORLDS[request.param]


def test_equal_methods_are_found_equivalent_at_the_recommended_seeds(world):
    equivalent, different = verdicts(world.sweeps(world.seeds_needed))
    assert equivalent >= POWER
    assert different <= 0.01


def test_methods_that_differ_by_the_margin_are_seldom_found_equivalent(world):
    for seeds in (3, 5, world.seeds_needed, 40):
        equivalent, _ = verdicts(world.sweeps(seeds, effect=MARGIN))
        assert equivalent <= at_most(0.05), seeds


def test_methods_that_differ_by_twice_the_margin_are_found_different_at_the_recommended_seeds(world):
    equivalent, different = verdicts(world.sweeps(world.seeds_needed, effect=2 * MARGIN))
    assert different >= POWER
    assert equivalent <= 0.01


def test_more_seeds_never_make_a_verdict_less_right(world):
    for effect, right in ((0.0, 0), (0.5 * MARGIN, 0), (1.5 * MARGIN, 1), (3 * MARGIN, 1)):
        found = [verdicts(world.sweeps(seeds, effect, count=1000)) for seeds in (3, 6, 12, 24, 48)]
        shares = [each[right] for each in found]
        assert all(later >= earlier - 0.05 for earlier, later in itertools.pairwise(shares)), (effect, shares)
        assert shares[-1] == max(shares), (effect, shares)
        assert max(each[1 - right] for each in found) <= at_most(0.05, 1000)


def test_seeds_recommended_from_a_few_seeds_suffice_on_average():
    """The plan of a pilot with 4 seeds, which knows the spread only roughly; then as many seeds as it asks for."""
    world, pilot, most = WORLDS["one cell"], 4, 400
    values = world.sweeps(most, count=300)
    _, errors = estimates(values[..., :pilot])
    found = []
    for one, deviations in zip(values, errors * math.sqrt(pilot), strict=True):
        seeds = seeds_needed(MARGIN, deviations, freedom=2 * (pilot - 1))
        found.append(verdicts(one[None, ..., : max(pilot, seeds)])[0])
    assert np.mean(found) >= POWER - 3 * math.sqrt(POWER * (1 - POWER) / len(found))


def pooled_equivalent(values):
    """The same by the pooled residual of blocks and strata, which takes all cells and pairs for equally noisy."""
    _, methods, cells, seeds = values.shape
    residuals = values - values.mean(axis=1, keepdims=True)
    residuals -= residuals.mean(axis=3, keepdims=True)
    freedom = cells * (seeds - 1) * (methods - 1)
    error = np.sqrt(2 * (residuals**2).sum(axis=(1, 2, 3)) / freedom / (cells * seeds))
    low, high = t_interval(estimates(values)[0], error[:, None], freedom, 0.90)
    return decide(low, high, MARGIN)[0].mean()


def test_a_pooled_residual_would_call_methods_equivalent_that_differ_by_the_margin():
    values = World(seed=0.3).sweeps(40, effect=MARGIN, count=4000)
    assert pooled_equivalent(values) > at_most(0.05, 4000)
    assert verdicts(values)[0] <= at_most(0.05, 4000)


def test_the_power_of_one_pair_is_that_of_a_simulation():
    rng = np.random.default_rng(0)
    for seeds, deviation in ((4, 0.5), (8, 1.0), (20, 1.5)):
        means, errors = mean_and_error(rng.normal(0, deviation, (20_000, seeds)))
        low, high = t_interval(means, errors, seeds - 1, 0.90)
        assert equivalence_power(1.0, [deviation], seeds) == pytest.approx(
            decide(low[:, None], high[:, None], 1.0)[0].mean(), abs=0.012
        )
