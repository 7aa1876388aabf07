"""What a `WarmupCheck` measures and says."""

import keras
import numpy as np
import pytest

import tfwarmup
from tests.tfwarmup.helpers import BACKEND, fit, gradient_by_hand, small_data, small_model, weights
from tfwarmup.analysis.warmup_report import WarmupReport

# The runs here are short.
pytestmark = pytest.mark.filterwarnings("ignore:A warmup should take at most half of a run")
QUICK = {"run_eagerly": BACKEND == "tensorflow"}


def checked(optimizer, epochs=3, **options):
    model, check = small_model(optimizer, **QUICK), tfwarmup.WarmupCheck(**options)
    fit(model, epochs=epochs, callbacks=[check])
    return model, check


def test_values_of_the_first_update_are_known_and_a_loss_is_that_of_its_batch():
    optimizer = tfwarmup.Adam(0.0, warmup="untuned_linear", beta_2=0.9, epsilon=0.0)  # the weights stay
    model, (x, y) = small_model(optimizer, **QUICK), small_data()
    batches = [(x[start : start + 16], y[start : start + 16]) for start in range(0, 64, 16)]
    losses = [model.evaluate(*batch, verbose=0) for batch in batches]
    check = tfwarmup.WarmupCheck(verbose=False)
    model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0, callbacks=[check])
    assert {name: values[0] for name, values in check.history.items()} == {
        "t": 1,
        "update_rms": pytest.approx(1.0, rel=1e-5),
        "warmup_factor": pytest.approx(0.05, rel=1e-6),
        "gradient_rms": pytest.approx(np.sqrt(np.mean(gradient_by_hand(model, *batches[0]) ** 2)), rel=1e-5),
        "batch_loss": pytest.approx(losses[0], rel=1e-5),
    }
    np.testing.assert_allclose(check.history["batch_loss"], losses * 2, rtol=2e-5)  # not the mean of the epoch


ADAMS = {
    "Adam": lambda: keras.optimizers.Adam(1e-2, beta_2=0.9),
    "Nadam": lambda: keras.optimizers.Nadam(1e-2),
    "warm_up": lambda: tfwarmup.warm_up(keras.optimizers.AdamW(1e-2, beta_2=0.9)),
    "RAdam": lambda: tfwarmup.RAdam(1e-2, beta_2=0.9),
    "loss scale": lambda: keras.optimizers.LossScaleOptimizer(tfwarmup.Adam(1e-2), initial_scale=1.0),
}


@pytest.mark.parametrize("name", ADAMS)
def test_every_adam_gets_three_lines_and_a_figure_and_trains_as_without(name, capsys):
    model, check = checked(ADAMS[name]())
    assert capsys.readouterr().out.splitlines()[1:] == check.report.lines()  # after the line about the run to come
    assert (len(check.report.lines()), check.report.updates) == (3, 12)
    alone = small_model(ADAMS[name](), **QUICK)
    fit(alone, epochs=3)
    np.testing.assert_array_equal(weights(model), weights(alone))
    pytest.importorskip("matplotlib")
    _, factors, _ = check.figure().axes
    np.testing.assert_array_equal(factors.lines[0].get_ydata(), check.history["warmup_factor"])


def test_gradients_are_unknown_where_an_update_was_left_out():
    _, check = checked(tfwarmup.Adam(1e-2), every=3, verbose=False)
    assert check.history["t"] == [1, 3, 6, 9, 12]
    assert np.isnan(check.history["gradient_rms"]).tolist() == [False, True, True, True, True]


def test_what_has_no_known_update_is_refused():
    with pytest.raises(ValueError, match="Update magnitudes need an optimizer .* Received: optimizer=SGD"):
        checked(keras.optimizers.SGD())
    with pytest.raises(ValueError, match="`clip_update_rms`"):
        checked(tfwarmup.Adam(clip_update_rms=True))
    with pytest.raises(ValueError, match="A report needs a `fit`"):
        _ = tfwarmup.WarmupCheck().report


def history(updates=200, period=100, settles=50):
    """A run whose updates fall from 1 to 0.25 alpha, with one loss spike and one spike of the gradients."""
    t = np.arange(1, updates + 1)
    values = {
        "t": t,
        "update_rms": np.where(t < settles, 1.0, 0.25),
        "warmup_factor": np.minimum(1.0, t / period),
        "gradient_rms": np.ones(updates),
        "batch_loss": np.linspace(2, 1, updates),
    }
    values["batch_loss"][119], values["gradient_rms"][29] = 3.0, 3.1
    return values


def report_of(values, **options):
    return WarmupReport.of(
        values, **{"warmup": "Linear(100)", "rule_period": 200.0, "dynamic_end": None, "beta_1": 0.9, **options}
    )


