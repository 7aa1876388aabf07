"""A whole schedule in one call: each part is the formula, and the last update has the last rate."""

import keras
import numpy as np
import pytest
from keras.optimizers import schedules

import tfwarmup
from tests.tfwarmup.helpers import compiled, fit, number, numpy, reloaded, small_model, weights
from tfwarmup import checks, warmups

PERIOD, UPDATES, PEAK, END = 100.5, 1000, 2e-3, 1e-4


def straight(t, start, stop):
    return PEAK + (END - PEAK) * np.clip((t - start) / (stop - start), 0, 1)


EXPECTED = {  # the rate after the warmup, at update t
    "cosine": lambda t: END + (PEAK - END) * (1 + np.cos(np.pi * (t - PERIOD) / (UPDATES - PERIOD))) / 2,
    "linear": lambda t: straight(t, PERIOD, UPDATES),
    "wsd": lambda t: straight(t, 0.8 * UPDATES, UPDATES),
    "inverse_sqrt": lambda t: PEAK * np.sqrt(PERIOD / t),
    "constant": lambda t: PEAK,
}
every_decay = pytest.mark.parametrize("decay", EXPECTED)


def made(decay, **options):
    end = 0.0 if decay in ("inverse_sqrt", "constant") else END
    options = {"updates": UPDATES, "warmup": "linear", "period": PERIOD, "end": end} | options
    return tfwarmup.schedule(PEAK, decay=decay, **options)


@every_decay
def test_each_part_is_its_formula_up_to_the_last_update(decay):
    rate = made(decay)
    for t in (1, 50, 100):
        assert number(rate(t - 1)) == pytest.approx(PEAK * t / PERIOD, rel=1e-6)
    for t in (101, 300, 800, 900, 999, 1000):
        assert number(rate(t - 1)) == pytest.approx(EXPECTED[decay](t), rel=2e-5)


@every_decay
def test_a_repr_is_the_call_that_makes_the_schedule(decay):
    rate = made(decay)
    assert eval(repr(rate), {**vars(tfwarmup), **vars(warmups), **vars(schedules)}).get_config() == rate.get_config()
    keras_adam = checks.text(keras.optimizers.Adam(rate))
    assert repr(rate) in keras_adam


@every_decay
def test_a_compiled_step_and_a_micro_step_see_the_same_rate(decay):
    rate, micro = made(decay), made(decay, steps_per_update=4)
    counted = compiled(rate)
    for step in (0, 99, 500, 999):
        tensor = keras.ops.convert_to_tensor(step, "int32")
        assert number(counted(tensor)) == pytest.approx(number(rate(step)), rel=1e-6, abs=1e-9)
        assert number(micro(4 * step + 3)) == pytest.approx(number(rate(step)), rel=1e-6, abs=1e-9)


@every_decay
def test_a_model_with_a_whole_schedule_goes_on_from_a_file_bit_for_bit(decay, tmp_path):
    rate = tfwarmup.schedule(1e-2, 40, beta_2=0.9, decay=decay)
    model = small_model(keras.optimizers.Adam(rate, beta_2=0.9))
    fit(model, epochs=6)
    loaded = reloaded(model, tmp_path)
    assert loaded.optimizer.get_config() == model.optimizer.get_config()
    for each in (model, loaded):
        fit(each, epochs=6)
    np.testing.assert_array_equal(weights(loaded), weights(model))


def test_the_parts_are_schedules_that_can_be_used_alone():
    rate = made("wsd")
    assert rate.warmup == warmups.Linear(PERIOD)
    assert isinstance(made("cosine").learning_rate, schedules.CosineDecay)
    assert isinstance(rate.learning_rate, tfwarmup.Plateau)
    held = tfwarmup.Plateau(schedules.ExponentialDecay(1e-3, 10, 0.5), updates=5)
    assert [number(held(step)) for step in (0, 5, 15)] == pytest.approx([1e-3, 1e-3, 5e-4], rel=1e-6)
    assert number(tfwarmup.InverseSqrtDecay(1.0, 4)(12)) == 0.5
    np.testing.assert_allclose(numpy(tfwarmup.factors.inverse_sqrt(np.array([0, 12]), 4)), [1, 0.5])


@pytest.mark.parametrize("warmup", ["untuned_linear", "untuned_exponential", "radam", "root"])
def test_every_untuned_warmup_starts_the_run_and_the_decay_ends_it(warmup):
    rate = tfwarmup.schedule(PEAK, UPDATES, warmup, beta_2=0.98, decay="linear")
    length = warmups.get(warmup, beta_2=0.98).length
    assert number(rate(0)) == pytest.approx(PEAK * warmups.get(warmup, beta_2=0.98)(1), rel=1e-6)
    assert number(rate.learning_rate(600 - length)) == pytest.approx(PEAK * 400 / (UPDATES - length), rel=1e-5)
    assert number(rate(UPDATES - 1)) == pytest.approx(0, abs=1e-9)


@pytest.mark.once
def test_a_share_needs_no_second_length():
    assert made("cosine", period=None, share=0.25).warmup == warmups.Linear(250)


@pytest.mark.once
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decay": "sine"}, "`decay` must be one of cosine, linear, .* Received: decay='sine'"),
        ({"period": 1000}, "Warmup and decay must fit in the run: .* Received: updates=1000, Linear"),
        ({"period": 900, "decay": "wsd"}, "Warmup and decay must fit in the run: .* a decay of 200 updates"),
        ({"warmup": "untuned_linear", "period": None}, "`UntunedLinear` needs the `beta_2`"),
        ({"warmup": "dynamic", "period": None, "beta_2": 0.9}, "Its length is not known in advance"),
        ({"end": -1.0}, "`end` must be a finite number >= 0. Received: end=-1.0"),
        ({"end": 1.0}, "`end` must be at most `learning_rate`, .* Received: end=1.0"),
        ({"end": 1e-4, "decay": "inverse_sqrt"}, "`end` must be at most `learning_rate`, and 0 for .* Received: end="),
        ({"decay": "wsd", "decay_share": 0}, "`decay_share` must be a finite number > 0. Received: decay_share=0"),
        ({"warmup_steps": 10}, "use `warmup='linear'` and `period`. Received: warmup_steps=10"),
        ({"updates": None, "total_steps": 10}, "use `tfwarmup.schedule`, with `updates`. Received: total_steps=10"),
        ({"updates": None}, "`updates` must be an integer >= 1. Received: updates=None"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        made(**{"decay": "cosine", **options})
