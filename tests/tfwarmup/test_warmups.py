"""Warmups as objects: made by name or by class, checked when they are made, equal when their arguments are."""

import dataclasses
from fractions import Fraction

import keras
import numpy as np
import pytest
from keras import ops

import tfwarmup
from tests.tfwarmup.helpers import BACKEND, FUNCTIONS_OF_T, fit, small_model
from tfwarmup import effective_warmup_period, factors, warmups

OPTIONS = {"linear": {"period": 2000}, "exponential": {"period": 2000}}


def made(name, beta_2=0.999):
    return warmups.get(name, **OPTIONS.get(name, {})).with_beta_2(beta_2)


SUMMED = [(name, {}) for name in FUNCTIONS_OF_T] + [("radam", {"first_steps": rule}) for rule in factors.FIRST_STEPS]
SUMMED += [(name, {"initial": 0.3}) for name in FUNCTIONS_OF_T if name != "none"]


@pytest.mark.once
@pytest.mark.parametrize(("name", "options"), SUMMED)
def test_effective_period_is_the_sum(name, options):
    for beta_2 in (0.9, 0.99, 0.9999):
        own = {} if name in ("none", *OPTIONS) else {"beta_2": beta_2}
        warmup = warmups.get(name, **own, **OPTIONS.get(name, {}), **options)
        total = np.sum(1 - warmup(np.arange(1.0, 60 / (1 - beta_2) + 100_000)))
        assert warmup.effective_period == pytest.approx(total, rel=1e-11)
        found = effective_warmup_period(name, **own, **OPTIONS.get(name, {}), **options)
        assert found == effective_warmup_period(warmup) == warmup.effective_period
        with pytest.raises(dataclasses.FrozenInstanceError):
            warmup.initial = 0.5


def test_optax_and_this_package_mean_the_same_by_an_initial_value():
    optax = pytest.importorskip("optax")
    theirs = optax.schedules.linear_schedule(init_value=2e-4, end_value=1e-3, transition_steps=100)
    ours = tfwarmup.LinearWarmup(1e-3, period=100, initial=0.2)
    for step in (0, 1, 50, 98, 200):  # optax' first update is its initial value, the paper's first one step above
        assert float(ours(step)) == pytest.approx(float(theirs(step + 1)), rel=1e-6)


@pytest.mark.once
def test_length_is_when_a_decay_may_begin():
    lengths = {name: made(name).length for name in FUNCTIONS_OF_T}
    assert lengths == pytest.approx(
        {"none": 0, "linear": 2000, "exponential": 4000, "root": 1225.8106205507}
        | dict.fromkeys(("untuned_linear", "untuned_exponential", "radam"), 2000)
    )


@pytest.mark.once
def test_numbers_of_every_kind_are_saved_as_floats():
    warmup = warmups.Linear(Fraction(21, 2), initial=np.float32(0.5))
    assert warmup.get_config() == {"period": 10.5, "initial": 0.5}
    assert {type(value) for value in warmup.get_config().values()} == {float}


def test_periods_of_any_size_have_an_effective_period():
    assert [warmups.Linear(period=period).effective_period for period in (1e-300, 1e300)] == [0, 5e299]
    assert warmups.Exponential(period=1e-3).effective_period == 0
    assert warmups.Exponential(period=1e300).effective_period == pytest.approx(1e300)


@keras.saving.register_keras_serializable("tests")
def square_root(t):
    return ops.minimum(1.0, ops.sqrt(t / 100.0))


def plain_line(t):
    return t / 50.0 if isinstance(t, float) and t < 50 else ops.minimum(t / 50.0, 1.0)


def test_a_function_of_t_is_a_warmup():
    warmup = warmups.get(square_root)
    assert warmup == warmups.Custom(square_root)
    assert float(warmup(25.0)) == pytest.approx(0.5)
    np.testing.assert_allclose(warmup(np.array([1, 25, 400])), [0.1, 0.5, 1], rtol=1e-6)
    assert warmup.effective_period == pytest.approx(100 - sum(np.sqrt(np.arange(1, 101) / 100)), rel=1e-5)
    assert repr(warmup) == "Custom(function=square_root)"


@pytest.mark.parametrize("t", [None, "5", -1, [1]])
def test_a_function_is_not_asked_for_what_is_no_update(t):
    with pytest.raises(ValueError, match="`t` must be a finite number >= 0"):
        warmups.Custom(square_root)(t)


def test_a_function_has_a_length_if_it_is_given_and_an_effective_period_if_it_reaches_one():
    assert warmups.Custom(square_root, period=100).length == 100
    with pytest.raises(ValueError, match="The length of a custom warmup must be given as `period`"):
        _ = warmups.Custom(square_root).length
    with pytest.raises(ValueError, match="needs a warmup that reaches 1 within"):
        _ = warmups.Custom(lambda t: 0.5).effective_period


@pytest.mark.parametrize(
    "function", [lambda t: 2.0, lambda t: -0.1, lambda t: float("nan"), lambda: 1.0, lambda t: "a"]
)
def test_a_function_that_is_no_warmup_is_refused(function):
    with pytest.raises(ValueError, match=r"must be a function of t with values in \[0, 1\]. Received"):
        warmups.get(function)


def at_most_one(t):
    return min(1.0, t / 10)


def by_cases(t):
    return t / 10 if t < 10 else 1.0


@pytest.mark.skipif(BACKEND == "torch", reason="torch does not compile a train step")
@pytest.mark.parametrize("function", [at_most_one, by_cases])
def test_a_function_that_a_compiled_step_cannot_call_is_refused_when_it_is_given(function):
    for make in (warmups.get, lambda warmup: tfwarmup.Adam(warmup=warmup)):
        with pytest.raises(
            ValueError, match=f"must also take a tensor that has no value yet, .* Received: .*{function.__name__}"
        ):
            make(function)


