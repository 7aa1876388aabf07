import math

import keras
import numpy as np
import pytest
import torch
from keras import ops

import tfwarmup
from tests.tfwarmup import reference
from tests.tfwarmup.helpers import (
    BACKEND,
    FUNCTIONS_OF_T,
    KERAS,
    drift,
    fit,
    number,
    numpy,
    random_gradients,
    reloaded,
    small_model,
    trajectory,
    weights,
)
from tfwarmup import FIRST_STEPS, compat, warmups
from tfwarmup.optimizers.arguments import READ_ONLY

GRADIENTS = random_gradients()
SHORT = GRADIENTS[:60]


def sparse_gradients():
    """Nine of ten rows are zero at every update."""
    mask = np.random.default_rng(1).random(GRADIENTS.shape) < 0.1
    return GRADIENTS * mask


PAPERS = {"adam": (tfwarmup.Adam, reference.adam), "radam": (tfwarmup.RAdam, reference.radam)}


@pytest.mark.parametrize("beta_2", [0.9, 0.99, 0.999, 0.9999, 0.99999])
@pytest.mark.parametrize("gradients", [GRADIENTS, sparse_gradients()], ids=["random", "sparse"])
@pytest.mark.parametrize("name", PAPERS)
def test_updates_are_the_papers(name, beta_2, gradients):
    make, formula = PAPERS[name]
    options = {"beta_2": beta_2, "beta_1": 0.0 if beta_2 == 0.9 else 0.9}
    assert drift(trajectory(make(1e-3, **options), gradients), formula(gradients, 0.0, **options)) < 40


def test_keras_adam_is_not_the_papers():
    gradients = GRADIENTS * 1e-3
    expected = list(reference.adam(gradients, 0.0, epsilon=1e-6))
    assert drift(trajectory(tfwarmup.Adam(1e-3, epsilon=1e-6), gradients), expected) < 40
    assert drift(trajectory(keras.optimizers.Adam(1e-3, epsilon=1e-6), gradients), expected) > 10000


@pytest.mark.parametrize("rule", FIRST_STEPS)
def test_first_steps_are_the_four_of_the_ablation(rule):
    values = {r: trajectory(tfwarmup.RAdam(1e-3, first_steps=r), SHORT) for r in FIRST_STEPS}
    expected = np.stack(list(reference.radam(SHORT, np.zeros(40), first_steps=rule)))
    errors = {r: drift(values[r], expected) for r in FIRST_STEPS}
    assert errors.pop(rule) < 16
    assert min(errors.values()) > 1000


def torch_trajectory(gradients, **kwargs):
    parameter = torch.nn.Parameter(torch.zeros(gradients.shape[1], dtype=torch.float64))
    optimizer = torch.optim.RAdam([parameter], **kwargs)
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
        yield parameter.detach().numpy().copy()


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_radam_at_threshold_five_is_torch_radam(weight_decay):
    # Torch adds its epsilon before the bias correction; 1e-8 is nothing beside these gradients.
    gradients = GRADIENTS * 1e3
    expected = np.stack(
        list(torch_trajectory(gradients, lr=1e-3, eps=1e-8, weight_decay=weight_decay, decoupled_weight_decay=True))
    )
    options = {"epsilon": 1e-8, "weight_decay": weight_decay}
    assert drift(trajectory(tfwarmup.RAdam(1e-3, rho_threshold=5.0, **options), gradients), expected) < 40
    assert drift(trajectory(tfwarmup.RAdam(1e-3, rho_threshold=4.0, **options), gradients), expected) > 10000


@pytest.mark.parametrize("name", FUNCTIONS_OF_T)
def test_adam_with_a_warmup_is_the_papers(name):
    period = 77.7 if warmups.takes_period(name) else None
    omega = warmups.get(name, period=period).with_beta_2(0.99)
    optimizer = tfwarmup.Adam(1e-3, beta_2=0.99, warmup=name, period=period, weight_decay=0.1)
    expected = reference.adam(SHORT, 0.5, beta_2=0.99, omega=omega, weight_decay=0.1)
    theta = np.full(SHORT.shape[1], 0.5)
    assert drift(trajectory(optimizer, SHORT, theta), expected) < 16


