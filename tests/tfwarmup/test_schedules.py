import math

import keras
import numpy as np
import pytest
from keras import ops
from keras.optimizers import schedules

import tfwarmup
from tests.tfwarmup.helpers import FUNCTIONS_OF_T
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


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("waits", [False, True])
def test_the_rate_is_the_decay_times_the_factor_and_a_decay_can_wait(name, waits):
    schedule, warmup = NAMED[name](COSINE, decay_after_warmup=waits), named_warmup(name)
    assert (schedule.warmup, NAMED[name](1e-2).warmup, {"none", *NAMED}) == (warmup, warmup, set(FUNCTIONS_OF_T))
    for t in (1, 2, 5, 29, 31, 99, 101, 300):
        expected = float(COSINE(max(t - warmup.length, 0) if waits else t - 1)) * warmup(t)
        assert float(schedule(t - 1)) == pytest.approx(expected, rel=1e-6)
        assert float(schedule(ops.convert_to_tensor(t - 1))) == pytest.approx(expected, rel=1e-6)
        assert float(schedule.warmup_factor(t - 1)) == pytest.approx(warmup(t), rel=1e-12)


def test_radam_schedule_takes_three_of_the_four_first_steps():
    after = factors.radam(5, 0.999)
    rates = {rule: tfwarmup.RAdamWarmup(1.0, 0.999, first_steps=rule)(1) for rule in factors.FIRST_STEPS[1:]}
    assert rates == pytest.approx({"nothing": 0, "constant_adam": after, "linear_adam": after * 2 / 5})
    with pytest.raises(ValueError, match=r"momentum steps need an optimizer of this package, such as"):
        tfwarmup.RAdamWarmup(1.0, 0.999, first_steps="momentum")


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
    "inside another": Halved(schedules.CosineDecay(1e-3, 100)),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", FALLING)
def test_a_rate_that_does_not_rise_is_taken_without_a_word(name, place):
    assert PLACES[place](FALLING[name]) is not None
    tfwarmup.Adam(WarmUpCosine(100))  # one warmup


@pytest.mark.once
@pytest.mark.parametrize("make", [tfwarmup.Adam, lambda rate, **k: tfwarmup.Adam(Halved(rate), **k)])
def test_a_schedule_of_another_beta_2_than_the_optimizers_is_noticed(make):
    with pytest.raises(ValueError, match=r"`beta_2` of its optimizer, 0.9. Received: UntunedLinear\(beta_2=0.999\)"):
        make(tfwarmup.UntunedLinearWarmup(1e-3, 0.999), beta_2=0.9)


NO_NUMBERS = (None, "5", [1, 2], {}, math.nan, 10**400)


@pytest.mark.once
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: tfwarmup.RAdamWarmup(1e-3),
            "needs the `beta_2` of the optimizer that it is for. Received: beta_2=None",
        ),
        (
            lambda: tfwarmup.LinearWarmup(1e-3, 10, steps_per_update=1.5),
            "`steps_per_update` must be an integer >= 1. R",
        ),
        (lambda: tfwarmup.LinearWarmup(1e-3, 10, start=-1), "`start` must be an integer >= 0. Received: start=-1"),
        (lambda: tfwarmup.LinearWarmup(1e-3, 10, warmup_steps=5), "`warmup_steps` is not an argument: use "),
        (lambda: tfwarmup.LinearWarmup(1e-3, 10, decay_after_warmup=True), "does not decay. Received: learning_rate="),
        (
            lambda: tfwarmup.LinearWarmup(COSINE, 10, decay_after_warmup=5),
            "must be True or False. Received: decay_after",
        ),
        (lambda: tfwarmup.LinearWarmup(1e-3, 10)(-6), "`t` must be a finite number >= 0 .* Received: t=-5"),
        *(
            (lambda step=step: tfwarmup.LinearWarmup(1e-3, 10)(step), "`step` must be a number >= 0")
            for step in NO_NUMBERS
        ),
        *((lambda rate=rate: tfwarmup.LinearWarmup(rate, 10), "`learning_rate` must be a fin") for rate in NO_NUMBERS),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("name", NAMED)
def test_a_schedule_is_printed_and_saved_with_the_arguments_of_its_warmup(name):
    schedule = NAMED[name](COSINE, decay_after_warmup=True, initial=np.float32(0.125), steps_per_update=np.int64(4))
    optimizer = keras.optimizers.Adam(schedule, beta_2=0.98)
    assert keras.optimizers.Adam.from_config(optimizer.get_config()).get_config() == optimizer.get_config()
    names = {**vars(tfwarmup), **vars(warmups), **vars(schedules)}
    for copy in (
        keras.saving.deserialize_keras_object(optimizer.get_config()["learning_rate"]),
        eval(repr(schedule), names),
    ):
        assert type(copy) is type(schedule)
        assert copy.get_config() == schedule.get_config()
        assert float(copy(3)) == float(schedule(3))
