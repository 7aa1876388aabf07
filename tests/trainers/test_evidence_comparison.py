"""Verdicts on tables: what they rest on, whom they name, and what they ask for."""

import math

import pytest
from scipy import stats

from tests.trainers import sweeps
from tests.trainers.sweeps import noisy_sweep, sweep
from trainers.evidence.comparison import Verdict, compare
from trainers.evidence.findings import findings
from trainers.results.tasks import Margin, Terms

EQUIVALENT, DIFFERENT, INCONCLUSIVE = Verdict
THREE = ("untuned_exponential", "untuned_linear", "radam")
EQUAL = dict.fromkeys(THREE, 0.0)
MARGIN = Margin("a task", "*", 0.5, "points")
TERMS = Terms(MARGIN, "points", "python -m trainers.sweep --task=a_task --config=runs/a/config.json")


def table_of(results, direction="min", **grid):
    methods = list(dict.fromkeys(result.values["warmup"] for result in results))
    return sweeps.table_of(results, direction, {"warmup": methods, **grid})


def told(results, terms=TERMS, **grid):
    return findings(compare(table_of(results, **grid), terms))


def changed(value, **where):
    """A sweep of equal methods with another value at some points: None for runs that failed, NaN if they diverged."""
    runs = noisy_sweep(EQUAL, seeds=5)
    values = {tuple(run.values.items()): run.objective for run in runs}
    grid = {name: list(dict.fromkeys(run.values[name] for run in runs)) for name in runs[0].values}

    def objective(**point):
        fits = all(point[name] in found for name, found in where.items())
        return value if fits else values[tuple(point.items())]

    return sweep(objective, grid)


@pytest.mark.parametrize(
    ("effect", "noise", "verdict"),
    [(0.0, 0.1, EQUIVALENT), (0.3, 0.1, EQUIVALENT), (1, 0.1, DIFFERENT), (-1, 0.1, DIFFERENT), (0, 3, INCONCLUSIVE)],
)
def test_the_intervals_and_the_margin_decide(effect, noise, verdict):
    results = noisy_sweep({**EQUAL, "radam": effect}, seeds=5, noise=noise)
    assert compare(table_of(results), TERMS).verdict is verdict
    assert f"radam: {verdict.value} (margin ±0.5 points)." in told(results)[0]


def test_without_a_margin_nothing_is_decided():
    results = noisy_sweep(EQUAL, seeds=5)
    assert compare(table_of(results), Terms()).verdict is INCONCLUSIVE
    assert told(results, Terms())[0].endswith("inconclusive, as no margin is fixed for this task.")


def test_a_relative_margin_is_of_the_mean():
    margin = Margin("a task", "*", 1.0, "%", relative=True)
    comparison = compare(table_of(noisy_sweep(EQUAL, seeds=5)), Terms(margin))
    assert comparison.margin == pytest.approx(0.2, rel=0.05)
    assert "(margin ±1 % of the mean, ±0.20)" in told(noisy_sweep(EQUAL, seeds=5), Terms(margin))[0]


def test_only_methods_that_ran_are_named():
    results = noisy_sweep({"untuned_linear": 0.0, "radam": 0.0, "none": 0.0}, seeds=5)
    table = sweeps.table_of(results, grid={"warmup": [*THREE, "none"]})
    comparison = compare(table, TERMS)
    assert comparison.methods == ("untuned_linear", "radam", "none")
    assert not any("untuned_exponential" in sentence for sentence in findings(comparison))


def test_failed_runs_make_it_inconclusive_and_are_named():
    results = changed(None, warmup=["radam"], seed=[2])
    assert compare(table_of(results), TERMS).verdict is INCONCLUSIVE
    first, *others = told(results)
    assert "inconclusive, as 4 runs failed (radam, learning_rate 1e-4, beta_2 0.999, seed 2; radam" in first
    assert not any("seeds would decide" in sentence for sentence in others)  # that would not help


def test_a_sweep_that_still_runs_is_inconclusive():
    results = noisy_sweep(EQUAL, seeds=5)
    grid = {"learning_rate": [0.1, 0.01, 1e-3, 1e-4], "beta_2": [0.999], "seed": list(range(6))}
    assert "inconclusive, as 12 planned runs have no result" in told(results, **grid)[0]


