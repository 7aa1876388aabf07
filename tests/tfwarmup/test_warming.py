"""Warmups for optimizers that exist: `warm_up` before the first update, `restart_warmup` after any."""

import contextlib

import keras
import numpy as np
import pytest

import tfwarmup
from tests.tfwarmup.helpers import (
    BACKEND,
    fit,
    number,
    of_keras,
    random_gradients,
    reloaded,
    small_data,
    small_model,
    trajectory,
    weights,
)
from tfwarmup import warmups
from tfwarmup.analysis.applied import applied_rate
from tfwarmup.compat import updates_made

COSINE = keras.optimizers.schedules.CosineDecay(1e-2, 1000, alpha=0.1)


several_optimizers = pytest.mark.skipif(
    not hasattr(keras.optimizers, "MultiOptimizer"), reason=f"Keras {keras.__version__} has no MultiOptimizer"
)


SECOND_MOMENTS = [
    ("Adam", "beta_2"),
    ("AdamW", "beta_2"),
    ("Nadam", "beta_2"),
    of_keras("Lamb", "Lamb", "beta_2"),
    of_keras("Muon", "Muon", "adam_beta_2"),
]


class MyLion(keras.optimizers.Lion):
    pass


class MyAdam(keras.optimizers.Adam):
    pass


class MyOwn(keras.optimizers.SGD):
    """Stands for an optimizer whose second moment nobody here knows of."""


@pytest.mark.parametrize(("kind", "argument"), [*SECOND_MOMENTS, (MyAdam, "beta_2"), (MyOwn, None)])
def test_warm_up_reads_the_beta_2_of_every_second_moment_or_is_told(kind, argument):
    make = kind if isinstance(kind, type) else getattr(keras.optimizers, kind)
    inner = make(1e-2, **({} if argument is None else {argument: 0.98}))
    scaled = keras.optimizers.LossScaleOptimizer(inner)
    assert tfwarmup.warm_up(scaled, beta_2=None if argument else 0.98) is scaled
    assert float(inner.learning_rate) == pytest.approx(1e-4, rel=1e-6)


WITHOUT = ["SGD", "RMSprop", "Lion", "Adamax", "Adafactor", MyLion, MyOwn]


@pytest.mark.parametrize("kind", WITHOUT)
def test_warm_up_refuses_an_optimizer_without_a_second_moment_but_for_a_period(kind):
    optimizer = (kind if isinstance(kind, type) else getattr(keras.optimizers, kind))(1e-2)
    with pytest.raises(ValueError, match=r"`beta_2` of the optimizer's second moment.*Received: optimizer="):
        tfwarmup.warm_up(optimizer)
    assert number(optimizer.learning_rate) == pytest.approx(1e-2)
    assert float(tfwarmup.warm_up(optimizer, "linear", period=10).learning_rate) == pytest.approx(1e-3, rel=1e-6)