@pytest.mark.skipif(BACKEND != "jax", reason="JAX' own sparse gradients; TensorFlow's are in test_tensorflow")
def test_sparse_gradients_of_jax_equal_their_dense_form():
    import jax.experimental.sparse as sparse

    tables = [keras.Variable(np.zeros((5, 3), "float32")) for _ in range(2)]
    optimizers = [tfwarmup.RAdam(1e-3, global_clipnorm=0.1) for _ in range(2)]
    for gradient in SHORT[:, :15].reshape(60, 5, 3) * (np.arange(60)[:, None, None] % 5 == np.arange(5)[:, None]):
        optimizers[0].apply([sparse.BCOO.fromdense(gradient, n_dense=1)], [tables[0]])
        optimizers[1].apply([ops.convert_to_tensor(gradient)], [tables[1]])
    np.testing.assert_array_equal(numpy(tables[0]), numpy(tables[1]))


@pytest.mark.parametrize("clip", [{"clipnorm": 0.5}, {"clipvalue": 0.1}, {"global_clipnorm": 0.5}])
def test_gradients_are_clipped(clip):
    gradients = SHORT[:, 20:]
    norm = np.linalg.norm(gradients, axis=1, keepdims=True)
    clipped = np.clip(gradients, -0.1, 0.1) if "clipvalue" in clip else gradients * np.minimum(1, 0.5 / norm)
    values = trajectory(tfwarmup.RAdam(1e-3, **clip), gradients)
    assert drift(values, reference.radam(clipped, 0.0)) < 16


@pytest.mark.parametrize("make", [tfwarmup.RAdam, lambda *a, **k: tfwarmup.Adam(*a, warmup="untuned_linear", **k)])
def test_accumulation_is_one_update_with_the_mean_gradient(make):
    accumulated = trajectory(make(1e-3, beta_2=0.9, gradient_accumulation_steps=4), GRADIENTS[:240])[3::4]
    expected = trajectory(make(1e-3, beta_2=0.9), GRADIENTS[:240].reshape(60, 4, -1).mean(axis=1))
    assert drift(accumulated, expected) < 16
    # What Keras hands to a schedule, the micro step, would end the warmup four times early.
    wrong = tfwarmup.Adam(tfwarmup.UntunedLinearWarmup(1e-3, 0.9), beta_2=0.9, gradient_accumulation_steps=4)
    assert drift(trajectory(wrong, GRADIENTS[:240])[3::4], expected) > 10000


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_a_skipped_step_does_not_advance_the_warmup(bad):
    inner = tfwarmup.Adam(1e-3, warmup="untuned_linear")
    optimizer = keras.optimizers.LossScaleOptimizer(inner, initial_scale=1.0)
    expected = trajectory(tfwarmup.Adam(1e-3, warmup="untuned_linear"), SHORT[:3])
    scale = np.float32([[1], [1 / 4], [1 / 8]])  # halved at every skipped step
    values = trajectory(optimizer, np.insert(SHORT[:3] * scale, [1, 1, 2], bad, axis=0))
    np.testing.assert_array_equal(values[1], values[2])
    np.testing.assert_allclose(values[[0, 3, 5]], expected, rtol=1e-6)
    assert number(inner.iterations) == 3
    assert float(inner.warmup_factor) == pytest.approx(4 / 2000, rel=1e-6)


@pytest.mark.parametrize(("dtype", "ulp"), [("float16", 2**-11), ("bfloat16", 2**-8)])
def test_half_precision_variables_keep_their_scalars_and_moments_in_float32(dtype, ulp):
    optimizer = tfwarmup.Adam(1e-2)
    values = trajectory(optimizer, np.ones((5, 3), "float32") * 1e-3, dtype=dtype)
    moments = [v for v in optimizer.variables if v.path.endswith(("momentum", "velocity"))]
    assert [v.dtype for v in moments] == ["float32"] * 2
    # A constant gradient moves by alpha at every update, whatever beta_2 is: in bfloat16, 0.999 would be 1.
    np.testing.assert_allclose(values[:, 0], -1e-2 * np.arange(1, 6), rtol=5 * ulp, atol=1e-5)


