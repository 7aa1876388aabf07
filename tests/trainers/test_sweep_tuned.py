"""Tuned against untuned warmup: chosen on some seeds, judged on the others."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from tests.trainers.sweeps import PERIODS, csv_rows, summary_of, tuned_sweep
from trainers.evidence.tuned import duels_csv, outcomes


def duels_of(results, direction="min"):
    return summary_of(results, direction).duels


def test_the_period_is_chosen_on_one_half_of_the_seeds_and_judged_on_the_other():
    """By hand: seeds 0 and 2 choose 10, seeds 1 and 3 choose 100; each is judged where it was not chosen."""
    tuned = {10.0: [1.0, 5.0, 1.0, 6.0], 100.0: [4.0, 2.0, 3.0, 2.0]}
    untuned = [2.0, 2.5, 2.0, 2.5]
    results = tuned_sweep(lambda rate, warmup, period, seed: tuned[period][seed] if period else untuned[seed])
    (duel,) = duels_of(results)
    assert duel.periods == (10.0, 100.0)
    assert duel.tuned.tolist() == [[4.0, 5.0, 3.0, 6.0]]
    assert (duel.tuned_runs, duel.untuned_runs) == (8, 4)
    differences = [2.0, 2.5, 1.0, 3.5]
    assert duel.difference.mean == pytest.approx(np.mean(differences), rel=1e-15)
    low, high = stats.t.interval(0.95, 3, np.mean(differences), stats.sem(differences))
    assert duel.difference.interval(0.95) == pytest.approx((low, high), rel=1e-12)


def test_shares_are_chosen_among_shares_and_periods_among_periods():
    """The best period is 10 and the best share 5 %, whichever of them is better."""
    size = {10.0: 1.0, 100.0: 2.0, 0.05: 3.0, 0.1: 4.0, None: 5.0}
    results = tuned_sweep(lambda rate, warmup, period, seed: size[period], periods=(*PERIODS, 0.05, 0.1))
    results = [dataclasses.replace(result, values=as_share(result.values)) for result in results]
    summary = summary_of(results)
    table = summary.table
    assert table.methods == ("linear 10", "linear 100", "linear 5 %", "linear 10 %", "radam")
    by_period, by_share = summary.duels
    assert (by_period.periods, by_share.periods) == ((10.0, 10.0), (0.05, 0.05))
    first, second = csv_rows(duels_csv(table, [by_period, by_share]))
    assert (first["period_1"], first["share_1"]) == ("10.0", "")
    assert (second["period_1"], second["share_1"], second["difference"]) == ("", "0.05", "-2.0")
    page = summary.markdown()
    assert "linear with the best period - radam: -4" in page
    assert "linear with the best share - radam: -2" in page
    assert "| linear | 5 % and 5 % | radam |" in page


def as_share(values):
    period = values.get("warmup_period")
    share = {"warmup_share": period, "warmup_period": None} if period in (0.05, 0.1) else {}
    return {**values, **share}


def test_direction_turns_the_choice():
    results = tuned_sweep(lambda rate, warmup, period, seed: (period or 50.0) + seed)
    assert duels_of(results, "min")[0].periods == (10.0, 10.0)
    assert duels_of(results, "max")[0].periods == (100.0, 100.0)


def test_the_luck_of_the_best_of_many_periods_does_not_count():
    """Twenty periods that differ by nothing but noise: their best on all seeds would look better than the rule."""
    rng, lucky, fair = np.random.default_rng(0), [], []
    for _ in range(40):
        results = tuned_sweep(lambda *_: rng.normal(), seeds=6, periods=tuple(range(1, 21)))
        table = summary_of(results).table
        row = table.rows[0]
        best = min(table.cell(row, f"linear {period}").mean for period in range(1, 21))
        lucky.append(best - table.cell(row, "radam").mean)
        fair.append(duels_of(results)[0].difference.mean)
    assert stats.ttest_1samp(lucky, 0).pvalue < 1e-6
    assert stats.ttest_1samp(fair, 0).pvalue > 0.01


def test_a_planted_gain_is_found_and_so_is_what_it_cost():
    rng = np.random.default_rng(1)
    results = tuned_sweep(lambda rate, warmup, period, seed: (9.0 if period == 10 else 10.0) + rng.normal(0, 0.05), 6)
    summary = summary_of(results)
    (outcome,) = outcomes(summary.duels)
    assert outcome.difference.interval()[1] < -0.8
    assert (outcome.tuned_runs, outcome.untuned_runs) == (12, 6)
    said = summary.text()
    assert "linear with the best period - radam: -" in said
    assert said.strip().endswith("the tuned one is better. The tuning took 12 runs, radam 6.")
    page = summary.markdown()
    assert page.rindex("## Tuned against untuned") > page.rindex("## The methods compared")


def test_a_period_that_diverges_is_not_chosen():
    values = {10.0: 1.0, 100.0: 2.0, None: 3.0}
    results = tuned_sweep(lambda rate, warmup, period, seed: None if (period, seed) == (10.0, 0) else values[period])
    (duel,) = duels_of(results)
    assert duel.periods == (100.0, 10.0)
    assert duel.tuned[0, 1:].tolist() == [2.0, 1.0, 2.0]
    assert math.isnan(duel.tuned[0, 0])  # none where the one that was chosen diverged


def test_there_is_nothing_to_say_without_a_choice_a_rule_or_a_second_seed():
    plain = {"objective": lambda *_: 1.0}
    assert duels_of(tuned_sweep(**plain, periods=(10.0,))) == []
    assert duels_of(tuned_sweep(**plain, rules=("none",))) == []
    assert duels_of(tuned_sweep(**plain, seeds=1)) == []


def test_the_file_has_a_row_for_each_cell_and_the_outcome_is_over_all():
    shift = {1e-3: 1.0, 1e-2: 3.0}
    results = tuned_sweep(lambda rate, w, period, seed: (shift[rate] + seed * 0.1) * bool(period), rates=shift)
    summary = summary_of(results)
    rows = csv_rows(duels_csv(summary.table, summary.duels))
    assert [row["learning_rate"] for row in rows] == ["0.001", "0.01"]
    assert [float(row["difference"]) for row in rows] == pytest.approx([1.15, 3.15])
    (outcome,) = outcomes(summary.duels)
    assert (outcome.difference.mean, outcome.difference.cells) == (pytest.approx(2.15), 2)
