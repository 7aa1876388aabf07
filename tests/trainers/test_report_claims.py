"""The claims of the report: each can come out either way, and says so when nothing was measured. And its answer."""

import dataclasses
import re

import pytest

from tests.trainers import reports
from tests.trainers.sweeps import noisy_sweep, sweep
from trainers.evidence.questions import NO_WARMUP, WARMUPS
from trainers.reports.claims import (
    Claim,
    Claims,
    Holds,
    Kind,
    analysis_claims,
    gap,
    momentum_claim,
    period_claim,
    simulation_claims,
    update_claims,
    warmup_claims,
)
from trainers.reports.method_claims import control_summary, judged, method_claims
from trainers.reports.sections import answer
from trainers.results.runs import Runs
from trainers.results.trials import Result

YES, NO, UNKNOWN, MISSING = Holds
SAME = dict.fromkeys(reports.METHODS, 0.0)


def verdicts(claims):
    return [claim.verdict for claim in claims]


def claims_of(*sweeps):
    return method_claims([judged(sweep) for sweep in sweeps])


def claim_about(words, results, task="image_classification"):
    return next(claim for claim in claims_of(reports.made_sweep(results, task=task)) if words in claim.claim)


def test_the_librarys_own_factors_decide():
    claims = warmup_claims()
    assert verdicts(claims) == [YES, YES]
    assert "4 steps at 301 values" in claims[0].measured
    assert "3.4 % apart at 0.999, at most 11.7 %" in claims[1].measured
    assert "46 % at β₂ = 0.9" in claims[1].measured


def test_other_factors_would_be_told():
    assert momentum_claim(lambda beta_2: 5 if beta_2 > 0.99 else 4).verdict is NO
    assert period_claim(lambda beta_2: gap(beta_2) + 0.1).verdict is NO


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [YES, YES, YES]),
        ({"first": 0.9}, [NO, YES, YES]),
        ({"settles": 300}, [YES, NO, YES]),
        ({"settles": 3}, [YES, NO, YES]),
        ({"level": 0.2}, [YES, NO, NO]),
        ({"count": 60}, [YES, UNKNOWN, UNKNOWN]),
    ],
)
def test_a_simulation_decides(changes, expected):
    assert verdicts(simulation_claims(reports.simulation(**changes), named=False)) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [YES, YES, YES, YES, YES]),
        ({"gradient_cv_median": [2.0] * 200}, [NO, NO, YES, YES, YES]),
        ({"gradient_cv_median": [0.5] * 200}, [YES, NO, YES, YES, YES]),
        ({"moment_correlation": [0.3] * 200}, [YES, YES, NO, YES, YES]),
        ({"update_median": [1.0, *[0.15] * 199]}, [YES, YES, YES, NO, YES]),
        ({"update_median": [max(0.07, 1 - t / 120) for t in range(1, 400, 2)]}, [YES, YES, YES, YES, NO]),
    ],
)
def test_a_gradient_analysis_decides(changes, expected):
    assert verdicts(analysis_claims(reports.analysis(**changes), simulated=20, named=False)) == expected


def test_the_correlation_of_the_moments_is_told_for_the_whole_run():
    claim = analysis_claims(reports.analysis(), simulated=20, named=False)[2]
    assert claim.measured == "mean correlation of 0.980 up to iteration 20, then 0.80 at 399"


def test_a_network_that_settles_no_later_than_a_simulation_is_not_slower():
    claims = analysis_claims(reports.analysis(), simulated=150, named=False)
    assert claims[3].verdict is NO


def test_what_was_not_measured_is_said():
    assert verdicts(update_claims([], [])) == [MISSING] * 8
    assert verdicts(update_claims([reports.simulation(warmup="radam")], [])) == [MISSING] * 8  # not plain Adam
    assert verdicts(method_claims([])) == [MISSING] * 5


QUIET = 3e-4  # 0.03 points of an error: well inside the margin of 0.2
IMAGES, LANGUAGE, TRANSLATION = "image_classification", "language_modeling", "machine_translation"
RULES = dict.fromkeys(["radam", "radam_nothing", "radam_constant_adam", "radam_linear_adam"], 0.0)
NONE, NEEDS, FIRST = {"none": 0.0, "untuned_linear": 0.0}, "needs warmup", "first four steps"
NOT_SHOWN = ": does not show that warmup is needed"


