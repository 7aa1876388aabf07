"""Warmups for optimizers that exist: `warm_up` before the first update, `restart_warmup` after any."""

import contextlib

import keras
import numpy as np
import pytest

import tfwarmup
from tests.tfwarmup.helpers import (
    BACKEND,
    KERAS,
    number,
    of_keras,
    random_gradients,
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


def optimizer_of(name, *arguments, **options):
    return getattr(keras.optimizers, name)(*arguments, **options)


def train(optimizer, batch_size, epochs=10):
    model = small_model(optimizer)
    model.fit(*small_data(), batch_size=batch_size, epochs=epochs, shuffle=False, verbose=0)
    return weights(model)


@pytest.mark.skipif(KERAS < (3, 5), reason="the bias correction of Keras' Adam counts micro-batches")
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
    assert config["warmup"]["config"]["beta_2"] == 0.98
    assert config["learning_rate"]["class_name"] == "CosineDecay"


def test_warm_up_reaches_through_a_loss_scale_optimizer():
    inner = keras.optimizers.Adam(1e-2, beta_2=0.98, gradient_accumulation_steps=3)
    scaled = keras.optimizers.LossScaleOptimizer(inner)
    assert tfwarmup.warm_up(scaled) is scaled
    schedule = inner.get_config()["learning_rate"]["config"]
    assert (schedule["warmup"]["config"]["beta_2"], schedule["steps_per_update"]) == (0.98, 3)


SECOND_MOMENTS = [
    ("Adam", "beta_2"),
    ("AdamW", "beta_2"),
    ("Nadam", "beta_2"),
    of_keras("Lamb", "Lamb", "beta_2"),
    of_keras("Muon", "Muon", "adam_beta_2"),
]


@pytest.mark.parametrize(("name", "argument"), SECOND_MOMENTS)
def test_warm_up_reads_the_beta_2_of_every_built_in_second_moment(name, argument):
    optimizer = tfwarmup.warm_up(optimizer_of(name, 1e-2, **{argument: 0.98}))
    assert float(optimizer.learning_rate) == pytest.approx(1e-4, rel=1e-6)


class MyLion(keras.optimizers.Lion):
    pass


class MyAdam(keras.optimizers.Adam):
    pass


class MyOwn(keras.optimizers.SGD):
    """Stands for an optimizer whose second moment nobody here knows of."""


WITHOUT = ["SGD", "RMSprop", "Lion", "Adamax", "Adafactor", MyLion, MyOwn]


@pytest.mark.parametrize("kind", WITHOUT)
def test_warm_up_refuses_an_optimizer_without_a_second_moment_but_for_a_period(kind):
    optimizer = kind(1e-2) if isinstance(kind, type) else optimizer_of(kind, 1e-2)
    with pytest.raises(ValueError, match=r"`beta_2` of the optimizer's second moment.*Received: optimizer="):
        tfwarmup.warm_up(optimizer)
    assert number(optimizer.learning_rate) == pytest.approx(1e-2)
    assert float(tfwarmup.warm_up(optimizer, "linear", period=10).learning_rate) == pytest.approx(1e-3, rel=1e-6)


def test_warm_up_takes_the_beta_2_of_an_optimizer_of_ones_own():
    optimizer = tfwarmup.warm_up(MyOwn(1e-2), beta_2=0.98)
    assert float(optimizer.learning_rate) == pytest.approx(1e-4, rel=1e-6)
    assert float(tfwarmup.warm_up(MyAdam(1e-2, beta_2=0.98)).learning_rate) == pytest.approx(1e-4, rel=1e-6)


@pytest.mark.once
@pytest.mark.parametrize(
    ("warmup", "options", "message"),
    [
        ("untuned_linear", {"beta_2": 0.98}, "must have the `beta_2` of its optimizer, 0.98. Received: UntunedLinear"),
        (warmups.UntunedLinear(0.98), {}, "must have the `beta_2` of its optimizer, 0.999. Received: UntunedLinear"),
        (warmups.Linear(10), {"beta_2": 0.999}, r"Linear\(period=10.0\) takes no `beta_2`. Received: beta_2=0.999"),
        ("untuned_linear", {"period": 10}, "Warmup 'untuned_linear' takes no `period`. Received: period=10"),
        (warmups.Linear(10), {"period": 10}, "Only a warmup given by its name takes arguments"),
        ("untuned_linear", {"beta_2": 1.5}, r"`beta_2` must be a number in \(0, 1\). Received: beta_2=1.5"),
        ("cosine", {}, r"`warmup` must be one of none, linear, .* Received: warmup='cosine'"),
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
@pytest.mark.parametrize(
    "bad", [None, "adam", keras.optimizers.Adam, {}, tfwarmup.LinearWarmup(1e-3, 10), warmups.Linear(10), 1e-3]
)
@pytest.mark.parametrize("function", [tfwarmup.warm_up, tfwarmup.reduce_first, tfwarmup.warmup_factor])
def test_what_is_no_optimizer_is_refused(function, bad):
    with pytest.raises(ValueError, match="`optimizer` must be a Keras optimizer. Received: "):
        function(bad)


@pytest.mark.once
@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: tfwarmup.Adam(warmup="untuned_exponential"),
        lambda: tfwarmup.RAdam(),
    ],
)
def test_warm_up_refuses_an_optimizer_with_a_warmup_of_its_own(optimizer):
    with pytest.raises(ValueError, match="without a warmup: two would multiply. Received: R?Adam"):
        tfwarmup.warm_up(optimizer())


@pytest.mark.once
@pytest.mark.parametrize("steps", [0, of_keras("ScheduleFreeAdamW", 10)])
@pytest.mark.skipif(not hasattr(keras.optimizers, "ScheduleFreeAdamW"), reason="this Keras has none")
def test_an_average_in_which_a_warmup_counts_fully_is_refused(steps):
    optimizer = keras.optimizers.ScheduleFreeAdamW(1e-3, warmup_steps=steps)
    with pytest.raises(ValueError, match="must be used at a constant rate: .* Received: ScheduleFreeAdamW"):
        tfwarmup.warm_up(optimizer)
    model = small_model(optimizer)
    model.fit(*small_data(), verbose=0)
    with pytest.raises(ValueError, match="must be used at a constant rate: .* Received: ScheduleFreeAdamW"):
        tfwarmup.restart_warmup(model, "untuned_linear")
    assert number(optimizer.learning_rate) == pytest.approx(1e-3)


@pytest.mark.once
def test_warm_up_twice_is_refused():
    with pytest.raises(ValueError, match="two would multiply. Received: learning_rate=WarmupSchedule"):
        tfwarmup.warm_up(tfwarmup.warm_up(keras.optimizers.Adam()))


@pytest.mark.once
def test_warm_up_refuses_a_rate_it_cannot_multiply():
    with pytest.raises(ValueError, match="whose learning rate is a number or a `LearningRateSchedule`. Received"):
        tfwarmup.warm_up(keras.optimizers.Adam(lambda: 1e-3))


def test_a_warmed_up_model_trains_and_reports_its_rate():
    model = small_model(tfwarmup.warm_up(keras.optimizers.Adam(0.02, beta_2=0.9)))
    history = model.fit(*small_data(), batch_size=16, epochs=10, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    assert float(model.optimizer.learning_rate) == pytest.approx(0.02)


def test_a_decay_waits_for_the_warmup():
    optimizer = tfwarmup.warm_up(keras.optimizers.Adam(COSINE, beta_2=0.9), decay_after_warmup=True)
    optimizer.iterations.assign(69)
    assert float(optimizer.learning_rate) == pytest.approx(float(COSINE(50)), rel=1e-6)


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
    model.fit(*small_data(), batch_size=16, epochs=3, verbose=0)
    (member,) = model.optimizer.optimizers
    assert float(member.learning_rate) == pytest.approx(1e-2)
    tfwarmup.restart_warmup(model)
    assert float(member.learning_rate) == pytest.approx(1e-2 / 4)


# Warming up again.


def test_warm_up_refuses_an_optimizer_that_has_been_used():
    model = small_model(keras.optimizers.Adam(1e-2))
    model.fit(*small_data(), batch_size=16, epochs=1, verbose=0)
    with pytest.raises(ValueError, match=r"use `restart_warmup\(model\)`. Received: Adam after 4 updates"):
        tfwarmup.warm_up(model.optimizer)


def rates_of(model, epochs=1, callbacks=()):
    """The rate that was really applied at each update, from the weights: the gradient of Keras' Adam is divided out."""
    rates = tfwarmup.probes.RateProbe()
    model.fit(*small_data(), batch_size=16, epochs=epochs, shuffle=False, verbose=0, callbacks=[*callbacks, rates])
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
        model.fit(*small_data(), batch_size=16, epochs=8, shuffle=False, verbose=0)
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
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="needs an optimizer with a warmup, or a `warmup` for it. Received: "):
        tfwarmup.restart_warmup(loaded)
    tfwarmup.restart_warmup(loaded, "untuned_linear")
    assert rates_of(loaded) == pytest.approx(fresh_rate(1e-2), rel=1e-6)
    loaded.save(tmp_path / "again.keras")  # the middle of the second warmup is saved too
    again = keras.models.load_model(tmp_path / "again.keras")
    assert rates_of(again)[0] == pytest.approx(1e-2 * 5 / 20, rel=1e-6)


def test_our_optimizer_is_saved_in_the_middle_of_a_second_warmup(tmp_path):
    model = small_model(tfwarmup.RAdam(1e-2, beta_2=0.9))
    rates_of(model, epochs=6)
    model.optimizer.restart_warmup()
    rates_of(model, epochs=2)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert number(loaded.optimizer.iterations) == 32
    assert float(loaded.optimizer.warmup_factor) == pytest.approx(float(model.optimizer.warmup_factor))
    assert float(loaded.optimizer.warmup_factor) == pytest.approx(warmups.Rectified(0.9)(9), rel=1e-6)


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


def test_a_raised_rate_is_warmed_up_again():
    model = small_model(tfwarmup.Adam(1e-3, beta_2=0.9, warmup="untuned_linear"))
    rates_of(model, epochs=6)
    model.optimizer.learning_rate = 3e-3
    tfwarmup.restart_warmup(model)
    assert rates_of(model) == pytest.approx(fresh_rate(3e-3), rel=1e-6)


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
    for option in ({"period": 10}, {"beta_2": 0.9}):
        with pytest.raises(ValueError, match="These belong to a new warmup, which must be given. Received: "):
            tfwarmup.restart_warmup(small_model(RESTARTED["ours"]()), **option)


@pytest.mark.skipif(BACKEND == "torch", reason="float16 on the CPU is slow in torch")
def test_the_factor_is_seen_through_the_loss_scale_of_compile():
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = small_model(tfwarmup.Adam(1e-3, warmup="untuned_linear"))
        assert type(model.optimizer).__name__ == "LossScaleOptimizer"
        model.fit(*small_data(), batch_size=16, epochs=1, verbose=0)
        updates = updates_made(model.optimizer)
        assert float(tfwarmup.warmup_factor(model.optimizer)) == pytest.approx((updates + 1) / 2000, rel=1e-6)
    finally:
        keras.config.set_dtype_policy("float32")


def test_the_factor_of_an_optimizer_without_a_warmup_is_one():
    assert tfwarmup.warmup_factor(keras.optimizers.SGD()) == 1


# The optimizers of this package have a warmup of their own.


@pytest.mark.parametrize("warmup", ["untuned_linear", "dynamic", warmups.Linear(20, initial=0.5)])
def test_warm_up_gives_our_adam_the_warmup_it_would_get_when_it_is_made(warmup):
    made = tfwarmup.Adam(COSINE, beta_2=0.9, warmup=warmup)
    warmed = tfwarmup.warm_up(tfwarmup.Adam(COSINE, beta_2=0.9), warmup)
    assert {**warmed.get_config(), "name": made.name} == made.get_config()
    gradients = random_gradients(30)
    np.testing.assert_array_equal(trajectory(warmed, gradients), trajectory(made, gradients))


def test_warm_up_lets_the_decay_of_our_adam_wait():
    made = tfwarmup.Adam(COSINE, beta_2=0.9, warmup="untuned_linear", decay_after_warmup=True)
    warmed = tfwarmup.warm_up(tfwarmup.Adam(COSINE, beta_2=0.9), decay_after_warmup=True)
    assert {**warmed.get_config(), "name": made.name} == made.get_config()
    with pytest.raises(ValueError, match="a constant does not decay"):
        tfwarmup.warm_up(tfwarmup.Adam(1e-3), decay_after_warmup=True)


@pytest.mark.parametrize("begin", ["warm_up", "restart_warmup"])
def test_callbacks_still_set_the_rate_of_our_adam_after_its_first_warmup(begin):
    optimizer = tfwarmup.Adam(1e-2, beta_2=0.9)
    model = small_model(tfwarmup.warm_up(optimizer) if begin == "warm_up" else optimizer)
    if begin == "restart_warmup":
        model.fit(*small_data(), batch_size=16, epochs=2, verbose=0)
        tfwarmup.restart_warmup(model, "untuned_linear")
    plateau = keras.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=0, min_delta=10.0)
    probe = tfwarmup.probes.RateProbe()
    model.fit(*small_data(), batch_size=16, epochs=3, shuffle=False, verbose=0, callbacks=[plateau, probe])
    rates = [1e-2] * 8 + [5e-3] * 4
    expected = [rate * t / 20 for rate, t in zip(rates, range(1, 13), strict=True)]
    assert probe.history["learning_rate_applied"] == pytest.approx(expected, rel=1e-6)


