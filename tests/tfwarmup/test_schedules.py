import math

import keras
import numpy as np
import pytest

import tfwarmup
from tests.tfwarmup.helpers import small_data, small_model, weights
from tfwarmup import factors

COSINE = keras.optimizers.schedules.CosineDecay(1e-2, 1000, alpha=0.1)
NAMED = {
    "linear": lambda rate: tfwarmup.LinearWarmup(rate, period=30.5),
    "exponential": lambda rate: tfwarmup.ExponentialWarmup(rate, period=30.5),
    "untuned_linear": lambda rate: tfwarmup.UntunedLinearWarmup(rate, beta_2=0.98),
    "untuned_exponential": lambda rate: tfwarmup.UntunedExponentialWarmup(rate, beta_2=0.98),
    "radam": lambda rate: tfwarmup.RAdamWarmup(rate, beta_2=0.98),
}


def test_every_warmup_of_the_table_has_a_schedule():
    assert {"none", *NAMED} == set(factors.WARMUPS)


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("base", [1e-2, COSINE])
def test_rate_is_the_base_times_the_factor(name, base):
    schedule = NAMED[name](base)
    factor = factors.rule(name).bind(name, beta_2=0.98, period=30.5)
    for step in (0, 1, 4, 17, 500):
        rate = base if base == 1e-2 else float(base(step))
        assert float(schedule(step)) == pytest.approx(rate * factor(step + 1), rel=1e-6)


@pytest.mark.parametrize("name", NAMED)
def test_model_with_a_nested_schedule_saves_and_loads(name, tmp_path):
    model = small_model(keras.optimizers.Adam(NAMED[name](tfwarmup.Delayed(COSINE, 5)), beta_2=0.98))
    model.fit(*small_data(), batch_size=16, epochs=2, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.optimizer.get_config() == model.optimizer.get_config()
    assert float(loaded.optimizer.learning_rate) == float(model.optimizer.learning_rate)
    clone = keras.optimizers.Adam.from_config(model.optimizer.get_config())
    assert clone.get_config() == model.optimizer.get_config()


def test_named_schedule_has_only_its_own_arguments_in_its_config():
    assert tfwarmup.UntunedLinearWarmup(1e-3, 0.98).get_config() == {
        "learning_rate": 1e-3,
        "beta_2": 0.98,
        "steps_per_update": 1,
    }


def test_radam_schedule_takes_three_of_the_four_first_steps():
    after = factors.radam(5, 0.999)
    rates = {rule: tfwarmup.RAdamWarmup(1.0, first_steps=rule)(1) for rule in factors.FIRST_STEPS[1:]}
    assert rates == pytest.approx({"nothing": 0, "constant_adam": after, "linear_adam": after * 2 / 5})
    with pytest.raises(ValueError, match=r"momentum steps need the optimizer `tfwarmup\.RAdam`"):
        tfwarmup.RAdamWarmup(1.0, first_steps="momentum")


def test_delayed_holds_the_first_value_then_follows():
    delayed = tfwarmup.Delayed(COSINE, steps=10)
    assert [float(delayed(step)) for step in (0, 10, 11, 500)] == [float(COSINE(step)) for step in (0, 0, 1, 490)]
    counter = keras.Variable(15, dtype="int32", trainable=False)
    assert float(delayed(counter)) == pytest.approx(float(COSINE(5)), rel=1e-6)


def train(optimizer, batch_size, epochs=10):
    model = small_model(optimizer)
    model.fit(*small_data(), batch_size=batch_size, epochs=epochs, shuffle=False, verbose=0)
    return weights(model)


def test_warmup_counts_updates_when_keras_accumulates():
    def adam(schedule, **kwargs):
        return keras.optimizers.Adam(schedule, beta_2=0.9, **kwargs)

    big_batch = train(adam(tfwarmup.UntunedLinearWarmup(1e-2, 0.9)), batch_size=64)
    accumulated = tfwarmup.warm_up(adam(1e-2, gradient_accumulation_steps=4))
    np.testing.assert_allclose(train(accumulated, batch_size=16), big_batch, atol=2e-6)
    wrong = train(adam(tfwarmup.UntunedLinearWarmup(1e-2, 0.9), gradient_accumulation_steps=4), batch_size=16)
    assert np.abs(wrong - big_batch).max() > 1e-3


def test_warm_up_returns_the_optimizer_with_its_own_rate_and_beta_2():
    optimizer = keras.optimizers.AdamW(COSINE, beta_2=0.98)
    assert tfwarmup.warm_up(optimizer) is optimizer
    config = optimizer.get_config()["learning_rate"]["config"]
    assert config["beta_2"] == 0.98
    assert config["learning_rate"]["class_name"] == "CosineDecay"


def test_warm_up_reaches_through_a_loss_scale_optimizer():
    inner = keras.optimizers.Adam(1e-2, beta_2=0.98, gradient_accumulation_steps=3)
    scaled = keras.optimizers.LossScaleOptimizer(inner)
    assert tfwarmup.warm_up(scaled) is scaled
    schedule = inner.get_config()["learning_rate"]["config"]
    assert (schedule["beta_2"], schedule["steps_per_update"]) == (0.98, 3)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "Nadam", "Adamax", "Lamb"])
