"""What every warmup must be, however it is used: a new one is a function, a class, a line in the table, a row here."""

import keras
import numpy as np
import pytest
from keras import ops

import tfwarmup
from tests.tfwarmup.helpers import KERAS, compiled, fit, number, numpy, reloaded, small_model, weights
from tfwarmup import WARMUPS, compat, warmups

BETA_2 = 0.99


@keras.saving.register_keras_serializable("tests")
def half_cosine(t):
    return 0.5 - 0.5 * ops.cos(np.pi * ops.minimum(ops.cast(t, "float32") / 150.0, 1.0))


GOLDEN = {  # a warmup, and its omega_1, omega_10 and omega_200 from 40-digit arithmetic
    "none": (warmups.NoWarmup(), (1.0, 1.0, 1.0)),
    "linear": (warmups.Linear(150.5), (1 / 150.5, 10 / 150.5, 1.0)),
    "exponential": (warmups.Exponential(150.5), (0.0066224922719434155, 0.064285792245775792, 0.73523262123551253)),
    "untuned_linear": (warmups.UntunedLinear(BETA_2), (0.005, 0.05, 1.0)),
    "untuned_exponential": (
        warmups.UntunedExponential(BETA_2),
        (0.0099501662508319552, 0.095162581964040507, 0.86466471676338755),
    ),
    "radam": (warmups.Rectified(BETA_2), (0.0, 0.15516525667773827, 0.82433236538156699)),
    "root": (warmups.Root(BETA_2), (0.10000000000000004, 0.30922148209850426, 0.93060213041989018)),
    "linear from 0.1": (warmups.Linear(150.5, initial=0.1), (0.1 + 0.9 / 150.5, 0.1 + 9 / 150.5, 1.0)),
    "untuned_linear from 0.1": (warmups.UntunedLinear(BETA_2, initial=0.1), (0.1045, 0.145, 1.0)),
    "radam, linear_adam": (
        warmups.Rectified(BETA_2, first_steps="linear_adam"),
        (0.010894208809591523, 0.15516525667773827, 0.82433236538156699),
    ),
    "a function": (warmups.Custom(half_cosine), (0.00010965826257725769, 0.010926199633097181, 1.0)),
}
ACCURACY = {"a function": 2e-3}  # a cosine near 1, in float32
every_warmup = pytest.mark.parametrize("name", GOLDEN)


def warmup_of(name):
    return GOLDEN[name][0]


def schedule_of(name, learning_rate=1e-3, **timing):
    return tfwarmup.WarmupSchedule(learning_rate, warmup_of(name), **timing)


@pytest.mark.once
def test_every_warmup_of_the_table_is_here():
    assert {type(warmup) for warmup, _ in GOLDEN.values()} == {*WARMUPS.values(), warmups.Custom} - {warmups.Dynamic}


@pytest.mark.once
@every_warmup
def test_values_are_the_golden_ones(name):
    warmup, golden = GOLDEN[name]
    np.testing.assert_allclose(warmup(np.array([1, 10, 200])), golden, rtol=ACCURACY.get(name, 1e-14))


@every_warmup
def test_factor_rises_to_one_and_stays_in_the_unit_interval(name):
    t = np.concatenate([np.arange(1, 1000 if name == "a function" else 5000), np.logspace(4, 9, 100).round()])
    for omega, ulp in ((warmup_of(name)(t), 2e-16), (numpy(warmup_of(name)(ops.convert_to_tensor(t, "int32"))), 2e-7)):
        assert omega.min() >= 0
        assert omega.max() <= 1
        assert np.diff(omega.astype("float64")).min() >= -max(ulp, ACCURACY.get(name, 0) * 1e-4)
        assert omega[-1] == 1


@every_warmup
def test_config_makes_the_same_schedule(name):
    decay = keras.optimizers.schedules.CosineDecay(1e-2, 1000)
    schedules = [schedule_of(name), schedule_of(name, decay), schedule_of(name, steps_per_update=4, start=7)]
    if name != "a function":  # whose length nobody told
        schedules.append(schedule_of(name, decay, decay_after_warmup=True))
    for schedule in schedules:
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
        np.testing.assert_allclose(numpy(compiled_schedule(step)), numpy(schedule(step)), rtol=3e-7, atol=1e-12)


@every_warmup
def test_schedule_and_optimizer_argument_and_warm_up_are_one_warmup(name):
    optimizer = tfwarmup.Adam(1e-3, beta_2=BETA_2, warmup=warmup_of(name))
    warmed = tfwarmup.warm_up(keras.optimizers.Adam(1e-3, beta_2=BETA_2), warmup_of(name))
    for step in (0, 9, 199):
        optimizer.iterations.assign(step)
        warmed.iterations.assign(step)
        rate = pytest.approx(float(schedule_of(name)(step)), rel=3e-7, abs=1.2e-10)  # an ulp of a factor near 1
        assert float(warmed.learning_rate) == rate
        assert number(optimizer.learning_rate) * float(optimizer.warmup_factor) == rate
        for either in (optimizer, warmed):
            assert float(tfwarmup.warmup_factor(either)) * 1e-3 == rate


OPTIMIZERS = {
    "inside": lambda warmup, **options: tfwarmup.Adam(1e-2, beta_2=BETA_2, warmup=warmup, **options),
    "schedule": lambda warmup, **options: tfwarmup.warm_up(
        keras.optimizers.Adam(1e-2, beta_2=BETA_2, **options), warmup
    ),
    "loss scale": lambda warmup, **options: keras.optimizers.LossScaleOptimizer(
        tfwarmup.Adam(1e-2, beta_2=BETA_2, warmup=warmup, **options)
    ),
}
# Every warmup in one kind of optimizer, and every kind of optimizer with several warmups.
PAIRS = [(name, list(OPTIMIZERS)[place % 3]) for place, name in enumerate(GOLDEN)]
PAIRS += [("untuned_linear", "inside"), ("radam", "schedule")]
every_pair = pytest.mark.parametrize(("name", "kind"), PAIRS)