@pytest.mark.once
@pytest.mark.parametrize(
    ("warmup", "options", "message"),
    [
        ("untuned_linear", {"beta_2": 0.98}, "must have the `beta_2` of its optimizer, 0.98. Received: UntunedLinear"),
        (warmups.UntunedLinear(0.98), {}, "must have the `beta_2` of its optimizer, 0.999. Received: UntunedLinear"),
        (warmups.Linear(10), {"beta_2": 0.999}, r"Linear\(period=10.0\) takes no `beta_2`. Received: beta_2=0.999"),
        ("untuned_linear", {"decay_after_warmup": True}, "a constant does not decay"),
        (warmups.Rectified(first_steps="momentum"), {}, "momentum steps need an optimizer of this package"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_and_nothing_is_changed(warmup, options, message):
    optimizer = keras.optimizers.Adam(1e-3)
    with pytest.raises(ValueError, match=message):
        tfwarmup.warm_up(optimizer, warmup, **options)
    assert number(optimizer.learning_rate) == pytest.approx(1e-3)


@pytest.mark.once
@pytest.mark.parametrize("bad", [None, "adam", keras.optimizers.Adam, tfwarmup.LinearWarmup(1e-3, 10)])
@pytest.mark.parametrize("function", [tfwarmup.warm_up, tfwarmup.reduce_first, tfwarmup.warmup_factor])
def test_what_is_no_optimizer_is_refused(function, bad):
    with pytest.raises(ValueError, match="`optimizer` must be a Keras optimizer. Received: "):
        function(bad)


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        (lambda: tfwarmup.Adam(warmup="untuned_linear"), "without a warmup: two would multiply. Received: Adam"),
        (lambda: tfwarmup.RAdam(), "without a warmup: two would multiply. Received: RAdam"),
        (lambda: keras.optimizers.Adam(lambda: 1e-3), "whose learning rate is a number or a `LearningRateSchedule`"),
    ],
)
def test_an_optimizer_that_takes_no_warmup_is_refused(optimizer, message):
    with pytest.raises(ValueError, match=message):
        tfwarmup.warm_up(optimizer())


@pytest.mark.parametrize("steps", [of_keras("ScheduleFreeAdamW", steps) for steps in (0, 10)])
def test_an_average_in_which_a_warmup_counts_fully_is_refused(steps):
    optimizer = keras.optimizers.ScheduleFreeAdamW(1e-3, warmup_steps=steps)
    with pytest.raises(ValueError, match="must be used at a constant rate: .* Received: ScheduleFreeAdamW"):
        tfwarmup.warm_up(optimizer)
    model = small_model(optimizer)
    model.fit(*small_data(), verbose=0)
    with pytest.raises(ValueError, match="must be used at a constant rate: .* Received: ScheduleFreeAdamW"):
        tfwarmup.restart_warmup(model, "untuned_linear")
    assert number(optimizer.learning_rate) == pytest.approx(1e-3)


@pytest.mark.parametrize("make", [tfwarmup.Adam, tfwarmup.RAdam])
def test_a_decay_waits_for_the_warmup_inside_our_optimizers_too(make):
    options = {"warmup": "untuned_linear"} if make is tfwarmup.Adam else {}
    optimizer = make(COSINE, beta_2=0.9, decay_after_warmup=True, gradient_accumulation_steps=2, **options)
    gradients = random_gradients(updates=100, size=3)
    trajectory(optimizer, gradients)
    assert float(optimizer.learning_rate) == pytest.approx(float(COSINE(51 - 20)), rel=1e-6)
    assert applied_rate(optimizer).rate == pytest.approx(
        float(COSINE(50 - 20)) * applied_rate(optimizer).warmup_factor, rel=1e-5
    )


@several_optimizers
def test_every_member_of_a_multi_optimizer_gets_the_warmup_of_its_own_beta_2():
    first, second = keras.optimizers.Adam(1e-2, beta_2=0.9), keras.optimizers.AdamW(1e-2, beta_2=0.98)
    members = keras.optimizers.OptimizerMap(first, {"dense.*": second})
    tfwarmup.warm_up(keras.optimizers.MultiOptimizer(members))
    assert [float(each.learning_rate) for each in (first, second)] == pytest.approx([1e-2 / 20, 1e-2 / 100], rel=1e-6)


@several_optimizers
def test_a_multi_optimizer_is_warmed_up_as_a_whole_or_not_at_all():
    first, second = keras.optimizers.Adam(1e-2), keras.optimizers.SGD(1e-2)
    optimizer = keras.optimizers.MultiOptimizer(keras.optimizers.OptimizerMap(first, {"dense.*": second}))
    with pytest.raises(ValueError, match="Received: optimizer=SGD"):
        tfwarmup.warm_up(optimizer)
    assert [number(each.learning_rate) for each in (first, second)] == pytest.approx([1e-2, 1e-2])
    with pytest.raises(ValueError, match="ask each of `optimizer.optimizers`. Received: MultiOptimizer"):
        tfwarmup.warmup_factor(optimizer)
    with pytest.raises(ValueError, match="The members of a `MultiOptimizer` must be known"):
        tfwarmup.warm_up(keras.optimizers.MultiOptimizer(lambda variable: first))


@several_optimizers
def test_a_warmed_up_multi_optimizer_trains_and_starts_again():
    members = keras.optimizers.OptimizerMap(keras.optimizers.Adam(1e-2, beta_2=0.5))
    model = small_model(tfwarmup.warm_up(keras.optimizers.MultiOptimizer(members)))
    fit(model, epochs=3)
    (member,) = model.optimizer.optimizers
    assert float(member.learning_rate) == pytest.approx(1e-2)
    tfwarmup.restart_warmup(model)
    assert float(member.learning_rate) == pytest.approx(1e-2 / 4)


# Warming up again.


def test_warm_up_refuses_an_optimizer_that_has_been_used():
    model = small_model(keras.optimizers.Adam(1e-2))
    fit(model)
    with pytest.raises(ValueError, match=r"use `restart_warmup\(model\)`. Received: Adam after 4 updates"):
        tfwarmup.warm_up(model.optimizer)


def rates_of(model, epochs=1, callbacks=()):
    """The rate that was really applied at each update, from the weights: the gradient of Keras' Adam is divided out."""
    rates = tfwarmup.probes.RateProbe()
    fit(model, epochs, callbacks=[*callbacks, rates])
    return rates.history["learning_rate_applied"]


def fresh_rate(rate, beta_2=0.9):
    return [rate * min(1, t * (1 - beta_2) / 2) for t in range(1, 5)]


RESTARTED = {
    "keras": lambda: tfwarmup.warm_up(keras.optimizers.Adam(1e-2, beta_2=0.9)),
    "loss scale": lambda: keras.optimizers.LossScaleOptimizer(
        tfwarmup.warm_up(keras.optimizers.Adam(1e-2, beta_2=0.9)), initial_scale=1.0
    ),
    "ours": lambda: tfwarmup.Adam(1e-2, beta_2=0.9, warmup="untuned_linear"),
}


@pytest.mark.parametrize("name", RESTARTED)
def test_a_train_function_compiled_before_sees_the_new_warmup(name):
    """What was applied is read from the weights, not from what the optimizer says."""

    def run(restart):
        model = small_model(RESTARTED[name]())
        fit(model, epochs=8)
        before = weights(model)
        if restart:
            tfwarmup.restart_warmup(model)
        model.fit(*small_data(), batch_size=64, epochs=1, shuffle=False, verbose=0)
        return np.abs(weights(model) - before)

    # The first update after the restart is 1 / 20 of what it would have been.
    np.testing.assert_allclose(run(restart=True), run(restart=False) / 20, rtol=2e-3, atol=2e-8)


def test_a_loaded_model_is_fine_tuned_with_a_second_warmup(tmp_path):
    model = small_model(keras.optimizers.Adam(1e-2, beta_2=0.9))
    rates_of(model, epochs=6)
    loaded = reloaded(model, tmp_path)
    with pytest.raises(ValueError, match="needs an optimizer with a warmup, or a `warmup` for it. Received: "):
        tfwarmup.restart_warmup(loaded)
    tfwarmup.restart_warmup(loaded, "untuned_linear")
    assert rates_of(loaded) == pytest.approx(fresh_rate(1e-2), rel=1e-6)
    loaded.save(tmp_path / "again.keras")  # the middle of the second warmup is saved too
    again = keras.models.load_model(tmp_path / "again.keras")
    assert rates_of(again)[0] == pytest.approx(1e-2 * 5 / 20, rel=1e-6)


class RestartAt(keras.callbacks.Callback):
    def __init__(self, batch):
        super().__init__()
        self.batch = batch

    def on_train_batch_end(self, batch, logs=None):
        if batch == self.batch:
            tfwarmup.restart_warmup(self.model)


@pytest.mark.parametrize("name", RESTARTED)
def test_a_callback_starts_the_warmup_again_in_the_middle_of_fit(name):
    model = small_model(RESTARTED[name]())
    assert rates_of(model, callbacks=[RestartAt(1)])[2:] == pytest.approx(fresh_rate(1e-2)[:2], rel=1e-6)


@pytest.mark.parametrize("name", RESTARTED)
def test_a_second_phase_may_have_another_warmup(name):
    model = small_model(RESTARTED[name]())
    rates_of(model)
    tfwarmup.restart_warmup(model, "linear", period=8)
    assert rates_of(model) == pytest.approx([1e-2 * t / 8 for t in range(1, 5)], rel=1e-6)


@pytest.mark.once
@pytest.mark.parametrize("bad", [None, keras.optimizers.Adam(), "model", keras.Sequential()])
def test_restart_needs_a_compiled_model(bad):
    with pytest.raises(ValueError, match="`restart_warmup` needs a compiled model"):
        tfwarmup.restart_warmup(bad)


def test_an_optimizer_without_a_warmup_has_none_to_restart():
    with pytest.raises(ValueError, match="needs an optimizer with a warmup. Received: Adam"):
        tfwarmup.Adam().restart_warmup()
    with pytest.raises(ValueError, match="These belong to a new warmup, which must be given. Received: "):
        tfwarmup.restart_warmup(small_model(RESTARTED["ours"]()), beta_2=0.9)
    with pytest.raises(ValueError, match=r"or a `warmup` for it. Received: Adam .* warmup=NoWarmup\(\)"):
        tfwarmup.restart_warmup(small_model(RESTARTED["ours"]()), "none")
    assert tfwarmup.warmup_factor(keras.optimizers.SGD()) == 1


@pytest.mark.skipif(BACKEND == "torch", reason="float16 on the CPU is slow in torch")
def test_the_factor_is_seen_through_the_loss_scale_of_compile():
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = small_model(tfwarmup.Adam(1e-3, warmup="untuned_linear"))
        assert type(model.optimizer).__name__ == "LossScaleOptimizer"
        fit(model)
        updates = updates_made(model.optimizer)
        assert float(tfwarmup.warmup_factor(model.optimizer)) == pytest.approx((updates + 1) / 2000, rel=1e-6)
    finally:
        keras.config.set_dtype_policy("float32")


# The optimizers of this package have a warmup of their own.


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("warmup", ["untuned_linear", "dynamic", warmups.Linear(20, initial=0.5)])
def test_warm_up_gives_our_adam_the_warmup_it_would_get_when_it_is_made(warmup, waits):
    options = {"decay_after_warmup": waits and warmup != "dynamic"}
    made = tfwarmup.Adam(COSINE, beta_2=0.9, warmup=warmup, **options)
    warmed = tfwarmup.warm_up(tfwarmup.Adam(COSINE, beta_2=0.9), warmup, **options)
    assert {**warmed.get_config(), "name": made.name} == made.get_config()
    gradients = random_gradients(30)
    np.testing.assert_array_equal(trajectory(warmed, gradients), trajectory(made, gradients))


@pytest.mark.parametrize("begin", ["made", "warm_up", "restart_warmup"])
def test_callbacks_set_the_rate_of_our_adam_during_its_warmup(begin):
    optimizer = tfwarmup.Adam(1e-2, beta_2=0.9, warmup="untuned_linear" if begin == "made" else None)
    model = small_model(tfwarmup.warm_up(optimizer) if begin == "warm_up" else optimizer)
    if begin == "restart_warmup":
        fit(model, epochs=2)
        tfwarmup.restart_warmup(model, "untuned_linear")
    plateau = keras.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=0, min_delta=10.0)
    rates = [1e-2] * 8 + [5e-3] * 4
    expected = [rate * t / 20 for rate, t in zip(rates, range(1, 13), strict=True)]
    assert rates_of(model, epochs=3, callbacks=[plateau]) == pytest.approx(expected, rel=1e-6)


