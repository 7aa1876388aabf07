import math

import numpy as np
import pytest
from scipy import stats

from tests.trainers.sweeps import noisy_sweep
from trainers.sweeps.comparison import compare
from trainers.sweeps.findings import findings
from trainers.sweeps.statistics import holm, paired_difference
from trainers.sweeps.table import tabulate

THREE = ("untuned_exponential", "untuned_linear", "radam")
EQUAL = dict.fromkeys(THREE, 0.0)


def table_of(results, direction="min"):
    grid = {"warmup": list(dict.fromkeys(result.values["warmup"] for result in results))}
    return tabulate(results, "loss", direction, grid)


def verdicts(results, direction="min"):
    table = table_of(results, direction)
    return findings(table, compare(table))[1:]


def array(table):
    """The values of a full table: methods, rows, seeds."""
    return np.array([[list(table.cell(row, method).values.values()) for row in table.rows] for method in table.methods])


def without(results, *points):
    return [
        run for run in results if (run.values["learning_rate"], run.values["warmup"], run.values["seed"]) not in points
    ]


@pytest.mark.parametrize("n", [2, 3, 5, 30])
def test_a_paired_difference_is_scipys(n):
    rng = np.random.default_rng(n)
    first, second = rng.normal(20, 1, n), rng.normal(20.5, 1, n)
    difference = paired_difference(list(first), list(second))
    expected = stats.ttest_rel(second, first)
    interval = expected.confidence_interval(0.95)
    assert difference.mean == pytest.approx((second - first).mean(), rel=1e-12)
    assert difference.test.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert (difference.test.low, difference.test.high) == pytest.approx((interval.low, interval.high), rel=1e-9)
    assert difference.test.p != pytest.approx(stats.ttest_ind(second, first).pvalue, rel=1e-3)


def test_a_paired_difference_by_hand():
    # Differences 0.08, 0.10, 0.12: standard error 0.02 / sqrt(3); the t quantile for 2 degrees of freedom is 4.302653.
    test = paired_difference([1.0, 1.2, 1.4], [1.08, 1.3, 1.52]).test
    reach = 4.302652729911275 * 0.02 / math.sqrt(3)
    assert (test.low, test.high) == pytest.approx((0.1 - reach, 0.1 + reach), rel=1e-9)
    # For 2 degrees of freedom p = 1 - t / sqrt(t^2 + 2), and t^2 is 75.
    assert test.p == pytest.approx(1 - math.sqrt(75 / 77), rel=1e-9)


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_differences_without_spread_have_no_p_value(shift):
    values = [19.0, 20.1, 21.7]
    difference = paired_difference(values, [np.float32(value + shift).item() for value in values])
    assert difference.test is None
    assert difference.n == 3
    assert difference.mean == pytest.approx(shift, abs=1e-6)
    assert (difference.mean == 0) == (shift == 0)


def test_fewer_than_two_pairs_have_no_test():
    assert paired_difference([], []).n == 0
    assert paired_difference([1.0], [3.0]).test is None
    assert paired_difference([1.0], [3.0]).mean == 2.0


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ([], []),
        ([0.04], [0.04]),
        ([0.01, 0.02, 0.03], [0.03, 0.04, 0.04]),
        ([0.03, 0.005, 0.9, 0.01], [0.06, 0.02, 0.9, 0.03]),
        ([0.5, 0.6, 0.7], [1.0, 1.0, 1.0]),
    ],
)
def test_holm_by_hand(p_values, adjusted):
    assert holm(p_values) == pytest.approx(adjusted, rel=1e-12)


def test_a_row_is_compared_seed_by_seed():
    table = table_of(noisy_sweep(EQUAL, seeds=5))
    values, comparison = array(table), compare(table)
    for index, row in enumerate(table.rows):
        difference = comparison.row_differences[row, ("untuned_linear", "radam")]
        expected = stats.ttest_rel(values[2, index], values[1, index])
        assert difference.mean == pytest.approx((values[2, index] - values[1, index]).mean(), rel=1e-9)
        assert difference.test.p == pytest.approx(expected.pvalue, rel=1e-7)


def test_the_whole_table_is_compared_by_the_mean_of_each_seed():
    table = table_of(noisy_sweep(EQUAL, seeds=5))
    by_seed = array(table).mean(axis=1)
    overall = compare(table).overall
    assert [each.pair for each in overall] == [(THREE[0], THREE[1]), (THREE[0], THREE[2]), (THREE[1], THREE[2])]
    p_values = [stats.ttest_rel(by_seed[b], by_seed[a]).pvalue for a, b in ((0, 1), (0, 2), (1, 2))]
    assert [each.difference.test.p for each in overall] == pytest.approx(p_values, rel=1e-7)
    assert [each.adjusted_p for each in overall] == pytest.approx(holm(p_values), rel=1e-7)
    assert {(each.rows, each.difference.n) for each in overall} == {(4, 5)}


def test_spreads_are_those_of_numpy():
    table = table_of(noisy_sweep(EQUAL, seeds=5))
    values, comparison = array(table), compare(table)
    methods = values.mean(axis=2).std(axis=0, ddof=1)
    seeds = np.sqrt(values.var(axis=2, ddof=1).mean(axis=0))
    spreads = [comparison.row_spreads[row] for row in table.rows]
    assert [spread.methods for spread in spreads] == pytest.approx(methods, rel=1e-9)
    assert [spread.seeds for spread in spreads] == pytest.approx(seeds, rel=1e-9)
    assert [spread.chance for spread in spreads] == pytest.approx(seeds / math.sqrt(5), rel=1e-9)
    assert comparison.spread.methods == pytest.approx(math.sqrt((methods**2).mean()), rel=1e-9)
    assert comparison.spread.seeds == pytest.approx(math.sqrt((seeds**2).mean()), rel=1e-9)