def test_warm_up_serves_every_optimizer_with_a_second_moment(name):
    optimizer = tfwarmup.warm_up(getattr(keras.optimizers, name)(1e-2, beta_2=0.98))
    assert float(optimizer.learning_rate) == pytest.approx(1e-4, rel=1e-6)


@pytest.mark.parametrize("name", ["SGD", "RMSprop", "Lion", "Adafactor", "Muon"])
def test_warm_up_refuses_an_optimizer_without_beta_2_but_for_a_period(name):
    optimizer = getattr(keras.optimizers, name)(1e-2)
    with pytest.raises(ValueError, match=rf"`beta_2` of the optimizer's second moment.*Received: optimizer=.*{name}"):
        tfwarmup.warm_up(optimizer)
    assert float(optimizer.learning_rate) == pytest.approx(1e-2)
    assert float(tfwarmup.warm_up(optimizer, "linear", period=10).learning_rate) == pytest.approx(1e-3, rel=1e-6)


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: tfwarmup.warm_up(keras.optimizers.Adam()),
        lambda: tfwarmup.Adam(warmup="untuned_exponential"),
        lambda: tfwarmup.RAdam(),
    ],
)
def test_warm_up_refuses_a_second_warmup(optimizer):
    with pytest.raises(ValueError, match="without a warmup: two would multiply. Received: R?Adam with warmup"):
        tfwarmup.warm_up(optimizer())


def test_warm_up_refuses_a_rate_it_cannot_multiply():
    with pytest.raises(ValueError, match="whose learning rate is a number or a `LearningRateSchedule`. Received"):
        tfwarmup.warm_up(keras.optimizers.Adam(lambda: 1e-3))


def test_a_warmed_up_model_trains_and_reports_its_rate():
    model = small_model(tfwarmup.warm_up(keras.optimizers.Adam(0.02, beta_2=0.9)))
    history = model.fit(*small_data(), batch_size=16, epochs=10, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    assert float(model.optimizer.learning_rate) == pytest.approx(0.02)


@pytest.mark.parametrize("rate", [-1e-3, math.nan, math.inf, "1e-3", None])
def test_a_rate_that_is_no_rate_is_refused(rate):
    with pytest.raises(
        ValueError, match=r"`learning_rate` must be a finite number >= 0 or .* Received: learning_rate="
    ):
        tfwarmup.UntunedLinearWarmup(rate)


@pytest.mark.parametrize("steps", [0, -1, 1.5, None])
def test_steps_per_update_must_be_a_positive_integer(steps):
    with pytest.raises(ValueError, match=r"`steps_per_update` must be an integer >= 1. Received"):
        tfwarmup.LinearWarmup(1e-3, 10, steps_per_update=steps)


def test_delayed_checks_its_arguments():
    with pytest.raises(ValueError, match="`schedule` must be a `LearningRateSchedule`. Received: schedule=0.1"):
        tfwarmup.Delayed(0.1, 10)
    with pytest.raises(ValueError, match="`steps` must be an integer >= 0. Received: steps=-1"):
        tfwarmup.Delayed(COSINE, -1)


def test_an_unknown_warmup_is_refused_with_the_names_that_exist():
    with pytest.raises(ValueError, match=r"`warmup` must be one of none, linear, .* Received: warmup='cosine'"):
        tfwarmup.warm_up(keras.optimizers.Adam(), "cosine")