def in_steps(learning_rate, beta_2, warmup, seed):
    """Every seed shares a difference of one step of 0.1 points, and so has an interval all the same."""
    return 0.05 + 0.001 * seed + 0.001 * (warmup == "radam")


def diverging(bad):
    """Runs that diverge where `bad(warmup, learning_rate)`."""
    return lambda **point: float("nan") if bad(point["warmup"], point["learning_rate"]) else reports.same(**point)


STEPS = sweep(in_steps, {**reports.GRID, "learning_rate": [1e-3]})
RADAM_DIVERGES = sweep(diverging(lambda warmup, rate: warmup == "radam" and rate > 5e-3), reports.GRID)
NONE_DIVERGES = sweep(diverging(lambda warmup, _: warmup == "none"), {**reports.GRID, "warmup": [*NONE]})


@pytest.mark.parametrize(
    ("about", "task", "results", "verdict", "told"),
    [
        ("Image", IMAGES, noisy_sweep(SAME, noise=QUIET), YES, "digits, 4 cells, 3 seeds: equivalent; Untuned exp"),
        # Seeds differ by 30 points: the criterion before this one said yes.
        ("Image", IMAGES, noisy_sweep({**SAME, "radam": 0.1}, noise=0.001), NO, "Untuned exponential - RAdam -10.0"),
        ("Language", LANGUAGE, noisy_sweep({**SAME, "radam": 2.0}, noise=0.01), NO, "RAdam"),
        ("Machine", TRANSLATION, noisy_sweep({**SAME, "radam": 2.0}, noise=0.01), NO, "RAdam"),
        ("Image", IMAGES, noisy_sweep(SAME, seeds=1), UNKNOWN, "at least 3 seeds are needed"),
        ("Image", IMAGES, noisy_sweep(SAME, seeds=2, rows=1, noise=15.0, seed=3), UNKNOWN, "inconclusive"),
        ("Image", IMAGES, STEPS, YES, "Untuned linear - RAdam -0.10 points [-0.17, -0.03]"),
        ("Image", IMAGES, sweep(lambda **_: 0.05, reports.GRID), YES, "equivalent"),
        ("Image", IMAGES, RADAM_DIVERGES, UNKNOWN, "3 of 6 of RAdam and 0 of 6 of Untuned linear, p = 0.55"),
        (FIRST, IMAGES, noisy_sweep(RULES, noise=QUIET), YES, "equivalent"),
        (FIRST, IMAGES, noisy_sweep({**RULES, "radam_nothing": 1.0}, noise=0.01), NO, "different"),
        (FIRST, IMAGES, noisy_sweep(SAME), MISSING, "no sweep compares them"),
        (NEEDS, IMAGES, noisy_sweep({**NONE, "none": 3.0}, noise=0.01), YES, "without warmup worse than Untuned lin"),
        (NEEDS, IMAGES, noisy_sweep({**NONE, "none": -3.0}, noise=0.01), NO, NOT_SHOWN),
        (NEEDS, IMAGES, noisy_sweep(NONE, noise=QUIET), NO, NOT_SHOWN),
        (NEEDS, IMAGES, noisy_sweep(NONE, noise=0.1), UNKNOWN, NOT_SHOWN),
        (NEEDS, TRANSLATION, noisy_sweep({**NONE, "none": 3.0}, noise=0.01), NO, "without warmup better than Untuned"),
        (NEEDS, IMAGES, NONE_DIVERGES, YES, "6 of 6 of No warmup and 0 of 6 of Untuned linear, p = 0.0022"),
    ],
)
def test_the_verdict_on_a_sweep_decides_its_claim(about, task, results, verdict, told):
    claim = claim_about(about, results, task)
    assert claim.verdict is verdict
    assert told in claim.measured
    assert verdict is not YES or NOT_SHOWN not in claim.measured


def test_a_claim_names_the_methods_that_ran_and_the_margin():
    claim = claim_about("Image", noisy_sweep({"none": 0.0, "untuned_linear": 0.0, "radam": 0.0}, noise=QUIET))
    assert claim.claim == "Image classification: RAdam and Untuned linear do equally well."
    assert "xponential" not in claim.measured
    assert claim.criterion.startswith("margin ±0.2 points: equivalent if the 90 % interval of every difference")
    two = noisy_sweep({"radam": 0.0, "radam_nothing": 0.0}, noise=QUIET)
    assert claim_about(FIRST, two).claim.endswith("makes no difference (momentum and nothing).")


