"""A difference is that of a linear model with blocks, whose errors are clustered by seed."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from trainers.evidence.differences import difference_of, resolution

PAIR = ("untuned_linear", "radam")


def made(cells=4, seeds=5, seed=0):
    """Values of two methods, [2, cells, seeds], whose seeds share much."""
    rng = np.random.default_rng(seed)
    blocks = 20 + rng.normal(0, 1, (cells, 1)) + rng.normal(0, 0.5, seeds)
    return blocks + rng.normal(0, 0.1, (2, cells, seeds))


def least_squares(first, second):
    """Value = cell by seed + cell by method; the contrast is the mean over cells. Mean and clustered error."""
    methods, cells, seeds = np.indices((2, *first.shape))
    frame = pd.DataFrame(
        {"y": np.stack([first, second]).ravel(), "m": methods.ravel(), "c": cells.ravel(), "s": seeds.ravel()}
    )
    whole = frame.y.notna().groupby([frame.c, frame.s]).transform("all")
    frame = frame[whole]
    blocks = pd.get_dummies(frame.c.astype(str) + "/" + frame.s.astype(str), dtype=float)
    effects = pd.DataFrame({f"cell {c}": ((frame.c == c) & (frame.m == 1)).astype(float) for c in sorted(set(frame.c))})
    fit = sm.OLS(frame.y, pd.concat([effects, blocks], axis=1)).fit(
        cov_type="cluster", cov_kwds={"groups": frame.s, "use_correction": False}
    )
    contrast = np.r_[np.full(effects.shape[1], 1 / effects.shape[1]), np.zeros(blocks.shape[1])]
    found, count = fit.t_test(contrast), frame.s.nunique()
    return found.effect.item(), found.sd.item() * math.sqrt(count / (count - 1))


@pytest.mark.parametrize(("cells", "seeds"), [(1, 3), (4, 5), (9, 2)])
def test_it_is_least_squares_with_blocks_and_errors_clustered_by_seed(cells, seeds):
    first, second = made(cells, seeds)
    found = difference_of(PAIR, first, second)
    assert (found.mean, found.error) == pytest.approx(least_squares(first, second), rel=1e-9)
    assert (found.seeds, found.cells, found.freedom) == (seeds, cells, seeds - 1)


def test_so_it_is_where_runs_are_missing():
    first, second = made()
    first[0, 1] = second[2, 3] = second[3, :3] = math.nan
    found = difference_of(PAIR, first, second)
    assert (found.mean, found.error) == pytest.approx(least_squares(first, second), rel=1e-9)


def test_the_intervals_are_those_of_the_paired_tests_of_scipy_and_statsmodels():
    first, second = made(cells=1)
    found = difference_of(PAIR, first, second)
    expected = stats.ttest_rel(second[0], first[0])
    for level in (0.90, 0.95):
        assert found.interval(level) == pytest.approx(expected.confidence_interval(level), rel=1e-9)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
    margin = max(map(abs, found.interval()))  # where the two one-sided tests are at 5 %
    p, _, _ = ttost_paired(second[0], first[0], -margin, margin)
    assert p == pytest.approx(0.05, rel=1e-9)


def test_what_seeds_share_does_not_count():
    first, second = made()
    moved = np.array([3.0, -1.0, 40.0, 0.0, 7.0])
    found, other = difference_of(PAIR, first, second), difference_of(PAIR, first + moved, second + moved)
    assert other.error == pytest.approx(found.error, rel=1e-9)
    apart = difference_of(PAIR, first, second + moved)
    assert apart.error > 10 * found.error


def test_a_cell_that_one_method_lacks_is_no_part_of_it():
    first, second = made()
    second[1] = math.nan
    kept = [0, 2, 3]
    found = difference_of(PAIR, first, second)
    assert (found.mean, found.cells) == (pytest.approx(np.mean(second[kept] - first[kept]), rel=1e-12), 3)


def test_fewer_than_two_seeds_have_no_interval():
    nothing = np.full((2, 3), math.nan)
    assert difference_of(PAIR, nothing, nothing).seeds == 0
    one = difference_of(PAIR, np.array([[1.0], [2.0]]), np.array([[3.0], [5.0]]))
    assert (one.seeds, one.mean) == (1, 2.5)
    assert math.isnan(one.error)


def test_the_same_difference_in_every_seed_is_no_certainty_for_values_that_come_in_steps():
    first = np.array([[5.1, 5.5, 4.9]])
    found = difference_of(PAIR, first, first + 0.1)
    assert found.mean == pytest.approx(0.1)
    assert found.error == pytest.approx(0.1 / math.sqrt(18), rel=1e-6)  # uniform between -0.05 and 0.05, twice


def test_the_resolution_is_the_step_of_values_and_nothing_for_real_numbers():
    errors = np.round(np.random.default_rng(0).uniform(4, 6, 20), 1)
    assert resolution(errors) == pytest.approx(0.1, rel=1e-6)
    assert resolution(np.random.default_rng(0).uniform(4, 6, 20)) < 1e-3
    assert resolution(np.array([math.nan])) == 0