@pytest.mark.parametrize(("name", "kind"), [*PAIRS, ("dynamic", "inside")])
def test_a_model_saved_in_the_middle_of_its_warmup_goes_on_bit_for_bit_and_starts_it_again(name, kind, tmp_path):
    whole = small_model(OPTIMIZERS[kind](name if name == "dynamic" else warmup_of(name)))
    fit(whole, epochs=2)
    saved = reloaded(whole, tmp_path)
    assert saved.optimizer.get_config() == whole.optimizer.get_config()
    rates = {}
    for model in (whole, saved):
        fit(model, epochs=1)
        if name != "dynamic":
            assert float(tfwarmup.warmup_factor(model.optimizer)) == pytest.approx(
                float(warmup_of(name)(13.0)), rel=1e-6
            )
        if name == "none" and kind != "schedule":
            with pytest.raises(ValueError, match="`restart_warmup` needs an optimizer with a warmup"):
                tfwarmup.restart_warmup(model)
            continue
        tfwarmup.restart_warmup(model)
        rates[model] = Rates(model)
        fit(model, epochs=1, callbacks=[rates[model]])
    np.testing.assert_array_equal(weights(saved), weights(whole))
    for applied in rates.values():
        first = (0.005,) if name == "dynamic" else [float(warmup_of(name)(t)) for t in (1.0, 2.0, 3.0, 4.0)]
        np.testing.assert_allclose(applied.rates[: len(first)], 1e-2 * np.array(first), rtol=1e-6)


class Rates(keras.callbacks.Callback):
    """The rates that were applied. Reads the model's state first, as a callback must on JAX."""

    def __init__(self, trained):
        super().__init__()
        self.trained, self.rates = trained, []

    def on_train_batch_end(self, batch, logs=None):
        _ = self.model
        self.rates.append(tfwarmup.probes.applied_rate(self.trained.optimizer).rate)


@every_pair
def test_a_warmup_counts_updates_when_keras_accumulates(name, kind):
    if kind == "schedule" and KERAS < (3, 5):
        pytest.skip("the bias correction of Keras' Adam counts micro-batches")
    make = OPTIMIZERS[kind]
    big = small_model(make(warmup_of(name)))
    accumulated = small_model(make(warmup_of(name), gradient_accumulation_steps=4))
    fit(big, epochs=3, batch_size=64)
    fit(accumulated, epochs=3)
    np.testing.assert_allclose(weights(accumulated), weights(big), atol=3e-6)
    assert float(tfwarmup.warmup_factor(accumulated.optimizer)) == pytest.approx(float(warmup_of(name)(4.0)), rel=1e-6)


# Every warmup, in every way to give it: each is the optimizer that is made of the object, which the tests above train.

NAMED = {name: {"period": 30.5} if warmups.takes_period(name) else {} for name in WARMUPS}
GIVEN = {  # the arguments, and the object
    **{f"{name} by name": (name, options, warmups.get(name, **options)) for name, options in NAMED.items()},
    **{
        f"{name} by share": (name, {"share": 0.25, "updates": 122}, warmups.get(name, period=30.5))
        for name in WARMUPS
        if warmups.takes_period(name)
    },
    "untuned_linear by name, with options": ("untuned_linear", {"initial": 0.1}, warmups.UntunedLinear(initial=0.1)),
    "radam by name, with options": (
        "radam",
        {"first_steps": "linear_adam", "rho_threshold": 5.0},
        warmups.Rectified(first_steps="linear_adam", rho_threshold=5.0),
    ),
    "a function": (half_cosine, {}, warmups.Custom(half_cosine)),
    "a function with a period": (warmups.Custom(half_cosine, period=150), {}, warmups.Custom(half_cosine, period=150)),
}


def restarted(warmup, **options):
    optimizer = tfwarmup.Adam(1e-2, beta_2=BETA_2, warmup=warmups.Root())
    optimizer.restart_warmup(warmup, **options)
    return optimizer


KINDS = {
    "Adam": lambda warmup, **options: tfwarmup.Adam(1e-2, beta_2=BETA_2, warmup=warmup, **options),
    "warm_up": lambda warmup, **options: tfwarmup.warm_up(
        keras.optimizers.Adam(1e-2, beta_2=BETA_2), warmup, **options
    ),
    "restart_warmup": restarted,
}
REFUSED = {("warm_up", "dynamic"), ("restart_warmup", "none")}  # in tests of their own
NAMES = {**vars(tfwarmup), **vars(warmups), "half_cosine": half_cosine}


WAYS = [(given, kind) for given in GIVEN for kind in KINDS if (kind, GIVEN[given][0]) not in REFUSED]


@pytest.mark.parametrize(("given", "kind"), WAYS)
def test_every_way_to_give_a_warmup_is_the_same_and_is_printed_and_restored(given, kind):
    warmup, options, expected = GIVEN[given]
    optimizer = KINDS[kind](warmup, **options)
    config = optimizer.get_config()
    assert {**KINDS[kind](expected).get_config(), "name": config["name"]} == config
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(optimizer))
    assert restored.get_config() == config
    if kind != "warm_up":
        assert {**eval(repr(optimizer), NAMES).get_config(), "name": config["name"]} == config
    else:
        schedule = compat.learning_rate_of(optimizer)
        assert eval(repr(schedule), NAMES).get_config() == schedule.get_config()
