"""What every warmup of the table must be: a new one is a function, a line in `WARMUPS` and a golden row here."""

import keras
import numpy as np
import pytest
from keras import ops

import tfwarmup
from tests.tfwarmup.helpers import compiled, numpy
from tfwarmup.factors import WARMUPS, rule

ARGUMENTS = {"beta_2": 0.99, "period": 150.5}
GOLDEN = {  # omega_1, omega_10, omega_200 with the arguments above, from 40-digit arithmetic
    "none": (1.0, 1.0, 1.0),
    "linear": (1 / 150.5, 10 / 150.5, 1.0),
    "exponential": (0.0066224922719434155, 0.064285792245775792, 0.73523262123551253),
    "untuned_linear": (0.005, 0.05, 1.0),
    "untuned_exponential": (0.0099501662508319552, 0.095162581964040507, 0.86466471676338755),
    "radam": (0.0, 0.15516525667773827, 0.82433236538156699),
}

every_warmup = pytest.mark.parametrize("name", WARMUPS)


def factor_of(name):
    return rule(name).bind(name, **ARGUMENTS)


def schedule_of(name, learning_rate=1e-3):
    return tfwarmup.Warmup(learning_rate, name, **ARGUMENTS)


@every_warmup
def test_values_are_the_golden_ones(name):
    np.testing.assert_allclose(factor_of(name)(np.array([1, 10, 200])), GOLDEN[name], rtol=1e-14)


@every_warmup
def test_factor_rises_from_zero_to_one(name):
    t = np.concatenate([np.arange(1, 5000), np.logspace(4, 9, 100).round()])
    for omega, ulp in ((factor_of(name)(t), 2e-16), (numpy(factor_of(name)(ops.convert_to_tensor(t, "int32"))), 2e-7)):
        assert omega.min() >= 0
        assert omega.max() <= 1
        assert np.diff(omega.astype("float64")).min() >= -ulp
        assert omega[-1] == 1


@every_warmup
def test_first_update_is_not_zero_and_is_omega_1(name):
    rate = float(schedule_of(name)(0))
    assert rate == pytest.approx(1e-3 * GOLDEN[name][0], rel=1e-11)
    assert (rate == 0) == (name == "radam")  # the paper's footnote: RAdam's own first steps are not Adam's


@every_warmup
def test_config_makes_the_same_schedule(name):
    decay = keras.optimizers.schedules.CosineDecay(1e-2, 1000)
    for schedule in (schedule_of(name), schedule_of(name, decay), schedule_of(name, tfwarmup.Delayed(decay, 7))):
        copy = type(schedule).from_config(schedule.get_config())
        through_keras = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(schedule))
        for other in (copy, through_keras):
            assert other.get_config() == schedule.get_config()
            assert float(other(123)) == float(schedule(123))


@every_warmup
def test_compiled_equals_eager(name):
    schedule = schedule_of(name, keras.optimizers.schedules.CosineDecay(1e-2, 1000))
    compiled_schedule = compiled(schedule)
    for step in (0, 3, 4, 99, 250, 10**6):
        step = ops.convert_to_tensor(step, "int32")
        np.testing.assert_allclose(numpy(compiled_schedule(step)), numpy(schedule(step)), rtol=3e-7)


@every_warmup
def test_schedule_and_optimizer_argument_and_warm_up_are_one_warmup(name):
    optimizer = tfwarmup.Adam(1e-3, beta_2=0.99, warmup=name, warmup_period=150.5)
    warmed = tfwarmup.warm_up(keras.optimizers.Adam(1e-3, beta_2=0.99), name, period=150.5)
    for step in (0, 9, 199):
        optimizer.iterations.assign(step)
        warmed.iterations.assign(step)
        rate = float(schedule_of(name)(step))
        assert float(warmed.learning_rate) == pytest.approx(rate, rel=3e-7)
        assert float(optimizer.learning_rate) * float(optimizer.warmup_factor) == pytest.approx(rate, rel=3e-7)