def test_a_first_warmup_in_the_middle_of_training_is_saved(tmp_path):
    model = small_model(tfwarmup.Adam(1e-2, beta_2=0.9))
    model.fit(*small_data(), batch_size=16, epochs=2, verbose=0)
    tfwarmup.restart_warmup(model, "linear", period=50)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert rates_of(loaded) == pytest.approx([1e-2 * t / 50 for t in range(1, 5)], rel=1e-6)


OTHER_WARMUPS = {
    "another": ("linear", {"period": 5}),
    "an initial factor": (warmups.Rectified(initial=0.5), {}),
    "a function": (lambda t: 0.5, {}),
}


@pytest.mark.parametrize("name", OTHER_WARMUPS)
def test_radam_refuses_a_warmup_that_it_could_not_save_and_is_as_before(name, tmp_path):
    warmup, options = OTHER_WARMUPS[name]
    model = small_model(tfwarmup.RAdam(1e-2, beta_2=0.9))
    model.fit(*small_data(), batch_size=16, epochs=2, verbose=0)
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
    model.fit(*small_data(), batch_size=16, epochs=2, verbose=0)
    tfwarmup.restart_warmup(model, warmups.Rectified(first_steps="linear_adam"))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    expected = [1e-2 * warmups.Rectified(0.9, "linear_adam")(t) for t in range(1, 5)]
    for each in (model, loaded):
        assert rates_of(each) == pytest.approx(expected, rel=1e-6)


@pytest.mark.once
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
    model = small_model(tfwarmup.Adam(1e-2, beta_2=0.9, warmup="untuned_linear"))
    model.fit(*small_data(), batch_size=16, epochs=2, verbose=0)
    before = model.optimizer.get_config(), float(model.optimizer.warmup_factor)
    with pytest.raises(ValueError, match=message):
        model.optimizer.restart_warmup(warmup, **options)
    assert (model.optimizer.get_config(), float(model.optimizer.warmup_factor)) == before


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
    model.fit(*small_data(), batch_size=16, epochs=2, verbose=0)
    compiles = BACKEND != "torch"
    rule = "A train step that is compiled already goes on with the old warmup: .* Received: "
    with pytest.warns(UserWarning, match=rule) if compiles else contextlib.nullcontext():
        model.optimizer.restart_warmup(warmup, **options)
    model.optimizer.restart_warmup(warmup, **options)  # it is no other warmup any more
    assert model.optimizer.warmup == expected
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert rates_of(loaded) == pytest.approx([1e-2 * expected(t) for t in range(1, 5)], rel=1e-6)