@pytest.mark.once
def test_a_report_says_what_the_numbers_say():
    report = report_of(history())
    assert report.updates == 200
    assert report.factor_sum == pytest.approx(49.5)
    assert report.share == pytest.approx(0.2475)
    assert report.full_from == 99
    assert report.later_rms == 0.25
    assert report.largest_rms == pytest.approx(0.49 * 4)
    assert report.settled == 50
    assert report.loss_spikes == (120,)
    assert report.gradient_spikes == (30,)
    assert report.suggestions == {"rule": 200.0, "settled": 50.0}
    assert report.noise_rms == pytest.approx(0.2294, abs=1e-4)
    assert report.smallest_rms == pytest.approx(0.25 / report.noise_rms)
    assert report.verdict is None
    assert report.lines() == [
        "warmup: no sign that it is too short (updates fell to 1.09 times the size of noise; limit 0.47); Linear(100); "
        "at the full rate from update 99; it cost as much as 49.5 of 200 full updates (24.8%)",
        "updates: the largest was 1.96 times the final level of 0.250 alpha; settled from update 50 on; "
        "loss spikes: 1 (updates 120); gradient spikes: 1 (updates 30)",
        "to try next: linear warmup over 200 (2 / (1 - beta_2)), 50 (where the updates settled)",
    ]


@pytest.mark.once
def test_a_warmup_is_too_short_if_updates_cancel_each_other_before_the_loss_has_fallen():
    """The limit is 0.47 of the size of noise, 0.108 alpha, over 20 updates, until a tenth of the first loss."""
    values = history()
    values["update_rms"][60:80] = 0.1
    assert report_of(values).verdict == "too short"
    assert report_of(values).lines()[0].startswith("warmup: too short (updates fell to 0.44 times the size of noise")
    assert (
        report_of(values).lines()[2].startswith("to try next: a lower learning rate or a longer warmup; linear warmup")
    )
    values["update_rms"][70] = 0.4  # their mean is above the limit
    assert report_of(values).verdict is None
    values["update_rms"][60:] = 0.05
    values["batch_loss"][40:] = 0.19
    assert report_of(values).verdict is None
    values["batch_loss"][120:] = 3.0  # the loss rises again
    assert report_of(values).verdict == "too short"
    assert report_of(history(), beta_1=0.5).verdict == "too short"  # noise has a size of 0.58 alpha: 0.25 is small


@pytest.mark.once
def test_there_is_no_verdict_without_every_update_from_the_first_one_on():
    whole = history()
    whole["update_rms"][60:80] = 0.1
    assert report_of(whole).verdict == "too short"
    without = [
        {name: values[::2] for name, values in whole.items()},
        {name: values[1:] for name, values in whole.items()},
        {name: values[:19] for name, values in whole.items()},
        whole | {"batch_loss": whole["batch_loss"] - 2},  # not positive at first
        whole | {"update_rms": np.full(200, np.nan)},
        whole | {"batch_loss": np.r_[2.0, np.full(199, 0.1)]},  # fallen at once
    ]
    for values in without:
        assert report_of(values).verdict is None
        assert report_of(values).lines()[0].startswith("warmup: Linear(100); ")
    some = np.where(np.arange(200) < 4, np.nan, whole["update_rms"])  # RAdam's momentum steps
    assert report_of(whole | {"update_rms": some}).verdict == "too short"


def test_a_lost_run_is_not_told_that_nothing_is_wrong_with_its_warmup():
    x, y = small_data()
    x[40] = np.nan  # in the third batch of every epoch
    model, check = small_model(tfwarmup.Adam(1e-2, warmup="dynamic"), **QUICK), tfwarmup.WarmupCheck(verbose=False)
    model.fit(x, y, batch_size=16, epochs=10, shuffle=False, verbose=0, callbacks=[check])
    report = check.report
    assert (report.lost_from, report.verdict) == (3, None)
    _, updates, advice = report.lines()
    assert updates.startswith("updates: not finite from update 3 on; ")
    assert advice.startswith("to try next: finite inputs; a lower learning rate or a longer warmup; linear warmup")


@pytest.mark.once
def test_a_report_of_values_that_are_lost_zero_or_left_out():
    whole = history()
    assert np.isnan(report_of(whole | {"update_rms": np.zeros(200)}).largest_rms)
    losses = np.where(np.arange(200) < 150, whole["batch_loss"], np.nan)
    assert report_of(whole | {"batch_loss": losses}).loss_spikes == (120, 151)
    tenth = report_of({name: values[9::10] for name, values in whole.items()})
    assert (tenth.factor_sum, tenth.updates) == (pytest.approx(36.9), 191)  # each stands for the updates before it
    values = whole | {"update_rms": np.full(200, 0.01)}
    assert (report_of(values).verdict, report_of(values).lost_from) == ("too short", None)
    values["update_rms"][150:] = np.nan
    assert (report_of(values).verdict, report_of(values).lost_from) == ("too short", 151)
    values["update_rms"][-1] = 0.01  # a NaN before it, as at a skipped step, is not the end
    assert report_of(values).lost_from is None