@pytest.mark.skipif(BACKEND != "torch", reason="other backends compile the train step")
@pytest.mark.parametrize("function", [at_most_one, by_cases])
def test_a_function_with_cases_is_a_warmup_on_torch(function):
    model = small_model(tfwarmup.Adam(1e-2, warmup=function))
    fit(model)
    assert float(tfwarmup.warmup_factor(model.optimizer)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "make",
    [lambda: tfwarmup.warm_up(keras.optimizers.SGD(0.1), square_root), lambda: tfwarmup.Adam(0.1, warmup=square_root)],
)
def test_a_function_may_divide_the_steps_that_keras_counts_in_integers(make):
    model = small_model(make())
    fit(model, epochs=2)
    assert float(tfwarmup.warmup_factor(model.optimizer)) == pytest.approx(0.3, rel=1e-6)


def test_a_function_that_is_not_registered_needs_custom_objects_to_load():
    stored = keras.saving.serialize_keras_object(warmups.Custom(plain_line))
    with pytest.raises(TypeError, match="plain_line"):
        keras.saving.deserialize_keras_object(stored)
    with keras.saving.custom_object_scope({"plain_line": plain_line}):
        assert keras.saving.deserialize_keras_object(stored) == warmups.Custom(plain_line)


GIVEN_BY_SHARE = {
    "an object": lambda **run: warmups.Linear(**run),
    "a name": lambda **run: warmups.get("linear", **run),
    "Adam": lambda **run: tfwarmup.Adam(warmup="linear", **run).warmup,
    "warm_up": lambda **run: tfwarmup.warm_up(tfwarmup.Adam(), "linear", **run).warmup,
    "a schedule": lambda **run: tfwarmup.LinearWarmup(1e-3, **run).warmup,
    "any schedule": lambda **run: tfwarmup.WarmupSchedule(1e-3, "linear", **run).warmup,
}


@pytest.mark.parametrize("way", GIVEN_BY_SHARE)
def test_a_share_of_a_run_is_a_period_that_is_not_rounded_and_needs_the_length_of_the_run(way):
    warmup = GIVEN_BY_SHARE[way](share=0.05, updates=1410)
    assert warmup == warmups.Linear(70.5)
    assert warmup.get_config() == {"period": 70.5, "initial": 0.0}
    assert warmups.Exponential(share=1, updates=7) == warmups.Exponential(7)
    with pytest.raises(ValueError, match="the length of the run, which `tfwarmup.updates_of` counts. Received: period"):
        GIVEN_BY_SHARE[way](share=0.05)


@pytest.mark.once
@pytest.mark.parametrize(
    ("warmup", "options", "message"),
    [
        ("linear", {}, "`Linear` needs `period`, or .* Received: period=None"),
        (
            "linear",
            {"updates": 100},
            "needs `period`, or `share` and `updates`, .* Received: period=None, share=None, u",
        ),
        ("linear", {"share": 0.05, "updates": 100, "period": 5}, "needs `period`, or `share` .* Received: period=5, "),
        ("linear", {"share": 5, "updates": 100}, r"`share` must be a number in \(0, 1\], such as 0.05. Received: .*=5"),
        ("linear", {"share": 0.05, "updates": 0}, "`updates` must be a finite number > 0. Received: updates=0"),
        ("linear", {"period": 0}, "`period` must be a finite number > 0. Received: period=0"),
        ("linear", {"period": "5%"}, "`period` must be a finite number > 0. Received: period='5%'"),
        ("linear", {"period": 9, "initial": 1.0}, r"`initial` must be a number in \[0, 1\). Received: initial=1.0"),
        ("linear", {"period": 9, "initial": "0.1"}, r"`initial` must be a number in \[0, 1\). Received: initial='0.1'"),
        ("none", {"initial": 0.5}, "no initial factor. Received: initial=0.5"),
        ("root", {"share": 0.05, "updates": 100}, "Warmup 'root' takes no `share`. Received: share=0.05"),
        ("linear", {"beta_2": 0.9, "period": 10}, "Warmup 'linear' takes no `beta_2`. Received: beta_2=0.9"),
        ("radam", {"first_steps": "sgd"}, "`first_steps` must be one of momentum, .* Received: first_steps='sgd'"),
        ("radam", {"rho_threshold": 3}, "`rho_threshold` must be a number >= 4. Received: rho_threshold=3"),
        ("radam", {"beta_2": 0.65, "rho_threshold": 5}, "beta_2 > 0.666667: .* Received: beta_2=0.65"),
        (warmups.Linear(10), {"period": 10}, "Only a warmup given by its name takes arguments. Received: warmup="),
        ("cosine", {}, "`warmup` must be one of none, linear, .* a function of t. Received: warmup='cosine'"),
        (100, {}, "a linear warmup over 100 updates is `warmup='linear', period=100`. Received: warmup=100"),
        ("UntunedLinear", {}, "or a function of t; did you mean 'untuned_linear'. Received: warmup='UntunedLinear'"),
    ]
    + [(bad, {}, "`warmup` must be one of") for bad in (None, "", {}, warmups.Linear, tfwarmup.LinearWarmup(1.0, 10))],
)
def test_what_is_no_warmup_is_refused(warmup, options, message):
    with pytest.raises(ValueError, match=message):
        warmups.get(warmup, **options)


@pytest.mark.once
def test_an_untuned_warmup_waits_for_the_beta_2_of_its_optimizer():
    with pytest.raises(ValueError, match="`UntunedLinear` needs the `beta_2` of the .* Received: beta_2=None"):
        warmups.UntunedLinear()(1)
    assert warmups.UntunedLinear().with_beta_2(0.98) == warmups.UntunedLinear(0.98)
