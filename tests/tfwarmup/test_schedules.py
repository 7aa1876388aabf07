import math

import keras
import numpy as np
import pytest
from keras import ops
from keras.optimizers import schedules

import tfwarmup
from tests.tfwarmup.helpers import FUNCTIONS_OF_T, small_data, small_model
from tfwarmup import checks, factors, warmups

COSINE = schedules.CosineDecay(1e-2, 1000, alpha=0.1)
NAMED = {
    "linear": lambda rate, **timing: tfwarmup.LinearWarmup(rate, period=30.5, **timing),
    "exponential": lambda rate, **timing: tfwarmup.ExponentialWarmup(rate, period=30.5, **timing),
    "untuned_linear": lambda rate, **timing: tfwarmup.UntunedLinearWarmup(rate, beta_2=0.98, **timing),
    "untuned_exponential": lambda rate, **timing: tfwarmup.UntunedExponentialWarmup(rate, beta_2=0.98, **timing),
    "radam": lambda rate, **timing: tfwarmup.RAdamWarmup(rate, beta_2=0.98, **timing),
    "root": lambda rate, initial=0.0, **timing: tfwarmup.WarmupSchedule(
        rate, warmups.Root(0.98, initial=initial), **timing
    ),
}


def named_warmup(name):
    return warmups.get(name, period=30.5 if warmups.takes_period(name) else None).with_beta_2(0.98)


@pytest.mark.once
def test_every_warmup_of_the_table_has_a_schedule():
    assert {"none", *NAMED} == set(FUNCTIONS_OF_T)


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("base", [1e-2, COSINE])
def test_rate_is_the_base_times_the_factor(name, base):
    schedule, factor = NAMED[name](base), named_warmup(name)
    assert schedule.warmup == factor
    for step in (0, 1, 4, 17, 500):
        rate = base if base == 1e-2 else float(base(step))
        assert float(schedule(step)) == pytest.approx(rate * factor(step + 1), rel=1e-6)
        assert float(schedule.warmup_factor(step)) == pytest.approx(factor(step + 1), rel=1e-12)