def test_two_seeds_decide_nothing():
    results = noisy_sweep(EQUAL, seeds=2, noise=1e-5)
    assert compare(table_of(results), TERMS).verdict is INCONCLUSIVE
    *_, advice = told(results)
    assert advice == f"At least 3 seeds are needed: {TERMS.command} --seeds=0-2"


def test_a_method_that_diverges_more_often_is_different():
    results = changed(math.nan, warmup=["radam"], seed=[0, 1, 2])
    table = table_of(results)
    comparison = compare(table, TERMS)
    assert comparison.verdict is DIFFERENT
    p = stats.fisher_exact([[0, 20], [12, 8]]).pvalue
    assert [rates.p for rates in comparison.rates] == pytest.approx([1.0, 3 * p, 3 * p], rel=1e-9)
    assert "untuned_linear and radam diverge at different rates (p < 0.001)" in told(results)[0]


def test_a_single_run_that_diverged_leaves_it_open():
    results = changed(math.nan, learning_rate=[0.1], warmup=["radam"], seed=[2])
    assert compare(table_of(results), TERMS).verdict is INCONCLUSIVE
    assert "inconclusive, as the methods diverged in different cells or seeds" in told(results)[0]
    sentence = "Runs that diverged: 0 of 20 of untuned_linear and 1 of 20 of radam, p = 1 (Fisher's exact test, Holm)."
    assert sentence in told(results)


def test_runs_that_diverged_for_every_method_are_left_out():
    results = changed(math.nan, learning_rate=[0.1], seed=[2])
    comparison = compare(table_of(results), TERMS)
    assert comparison.verdict is EQUIVALENT
    assert {(each.seeds, each.cells) for each in comparison.differences} == {(5, 4)}


def test_an_open_question_says_how_many_seeds_would_decide_and_the_command_that_adds_them():
    results = noisy_sweep(EQUAL, seeds=4, rows=1, noise=0.5)
    comparison = compare(table_of(results), TERMS)
    assert comparison.verdict is INCONCLUSIVE
    seeds = comparison.plan.seeds
    assert comparison.plan.no_difference
    assert 6 < seeds < 100
    said = "seeds would decide with a probability of 80 % if there is no difference"
    assert told(results)[-1] == f"{seeds} {said}: {TERMS.command} --seeds=0-{seeds - 1}"


def test_a_difference_at_the_margin_asks_for_more_seeds_than_there_are():
    results = noisy_sweep({"untuned_linear": 0.0, "radam": 0.495}, seeds=30, rows=1, noise=0.1)
    comparison = compare(table_of(results), TERMS)
    assert comparison.verdict is INCONCLUSIVE
    assert not comparison.plan.no_difference
    assert comparison.plan.seeds is None or comparison.plan.seeds > 30
    # These seeds are too few even for methods that do not differ, but that they do not is excluded already.
    early = compare(table_of(noisy_sweep({"untuned_linear": 0.0, "radam": 0.7}, seeds=6, rows=1, noise=0.25)), TERMS)
    assert early.verdict is INCONCLUSIVE
    assert early.differences[0].p < 0.05
    assert not early.plan.no_difference
    hopeless = noisy_sweep({"untuned_linear": 0.0, "radam": 0.0}, seeds=3, rows=1, noise=50.0)
    assert told(hopeless)[-1] == "More than 1,000 seeds would be needed to decide with a probability of 80 %."


def test_a_pair_is_told_with_both_intervals_and_where_they_lie():
    results = noisy_sweep({"untuned_linear": 0.0, "radam": 1.0}, seeds=5)
    (difference,) = compare(table_of(results), TERMS).differences
    (low, high), (lower, higher) = difference.interval(0.90), difference.interval(0.95)
    assert told(results)[1] == (
        f"radam - untuned_linear: {difference.mean:+.2f} points, 90 % interval {low:+.2f} to {high:+.2f}, 95 % "
        f"interval {lower:+.2f} to {higher:+.2f} (5 seeds, 4 cells): outside the margin, radam is worse."
    )
    assert "outside the margin, radam is better." in findings(compare(table_of(results, "max"), TERMS))[1]
    assert lower < low < high < higher