def test_a_schedule_of_weight_decay_is_followed_and_saved():
    falling = keras.optimizers.schedules.PiecewiseConstantDecay([29], [0.1, 0.02])
    theta = np.full(SHORT.shape[1], 0.5)
    values = trajectory(tfwarmup.RAdam(1e-1, weight_decay=falling), SHORT, theta)
    first = np.stack(list(reference.radam(SHORT, theta, alpha=1e-1, weight_decay=0.1)))
    assert drift(values[:30], first[:30]) < 16
    assert np.abs(values[59] - first[59]).max() > 1e-3
    config = tfwarmup.RAdam(weight_decay=falling).get_config()
    assert tfwarmup.RAdam.from_config(config).get_config() == config


def test_momentum_steps_are_part_of_a_warmup():
    inside = tfwarmup.Adam(1e-3, warmup=warmups.Rectified(first_steps="momentum"))
    np.testing.assert_array_equal(trajectory(inside, SHORT), trajectory(tfwarmup.RAdam(1e-3), SHORT))


COSINE = keras.optimizers.schedules.CosineDecay(1e-3, 9)
REPRS = {
    "Adam(learning_rate=0.003, weight_decay=0.1, beta_2=0.9, warmup=UntunedLinear(beta_2=0.9, initial=0.1))": (
        lambda: tfwarmup.Adam(3e-3, beta_2=0.9, warmup="untuned_linear", initial=0.1, weight_decay=0.1)
    ),
    "RAdam(learning_rate=0.001, use_ema=True, rho_threshold=5.0)": (
        lambda: tfwarmup.RAdam(use_ema=True, rho_threshold=5.0)
    ),
    "Adam(learning_rate=CosineDecay(initial_learning_rate=0.001, decay_steps=9), gradient_accumulation_steps=2)": (
        lambda: tfwarmup.Adam(COSINE, gradient_accumulation_steps=2)
    ),
}


@pytest.mark.parametrize("text", REPRS)
def test_a_repr_is_the_call_that_makes_the_optimizer(text):
    optimizer = REPRS[text]()
    names = {**vars(tfwarmup), **vars(warmups), **vars(keras.optimizers.schedules)}
    assert repr(optimizer) == text
    assert {**eval(text, names).get_config(), "name": optimizer.name} == optimizer.get_config()


@pytest.mark.parametrize("name", ["radam", "RAdam"])
def test_keras_knows_radam_by_its_name(name):
    assert type(keras.optimizers.get(name)) is tfwarmup.RAdam
    assert type(small_model(name).optimizer) is tfwarmup.RAdam
    assert isinstance(keras.optimizers.get("adam"), keras.optimizers.Adam)


SAVED = {
    "radam": lambda: tfwarmup.RAdam(1e-2, rho_threshold=5.0, weight_decay=0.01, global_clipnorm=1.0),
    "rivals": lambda: tfwarmup.Adam(1e-2, beta_2=0.9, gradient_init=True, clip_update_rms=True),
}


@pytest.mark.parametrize("name", SAVED)
def test_an_optimizer_saved_in_its_first_steps_goes_on_bit_for_bit(name, tmp_path):
    whole = small_model(SAVED[name]())
    fit(whole)  # four updates
    saved = reloaded(whole, tmp_path)
    assert saved.optimizer.get_config() == whole.optimizer.get_config()
    assert repr(saved.optimizer) == repr(whole.optimizer)
    for model in (whole, saved):
        fit(model, epochs=3)
    for ours, theirs in zip(saved.optimizer.variables, whole.optimizer.variables, strict=True):
        np.testing.assert_array_equal(numpy(ours), numpy(theirs))
    np.testing.assert_array_equal(weights(saved), weights(whole))