OTHER_WARMUPS = {
    "another": ("linear", {"period": 5}),
    "an initial factor": (warmups.Rectified(initial=0.5), {}),
}


@pytest.mark.parametrize("name", OTHER_WARMUPS)
def test_radam_refuses_a_warmup_that_it_could_not_save_and_is_as_before(name, tmp_path):
    warmup, options = OTHER_WARMUPS[name]
    model = small_model(tfwarmup.RAdam(1e-2, beta_2=0.9))
    fit(model, epochs=2)
    before = float(model.optimizer.warmup_factor)
    with pytest.raises(ValueError, match="`RAdam` has its own warmup, .* Received: "):
        tfwarmup.restart_warmup(model, warmup, **options)
    with pytest.raises(ValueError, match="`RAdam` has its own warmup, .* Received: "):
        model.optimizer.restart_warmup(warmup, **options)
    assert float(model.optimizer.warmup_factor) == before
    model.save(tmp_path / "model.keras")
    assert keras.models.load_model(tmp_path / "model.keras").optimizer.get_config() == model.optimizer.get_config()


def test_radam_starts_again_with_other_first_steps_and_is_saved(tmp_path):
    model = small_model(tfwarmup.RAdam(1e-2, beta_2=0.9))
    fit(model, epochs=2)
    tfwarmup.restart_warmup(model, warmups.Rectified(first_steps="linear_adam"))
    loaded = reloaded(model, tmp_path)
    expected = [1e-2 * warmups.Rectified(0.9, "linear_adam")(t) for t in range(1, 5)]
    for each in (model, loaded):
        assert rates_of(each) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("warmup", "options", "message"),
    [
        ("linear", {}, "`Linear` needs `period`, or .* Received: period=None"),
        (None, {"period": 5}, "These belong to a new warmup, which must be given. Received: warmup=None, "),
        (warmups.UntunedLinear(0.5), {}, "must have the `beta_2` of its optimizer, 0.9. Received: UntunedLinear"),
        ("dynamic", {}, "A dynamic warmup must be given before the first update"),
        ("cosine", {}, "`warmup` must be one of none, linear"),
        ("none", {}, "`restart_warmup` needs an optimizer with a warmup. Received: "),
    ],
)
def test_restarting_an_optimizer_checks_what_restarting_a_model_checks(warmup, options, message):
    optimizer = tfwarmup.Adam(1e-2, beta_2=0.9, warmup="untuned_linear")
    trajectory(optimizer, random_gradients(2))
    before = optimizer.get_config(), float(optimizer.warmup_factor)
    with pytest.raises(ValueError, match=message):
        optimizer.restart_warmup(warmup, **options)
    assert (optimizer.get_config(), float(optimizer.warmup_factor)) == before


@pytest.mark.parametrize(
    ("warmup", "options", "expected"),
    [
        ("linear", {"period": 8}, warmups.Linear(8)),
        (warmups.UntunedExponential(), {}, warmups.UntunedExponential(0.9)),
        ("radam", {}, warmups.Rectified(0.9)),
    ],
)
def test_an_optimizer_restarts_with_a_warmup_given_in_any_way_and_is_saved(warmup, options, expected, tmp_path):
    model = small_model(tfwarmup.Adam(1e-2, beta_2=0.9, warmup="untuned_linear"))
    fit(model, epochs=2)
    compiles = BACKEND != "torch"
    rule = "A train step that is compiled already goes on with the old warmup: .* Received: "
    with pytest.warns(UserWarning, match=rule) if compiles else contextlib.nullcontext():
        model.optimizer.restart_warmup(warmup, **options)
    model.optimizer.restart_warmup(warmup, **options)  # it is no other warmup any more
    assert model.optimizer.warmup == expected
    loaded = reloaded(model, tmp_path)
    assert rates_of(loaded) == pytest.approx([1e-2 * expected(t) for t in range(1, 5)], rel=1e-6)