def test_failed_runs_leave_a_claim_open_and_are_named():
    results = [
        Result(run.trial, run.values, "failed", None, {}, 1.0, "out of memory")
        if run.values["warmup"] == "radam" and run.values["seed"] == 1
        else run
        for run in noisy_sweep(SAME, noise=QUIET)
    ]
    claim = claim_about("Image", results)
    assert claim.verdict is UNKNOWN
    assert "inconclusive; 4 runs failed (RAdam, learning rate 1e-4, β₂ 0.999, seed 1; " in claim.measured


def test_an_open_claim_says_what_would_decide_it():
    claim = claim_about("Image", noisy_sweep(SAME, noise=0.002))
    assert claim.verdict is UNKNOWN
    command = r"python -m trainers.sweep --task=image_classification --config='a run/config.json' --seeds=0-\d+"
    assert re.search(rf"seeds would decide .* 80 % if there is no difference: {command}$", claim.measured)


def test_where_warmup_is_needed_is_told_of_all_data_together():
    def control(effect, **data):
        made = reports.made_sweep(noisy_sweep({"none": effect, "untuned_linear": 0.0}, noise=1e-4))
        return dataclasses.replace(made, folder=reports.folder_of("sweep of image_classification", **data))

    needed = control(3.0, dataset="digits", model="mlp")
    not_needed = control(0.0, dataset="folder", data_dir="/d/mnist")
    assert control_summary(claims_of(needed)) == ""
    assert control_summary(claims_of(needed, not_needed, needed)) == (
        "Adam without warmup is worse by more than the margin on 2 of 3 (digits, mlp; digits, mlp), not worse by more "
        "than the margin on 1 of 3 (mnist)."
    )
    told = [claim.claim for claim in claims_of(needed, not_needed)[-2:]]
    assert told == ["Adam needs warmup. On digits, mlp.", "Adam needs warmup. On mnist."]


def test_a_sweep_with_the_control_beside_the_methods_speaks_to_both():
    results = noisy_sweep({**SAME, "none": 3.0}, noise=QUIET)
    claims = claims_of(reports.made_sweep(results))
    assert [claims[0].verdict, claims[-1].verdict] == [YES, YES]
    assert "No warmup" not in claims[0].measured


def test_claims_of_arithmetic_simulation_and_trained_models_are_counted_apart():
    claims = [*warmup_claims(), *update_claims([reports.simulation()], [reports.analysis()]), *method_claims([])]
    kinds = [claim.kind for claim in claims]
    assert [kinds.count(kind) for kind in Kind] == [2, 3, 10]
    assert Claims(claims).summary == (
        "Claims about arithmetic: 2 yes. Claims about simulation: 3 yes. "
        "Claims about trained models: 5 yes, 5 not measured."
    )


def claims_on(question, subject, *verdicts):
    return [Claim("", "", verdict=verdict, question=question, on=subject) for verdict in verdicts]


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        ([YES, YES], "Adam without warmup was worse in 2 of 2 sweeps."),
        ([NO], "Adam without warmup was not worse in 1 of 1 sweep."),
        ([YES, UNKNOWN, NO], "Adam without warmup was worse in 1, not worse in 1 and undecided in 1 of 3 sweeps."),
        ([], "Adam without warmup was not among these runs."),
    ],
)
def test_the_need_for_warmup_is_told_by_the_number_of_sweeps(verdicts, sentence):
    assert answer(Runs(), claims_on(NO_WARMUP, "digits", *verdicts))[2] == sentence


def test_methods_are_called_equal_only_where_that_was_shown():
    found = [
        *claims_on(WARMUPS, "language modelling", YES),
        *claims_on(WARMUPS, "image classification", UNKNOWN),
        *claims_on(WARMUPS, "machine translation", NO),
    ]
    assert answer(Runs(), found)[1] == (
        "Untuned linear warmup, untuned exponential warmup and RAdam do equally well in language modelling; they "
        "differ in machine translation; they cannot be ranked or called equal with the runs of image classification."
    )
    assert answer(Runs(), [])[1].endswith("were not compared in these runs.")