def test_a_planted_difference_is_found():
    first, second, third = verdicts(noisy_sweep({**EQUAL, "radam": 0.3}, seeds=5))
    assert "no difference shown" in first
    assert second.startswith("radam - untuned_exponential: +0.")
    assert "radam is worse, by 0." in second
    assert "radam is worse, by 0." in third
    assert "radam is better, by 0." in verdicts(noisy_sweep({**EQUAL, "radam": 0.3}, seeds=5), "max")[2]


def test_pairing_finds_what_the_spread_of_seeds_hides():
    table = table_of(noisy_sweep({"untuned_linear": 0.0, "radam": 0.1}, seeds=5, noise=0.05))
    first, second = array(table).mean(axis=1)
    assert stats.ttest_ind(first, second).pvalue > 0.05
    assert compare(table).overall[0].adjusted_p < 0.01


def test_equal_methods_are_called_different_once_in_twenty_sweeps_at_most():
    found = 0
    for seed in range(400):
        overall = compare(table_of(noisy_sweep(EQUAL, seeds=4, rows=2, seed=seed))).overall
        found += any(each.adjusted_p < 0.05 for each in overall)
    assert found <= 400 * 0.05 + 3 * math.sqrt(400 * 0.05 * 0.95)


def test_equal_methods_spread_as_chance_says_when_runs_are_independent():
    ratios = []
    for seed in range(100):
        results = noisy_sweep(EQUAL, noise=3.0, seed=seed)  # beside which what seeds share is nothing
        spread = compare(table_of(results)).spread
        ratios.append(spread.methods**2 / spread.chance**2)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.15)


def test_none_found_is_said_with_what_the_seeds_leave_room_for():
    results = noisy_sweep({"untuned_linear": 0.0, "radam": 0.0}, seeds=5)
    test = compare(table_of(results)).overall[0].difference.test
    room = max(-test.low, test.high)
    (sentence,) = verdicts(results)
    assert "Holm" not in sentence  # there is one pair
    assert sentence.endswith(f"no difference shown; one of up to {room:.2f} would fit these seeds, a larger one not.")


def test_a_p_value_that_only_looks_small_among_several_is_no_difference():
    for seed in range(100):
        results = noisy_sweep(EQUAL, seeds=4, rows=2, seed=seed)
        by_chance = [
            sentence
            for each, sentence in zip(compare(table_of(results)).overall, verdicts(results), strict=True)
            if each.difference.test.p < 0.05 <= each.adjusted_p
        ]
        if by_chance:
            assert "no difference shown, as one p value of several may be that small by chance; one of" in by_chance[0]
            return
    pytest.fail("no such sweep")


def test_equal_runs_have_no_p_value():
    (sentence,) = verdicts(noisy_sweep({"untuned_linear": 0.0, "radam": 0.0}, noise=0.0))
    assert sentence == "radam - untuned_linear: equal for every seed, no p value (3 seeds, 4 of 4 rows)."
    (sentence,) = verdicts(noisy_sweep({"untuned_linear": 0.0, "radam": 0.5}, noise=0.0))
    assert sentence == "radam - untuned_linear: +0.50 for every seed alike, no p value (3 seeds, 4 of 4 rows)."


def test_one_seed_is_too_few():
    (sentence,) = verdicts(noisy_sweep({"untuned_linear": 0.0, "radam": 0.5}, seeds=1, noise=0.0))
    assert sentence == "radam - untuned_linear: +0.50 (1 seed, 4 of 4 rows): too few seeds for a test."


def test_a_row_with_a_missing_run_leaves_the_overall_comparison_and_keeps_its_own():
    effects = {"untuned_linear": 0.0, "radam": 0.0}
    results = noisy_sweep(effects, seeds=4)
    table = table_of(without(results, (0.1, "radam", 2)))
    comparison = compare(table)
    assert (comparison.overall[0].rows, comparison.overall[0].difference.n) == (3, 4)
    full = array(table_of(results))  # rows ascend: 0.1 is the last
    expected = stats.ttest_rel(full[1, :3].mean(axis=0), full[0, :3].mean(axis=0))
    assert comparison.overall[0].difference.test.p == pytest.approx(expected.pvalue, rel=1e-7)
    shared = full[:, 3][:, [0, 1, 3]]
    difference = comparison.row_differences[table.rows[3], ("untuned_linear", "radam")]
    assert (difference.n, difference.mean) == (3, pytest.approx((shared[1] - shared[0]).mean(), rel=1e-9))
    spread = comparison.row_spreads[table.rows[3]]
    assert spread.methods == pytest.approx(shared.mean(axis=1).std(ddof=1), rel=1e-9)


def test_a_seed_that_never_ran_does_not_stop_the_comparison():
    results = noisy_sweep({"untuned_linear": 0.0, "radam": 0.0}, seeds=4)
    grid = {"warmup": ["untuned_linear", "radam"], "seed": [0, 1, 2, 3, 4]}
    overall = compare(tabulate(results, "loss", "min", grid)).overall[0]
    assert (overall.rows, overall.difference.n) == (4, 4)