@pytest.mark.parametrize(
    ("set_to", "message"),
    [
        (tfwarmup.LinearWarmup(1e-2, 10), "two would multiply. Received: learning_rate=LinearWarmup"),
        (lambda: 1e-3, "`learning_rate` must be a finite number >= 0 or a `LearningRateSchedule`"),
        (tfwarmup.UntunedLinearWarmup(1e-2, 0.999), "must have the `beta_2` of its optimizer, 0.9. Received: Untuned"),
    ],
)
def test_a_rate_that_is_set_is_checked_like_one_that_is_given(set_to, message):
    warmup = None if "`beta_2`" in message else "untuned_linear"
    optimizer = tfwarmup.Adam(1e-2, beta_2=0.9, warmup=warmup)
    with pytest.raises(ValueError, match=message):
        optimizer.learning_rate = set_to
    assert number(optimizer.learning_rate) == pytest.approx(1e-2)
    if warmup is None:
        optimizer.learning_rate = tfwarmup.UntunedLinearWarmup(1e-2, 0.9)
        assert float(optimizer.learning_rate) == pytest.approx(1e-2 / 20)


@pytest.mark.parametrize("name", READ_ONLY)
@pytest.mark.parametrize("make", [tfwarmup.Adam, tfwarmup.RAdam])
def test_what_a_compiled_step_holds_cannot_be_changed_later(make, name):
    optimizer = make(1e-2)
    before = optimizer.get_config()
    with pytest.raises(AttributeError, match=f"`{name}` of an optimizer is read-only: .* Received: {name}=0.5"):
        setattr(optimizer, name, 0.5)
    assert optimizer.get_config() == before
    with pytest.raises(TypeError, match="positional arguments but 3 were given"):
        make(1e-3, 0.004)  # the weight decay of an AdamW, which would become beta_1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"learning_rate": -1e-3}, "`learning_rate` must be a finite number >= 0 .* Received: learning_rate=-0.001"),
        ({"learning_rate": lambda: 1e-3}, "`learning_rate` must be a finite number >= 0 or a `LearningRateSchedule`"),
        ({"beta_1": 1.0}, r"`beta_1` must be a number in \[0, 1\). Received: beta_1=1.0"),
        ({"beta_2": math.nan}, r"`beta_2` must be a number in \(0, 1\). Received: beta_2=nan"),
        ({"epsilon": None}, "`epsilon` must be a finite number >= 0. Received: epsilon=None"),
        ({"weight_decay": "0.1"}, "`weight_decay` must be a finite number >= 0. Received: weight_decay='0.1'"),
        ({"clipnorm": math.nan}, "`clipnorm` must be a finite number > 0. Received: clipnorm=nan"),
        ({"global_clipnorm": -1.0}, "`global_clipnorm` must be a finite number > 0. Received: global_clipnorm=-1.0"),
        ({"clipvalue": 0}, "`clipvalue` must be a finite number > 0. Received: clipvalue=0"),
        ({"gradient_accumulation_steps": 1.5}, "`gradient_accumulation_steps` must be an integer >= 2. Received"),
        ({"momentum": 0.9}, "not recognized: {'momentum': 0.9}"),
        ({"lr": 1e-3}, "`lr` is not an argument: use `learning_rate`. Received: lr=0.001"),
        ({"betas": (0.9, 0.98)}, "use `beta_1` and `beta_2`. Received: betas="),
        ({"eps": 1e-8}, "use `epsilon`. Received: eps=1e-08"),
        ({"warmup_steps": 100}, "use `warmup='linear'` and `period`. Received: warmup_steps=100"),
        ({"warmup_ratio": 0.1}, "use `warmup='linear'`, `share` and `updates`. Received: warmup_ratio=0.1"),
        ({"total_steps": 100}, "use `tfwarmup.schedule`, with `updates`. Received: total_steps=100"),
        ({"sma_threshold": 5}, "use `rho_threshold` of `tfwarmup.RAdam`. Received: sma_threshold=5"),
        ({"amsgrad": True}, "`amsgrad` is not an argument: there is no AMSGrad; .* Received: amsgrad=True"),
    ],
)
@pytest.mark.parametrize("make", [tfwarmup.Adam, tfwarmup.RAdam])
def test_bad_hyperparameters_are_refused(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tfwarmup.RAdam(beta_2=0.6), "never leaves its momentum phase"),
        (lambda: tfwarmup.RAdam(warmup="linear"), "`RAdam` has its own warmup and takes no `warmup`.* Received"),
        (lambda: tfwarmup.RAdam(initial=0.1), "`RAdam` has its own warmup and takes no `initial`.* Received"),
        (lambda: tfwarmup.RAdam(share=0.1, updates=9), "`RAdam` has its own warmup and takes no `share`.* Received"),
        (lambda: tfwarmup.Adam(warmup="linear", warmup_steps=9), "and `period`. Received: warmup_steps=9"),
        (lambda: tfwarmup.Adam(period=100), "Warmup 'none' takes no `period`. Received: period=100"),
        (lambda: tfwarmup.Adam(warmup=warmups.UntunedLinear(0.9)), "`beta_2` of its optimizer, 0.999. Received"),
        (lambda: tfwarmup.Adam(warmup=100), "is `warmup='linear', period=100`. Received: warmup=100"),
        (lambda: tfwarmup.Adam(warmup="Linear"), "did you mean 'linear'. Received: warmup='Linear'"),
    ],
)
def test_bad_warmups_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# Coming from Keras' Adam.