@pytest.mark.parametrize("name", NAMED)
def test_model_with_a_nested_schedule_saves_and_loads(name, tmp_path):
    schedule = NAMED[name](COSINE, decay_after_warmup=True, initial=0.1)
    model = small_model(keras.optimizers.Adam(schedule, beta_2=0.98))
    model.fit(*small_data(), batch_size=16, epochs=2, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.optimizer.get_config() == model.optimizer.get_config()
    assert float(loaded.optimizer.learning_rate) == float(model.optimizer.learning_rate)
    clone = keras.optimizers.Adam.from_config(model.optimizer.get_config())
    assert clone.get_config() == model.optimizer.get_config()


@pytest.mark.once
def test_named_schedule_has_the_arguments_of_its_warmup_in_its_config():
    assert tfwarmup.UntunedLinearWarmup(1e-3, 0.98).get_config() == {
        "learning_rate": 1e-3,
        "beta_2": 0.98,
        "initial": 0.0,
        "decay_after_warmup": False,
        "steps_per_update": 1,
        "start": 0,
    }


def test_radam_schedule_takes_three_of_the_four_first_steps():
    after = factors.radam(5, 0.999)
    rates = {rule: tfwarmup.RAdamWarmup(1.0, 0.999, first_steps=rule)(1) for rule in factors.FIRST_STEPS[1:]}
    assert rates == pytest.approx({"nothing": 0, "constant_adam": after, "linear_adam": after * 2 / 5})
    with pytest.raises(ValueError, match=r"momentum steps need an optimizer of this package, such as"):
        tfwarmup.RAdamWarmup(1.0, 0.999, first_steps="momentum")


@pytest.mark.parametrize("name", NAMED)
def test_a_decay_that_waits_starts_when_the_warmup_ends(name):
    schedule, warmup = NAMED[name](COSINE, decay_after_warmup=True), named_warmup(name)
    for t in (1, 29, 31, 99, 100, 101, 300):
        waited = max(t - warmup.length, 0)
        expected = float(COSINE(waited)) * warmup(t)
        assert float(schedule(t - 1)) == pytest.approx(expected, rel=1e-6)
        assert float(schedule(ops.convert_to_tensor(t - 1))) == pytest.approx(expected, rel=1e-6)


def test_the_last_update_of_the_warmup_is_the_first_of_the_decay():
    decay = schedules.PiecewiseConstantDecay([1], [1.0, 0.1])
    schedule = tfwarmup.LinearWarmup(decay, period=3, decay_after_warmup=True)
    rates = [float(schedule(step)) for step in range(6)]
    assert rates == pytest.approx([1 / 3, 2 / 3, 1, 1, 0.1, 0.1])


def test_a_decay_that_waits_counts_updates_when_gradients_accumulate():
    decay = schedules.PolynomialDecay(1.0, 10, 0.0)
    plain = tfwarmup.LinearWarmup(decay, period=3, decay_after_warmup=True)
    micro = tfwarmup.LinearWarmup(decay, period=3, decay_after_warmup=True, steps_per_update=4)
    for step in range(60):
        assert float(micro(step)) == pytest.approx(float(plain(step // 4)), rel=1e-6)


def test_a_warmup_may_start_in_the_middle():
    schedule = tfwarmup.LinearWarmup(1.0, period=10, start=100, steps_per_update=2)
    assert [schedule(step) for step in (200, 202, 218, 300)] == pytest.approx([0.1, 0.2, 1, 1])


class Halved(schedules.LearningRateSchedule):
    """A schedule of a user's own around another."""

    def __init__(self, schedule):
        self.schedule = schedule

    def __call__(self, step):
        return 0.5 * self.schedule(step)

    def get_config(self):
        return {"schedule": self.schedule}


WARMING = {
    "linear": lambda: tfwarmup.LinearWarmup(1e-3, 10),
    "inside another": lambda: Halved(tfwarmup.UntunedLinearWarmup(1e-3, 0.999)),
    "cosine": lambda: schedules.CosineDecay(1e-4, 100, warmup_target=1e-3, warmup_steps=10),
    "cosine inside another": lambda: Halved(schedules.CosineDecay(1e-4, 100, warmup_target=1e-3, warmup_steps=10)),
}
PLACES = {
    "schedule": lambda rate: tfwarmup.UntunedLinearWarmup(rate, 0.999),
    "warm_up": lambda rate: tfwarmup.warm_up(keras.optimizers.Adam(rate)),
    "Adam": lambda rate: tfwarmup.Adam(rate, warmup="untuned_linear"),
    "RAdam": lambda rate: tfwarmup.RAdam(rate),
}


@pytest.mark.once
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", WARMING)
def test_two_warmups_are_refused_wherever_they_would_meet(name, place):
    with pytest.raises(ValueError, match="two would multiply. Received: learning_rate="):
        PLACES[place](WARMING[name]())


@pytest.mark.parametrize("place", PLACES)
def test_a_decay_without_a_warmup_is_taken(place):
    assert PLACES[place](Halved(schedules.CosineDecay(1e-3, 100))) is not None


class WarmUpCosine(schedules.LearningRateSchedule):
    """As users write it: linear from 0 over `warmup_steps`, in stairs of `per` steps, then a cosine."""

    def __init__(self, warmup_steps, per=1):
        super().__init__()
        self.warmup_steps, self.per = warmup_steps, per

    def __call__(self, step):
        step = ops.floor(ops.cast(step, "float32") / self.per) * self.per
        decayed = 0.5e-3 * (1 + ops.cos(np.pi * step / 1000))
        return ops.where(step < self.warmup_steps, 1e-3 * step / self.warmup_steps, decayed)

    def get_config(self):
        return {"warmup_steps": self.warmup_steps, "per": self.per}


class Halving(schedules.LearningRateSchedule):
    """As users write it for one run: without a `get_config`, so that it cannot be saved."""

    def __init__(self, rising=False):
        super().__init__()
        self.rising = rising

    def __call__(self, step):
        power = ops.cast(step, "float32") / 10.0
        return 1e-3 * 2 ** (power if self.rising else -power)


@pytest.mark.parametrize("place", PLACES)
def test_a_schedule_that_cannot_be_saved_is_taken_and_shown(place):
    made = PLACES[place](Halving())
    assert "(...)" in checks.text(made)
    with pytest.warns(UserWarning, match=r"both multiply. Use one of them. Received: learning_rate=Halving\(...\)"):
        PLACES[place](Halving(rising=True))


def test_an_optimizer_with_a_schedule_that_cannot_be_saved_is_taken_over_and_described():
    optimizer = tfwarmup.Adam.from_keras(keras.optimizers.Adam(Halving(), beta_2=0.9), warmup="untuned_linear")
    assert repr(optimizer) == "Adam(learning_rate=Halving(...), beta_2=0.9, warmup=UntunedLinear(beta_2=0.9))"
    assert tfwarmup.describe(optimizer, updates=100).startswith("untuned linear warmup over 20 of 100 updates")
    assert tfwarmup.describe(tfwarmup.warm_up(keras.optimizers.Adam(Halving(), beta_2=0.9)), updates=100).startswith(
        "untuned linear warmup over 20 of 100 updates"
    )


def test_a_second_warmup_that_is_set_is_noticed_at_the_line_that_sets_it():
    optimizer = tfwarmup.RAdam()
    with pytest.warns(UserWarning, match="both multiply") as seen:
        optimizer.learning_rate = Halving(rising=True)
    assert [warning.filename for warning in seen if warning.category is UserWarning] == [__file__]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("rate", [{"warmup_steps": 2}, {"warmup_steps": 100_000}, {"warmup_steps": 100, "per": 20}])
def test_a_second_warmup_in_a_schedule_of_ones_own_is_noticed_by_its_values_once(rate, place):
    schedule = WarmUpCosine(**rate)
    message = "both multiply. Use one of them. Received: learning_rate=.*WarmUpCosine"
    with pytest.warns(UserWarning, match=message) as seen:
        PLACES[place](schedule)
    assert [warning.filename for warning in seen if warning.category is UserWarning] == [__file__]
    PLACES[place](schedule)  # the second warning would be an error


FALLING = {
    "cosine": schedules.CosineDecay(1e-3, 100_000),
    "exponential": schedules.ExponentialDecay(1e-3, 1000, 0.96),
    "piecewise": schedules.PiecewiseConstantDecay([5], [1e-3, 1e-4]),
    "after its warmup": WarmUpCosine(warmup_steps=0),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", FALLING)
def test_a_rate_that_does_not_rise_is_taken_without_a_word(name, place):
    PLACES[place](FALLING[name])


def test_a_rising_rate_alone_is_one_warmup():
    tfwarmup.Adam(WarmUpCosine(100))


def test_one_warmup_in_the_rate_of_an_adam_without_one_is_taken():
    assert tfwarmup.Adam(tfwarmup.UntunedLinearWarmup(1e-3, 0.999)).beta_2 == 0.999


@pytest.mark.once
@pytest.mark.parametrize("make", [tfwarmup.Adam, lambda rate, **k: tfwarmup.Adam(Halved(rate), **k)])
def test_a_schedule_of_another_beta_2_than_the_optimizers_is_noticed(make):
    with pytest.raises(ValueError, match=r"`beta_2` of its optimizer, 0.9. Received: UntunedLinear\(beta_2=0.999\)"):
        make(tfwarmup.UntunedLinearWarmup(1e-3, 0.999), beta_2=0.9)


@pytest.mark.once
@pytest.mark.parametrize(
    "schedule", [tfwarmup.UntunedLinearWarmup, tfwarmup.UntunedExponentialWarmup, tfwarmup.RAdamWarmup]
)
def test_an_untuned_schedule_does_not_guess_beta_2(schedule):
    with pytest.raises(ValueError, match="needs the `beta_2` of the optimizer that it is for. Received: beta_2=None"):
        schedule(1e-3)


@pytest.mark.once
@pytest.mark.parametrize("rate", [-1e-3, math.nan, math.inf, "1e-3", None, 10**400, [1e-3], True])
def test_a_rate_that_is_no_rate_is_refused(rate):
    with pytest.raises(
        ValueError, match=r"`learning_rate` must be a finite number >= 0 or .* Received: learning_rate="
    ):
        tfwarmup.UntunedLinearWarmup(rate, 0.999)


@pytest.mark.once
@pytest.mark.parametrize("steps", [0, -1, 1.5, None])
def test_steps_per_update_must_be_a_positive_integer(steps):
    with pytest.raises(ValueError, match=r"`steps_per_update` must be an integer >= 1. Received"):
        tfwarmup.LinearWarmup(1e-3, 10, steps_per_update=steps)


@pytest.mark.once
def test_a_constant_rate_cannot_decay_after_the_warmup():
    with pytest.raises(ValueError, match="a constant does not decay. Received: learning_rate=0.001"):
        tfwarmup.LinearWarmup(1e-3, 10, decay_after_warmup=True)
    with pytest.raises(ValueError, match="`decay_after_warmup` must be True or False. Received: decay_after_warmup=5"):
        tfwarmup.LinearWarmup(COSINE, 10, decay_after_warmup=5)


@pytest.mark.once
def test_a_step_before_the_first_is_refused():
    with pytest.raises(ValueError, match="`t` must be a finite number >= 0 .* Received: t=-5"):
        tfwarmup.LinearWarmup(1e-3, 10)(-6)


@pytest.mark.parametrize("step", [None, "5", [1, 2], {}, math.nan, 10**400])
def test_a_step_that_is_no_number_is_refused(step):
    for schedule in (tfwarmup.LinearWarmup(1e-3, 10), tfwarmup.LinearWarmup(COSINE, 10, decay_after_warmup=True)):
        with pytest.raises(ValueError, match="`step` must be a number >= 0, an array or a tensor. Received: step="):
            schedule(step)


@pytest.mark.once
def test_a_repr_tells_rate_and_warmup():
    texts = {
        "LinearWarmup(learning_rate=0.001, period=10.0)": tfwarmup.LinearWarmup(1e-3, 10),
        "WarmupSchedule(learning_rate=0.001, warmup=NoWarmup())": tfwarmup.WarmupSchedule(1e-3, "none"),
        "UntunedLinearWarmup(learning_rate=CosineDecay(initial_learning_rate=0.01, decay_steps=1000, alpha=0.1), "
        "decay_after_warmup=True, steps_per_update=4, beta_2=0.98)": tfwarmup.UntunedLinearWarmup(
            COSINE, 0.98, decay_after_warmup=True, steps_per_update=4
        ),
    }
    for text, schedule in texts.items():
        assert repr(schedule) == text
        assert eval(text, {**vars(tfwarmup), **vars(warmups), **vars(schedules)}).get_config() == schedule.get_config()


@pytest.mark.once
def test_numpy_numbers_are_saved():
    schedule = tfwarmup.LinearWarmup(np.float32(1e-3), np.int64(10))
    assert keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(schedule))(3) == schedule(3)