def excluding(**options):
    optimizer = keras.optimizers.AdamW(1e-2, weight_decay=0.5, **options)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    return optimizer


KERAS_ADAMS = {
    "Adam": lambda: keras.optimizers.Adam(1e-2, beta_2=0.9, epsilon=0.0),
    "AdamW": lambda: keras.optimizers.AdamW(1e-2, weight_decay=0.1, epsilon=0.0),
    "a schedule": lambda: keras.optimizers.Adam(tfwarmup.LinearWarmup(1e-2, 25), beta_1=0.8, epsilon=0.0),
    "averages, exclusions": lambda: excluding(epsilon=0.0, use_ema=True, ema_momentum=0.9),
}
if KERAS >= (3, 5):  # before, the bias correction of Keras' Adam counts micro-batches
    KERAS_ADAMS["half accumulated"] = lambda: excluding(epsilon=0.0, gradient_accumulation_steps=2)


@pytest.mark.parametrize("updates", [0, 1, 21])
@pytest.mark.parametrize("name", KERAS_ADAMS)
def test_our_adam_goes_on_where_keras_adam_is(name, updates):
    variables = [keras.Variable(np.full(SHORT.shape[1], 0.5, "float32"), name=name) for name in ("kernel", "bias")]

    def go_on(optimizer, gradients):
        for gradient in gradients:
            optimizer.apply([ops.convert_to_tensor(gradient) for _ in variables], variables)
        averages = [v for v in optimizer.variables if v.path.endswith("average")]
        return np.stack([numpy(variable).copy() for variable in (*variables, *averages)])

    old = KERAS_ADAMS[name]()
    start = go_on(old, SHORT[:updates])
    ours = tfwarmup.Adam.from_keras(old)
    if updates:
        assert number(compat.step_counter(ours)) == updates
        for moments in (compat.first_moments, compat.second_moments):
            for mine, theirs in zip(moments(ours), moments(old), strict=True):
                np.testing.assert_array_equal(numpy(mine), numpy(theirs))  # to the bit
    assert number(ours.learning_rate) == number(old.learning_rate)
    theirs = go_on(old, SHORT[updates : updates + 20])
    for variable, value in zip(variables, start[:2], strict=True):
        variable.assign(value)
    mine = go_on(ours, SHORT[updates : updates + 20])
    assert np.abs(start[:2] - theirs[:2]).min() > 1e-4
    # Keras computes its powers of beta in float32: 1 - 0.999 is off by 1e-5 there, and by nothing here.
    np.testing.assert_allclose(mine[:2] - start[:2], theirs[:2] - start[:2], rtol=5e-5, atol=3e-7)
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-5)


def test_all_options_are_taken_over_and_can_be_replaced():
    options = {"beta_1": 0.8, "beta_2": 0.9, "epsilon": 1e-6, "global_clipnorm": 1.0, "use_ema": True}
    old = keras.optimizers.AdamW(3e-3, weight_decay=0.1, ema_momentum=0.5, **options)
    ours = tfwarmup.Adam.from_keras(keras.optimizers.LossScaleOptimizer(old))
    expected = tfwarmup.Adam(3e-3, weight_decay=0.1, ema_momentum=0.5, **options)
    assert {**ours.get_config(), "name": expected.name} == expected.get_config()
    assert tfwarmup.Adam.from_keras(old, beta_1=0.7, name="mine").get_config()["name"] == "mine"
    assert type(tfwarmup.RAdam.from_keras(old, rho_threshold=5.0)) is tfwarmup.RAdam


@pytest.mark.skipif(KERAS < (3, 5), reason="the bias correction of Keras' Adam counts micro-batches")
@pytest.mark.parametrize(("before", "after"), [(None, 2), (2, None), (2, 4)])
def test_averages_and_another_accumulation_can_begin_when_an_optimizer_is_taken_over(before, after):
    def run(before, after):
        variable = keras.Variable(np.full(SHORT.shape[1], 0.5, "float32"))

        def go_on(optimizer, gradients, times):
            for gradient in np.repeat(gradients, times or 1, axis=0):
                optimizer.apply([ops.convert_to_tensor(gradient)], [variable])

        old = keras.optimizers.Adam(1e-2, gradient_accumulation_steps=before)
        go_on(old, SHORT[:6], before)
        if before and after:
            go_on(old, SHORT[6:7], 1)  # half of an update
        ours = tfwarmup.Adam.from_keras(old, gradient_accumulation_steps=after, use_ema=True, ema_momentum=0.5)
        assert compat.updates_made(ours) == 6
        go_on(ours, SHORT[10:16], after)
        (average,) = (v for v in ours.variables if v.path.endswith("average"))
        return numpy(variable), numpy(average)

    (value, average), expected = run(before, after), run(None, None)
    np.testing.assert_allclose(value, expected[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(average, value, rtol=0, atol=0.05)  # and not 1 / 64 of the way from 0


def test_a_loaded_model_goes_on_with_a_warmup_that_begins_then(tmp_path):
    model = small_model(keras.optimizers.Adam(1e-2, beta_2=0.9))
    fit(model, epochs=3)
    loaded = reloaded(model, tmp_path)
    old, moments = loaded.optimizer, numpy(compat.first_moments(loaded.optimizer)[0]).copy()
    loaded.compile(tfwarmup.Adam.from_keras(old, warmup="untuned_linear", use_ema=True), loss="mse")
    probe = tfwarmup.probes.RateProbe()
    fit(loaded, callbacks=[probe])
    assert probe.history["t"] == [13, 14, 15, 16]
    assert probe.history["learning_rate_applied"] == pytest.approx([1e-2 * t / 20 for t in (1, 2, 3, 4)], rel=1e-6)
    np.testing.assert_array_equal(numpy(compat.first_moments(old)[0]), moments)


@pytest.mark.once
@pytest.mark.parametrize("make", [keras.optimizers.Nadam, lambda: keras.optimizers.Adam(amsgrad=True), lambda: "adam"])
def test_an_optimizer_that_is_not_keras_adam_is_refused(make):
    with pytest.raises(ValueError, match="`from_keras` needs Keras' Adam or AdamW, without AMSGrad. Received: "):
        tfwarmup.Adam.from_keras(make())
    with pytest.raises(ValueError, match="`learning_rate` must be a finite number >= 0 or a `LearningRateSchedule`"):
        tfwarmup.Adam.from_keras(keras.optimizers.Adam(lambda: 1e-3))
