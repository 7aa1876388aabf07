"""The critical rate: what a parabola says it is, found without a change to the model."""

import keras
import numpy as np
import pytest

import tfwarmup
from tests.tfwarmup.helpers import BACKEND, all_state, noisy_model, numpy, small_data, small_model, weights
from tfwarmup import compat

X, Y = small_data(32)


def parabola(optimizer):
    """A linear model, whose squared error is a parabola along any line."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, use_bias=False)])
    model.compile(optimizer, loss="mse")
    return model


def vertex(model, m, v, t, epsilon, clipnorm=None):
    """Twice the distance to the vertex of the parabola along Adam's next update, from the moments before it."""
    g = 2 * X.T @ (X @ model.get_weights()[0] - Y) / len(X)
    clipped = g if clipnorm is None else g * min(1, clipnorm / np.linalg.norm(g))
    m, v = 0.9 * m + 0.1 * clipped, 0.9 * v + 0.1 * clipped**2
    u = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.9**t)) + epsilon)
    return float(2 * np.sum(g * u) / (2 * np.mean((X @ u) ** 2)))


COMMON = {"learning_rate": 0.02, "beta_2": 0.9, "epsilon": 0.1}
OPTIMIZERS = {
    "ours": lambda **options: tfwarmup.Adam(**COMMON, **options),
    "warmup": lambda **options: tfwarmup.Adam(**COMMON, warmup="untuned_linear", **options),
    "radam": lambda **options: tfwarmup.RAdam(**COMMON, **options),
    "keras": lambda **options: keras.optimizers.Adam(**COMMON, **options),
    "loss scale": lambda **options: keras.optimizers.LossScaleOptimizer(
        tfwarmup.Adam(**COMMON, **options), initial_scale=1024.0
    ),
}


@pytest.mark.parametrize(
    ("updates", "options"), [(0, {"global_clipnorm": 0.05}), (1, {}), (3, {"global_clipnorm": 0.05})]
)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_it_is_the_far_end_of_a_parabola(name, updates, options):
    model = parabola(OPTIMIZERS[name](**options))
    for row in range(updates):
        model.train_on_batch(X[8 * row : 8 * row + 8], Y[8 * row : 8 * row + 8])
    optimizer, m, v, t = compat.unwrapped(model.optimizer), 0.0, 0.0, updates + 1
    if updates:
        m, v = (numpy(each(optimizer)[0]) for each in (compat.first_moments, compat.second_moments))
    epsilon = 0.1 / np.sqrt(1 - 0.9**t) if name == "keras" else 0.1  # Keras adds it before the bias correction
    expected = vertex(model, m, v, t, epsilon, options.get("global_clipnorm"))
    optimizer.learning_rate = 0.8 * expected  # where the search starts
    # Six of the nine passes bisect a bracket of a factor of 2: half of 2^(1 / 64) is left.
    assert tfwarmup.critical_rate(model, X, Y) == pytest.approx(expected, rel=0.006)


def state(model):
    noise = [np.random.get_state()[1].copy()]
    if BACKEND == "torch":
        import torch

        noise.append(torch.get_rng_state().numpy().copy())
    return [*all_state(model), *noise]


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("make", [lambda: tfwarmup.Adam(1e-2, warmup="dynamic"), lambda: keras.optimizers.AdamW(1e-2)])
def test_nothing_changes_to_the_bit(make, trained):
    model = noisy_model(make())
    if trained:
        model.fit(X, Y, batch_size=8, verbose=0)
    before = state(model)
    first = tfwarmup.critical_rate(model, X, Y)
    for old, new in zip(before, state(model), strict=True):
        np.testing.assert_array_equal(new, old)
    assert first == tfwarmup.critical_rate(model, X, Y)  # the same dropout at every call
    assert 0 < first < np.inf


@pytest.mark.parametrize("seed", range(8))
def test_the_losses_have_the_dropout_of_the_gradient(seed):
    """Of one example with a random sign under each mask, another mask's gradient raises the loss half of the times."""
    keras.utils.set_random_seed(seed)
    layers = [keras.layers.Dropout(0.5), keras.layers.Dropout(0.5), keras.layers.Dense(1, use_bias=False)]
    model = keras.Sequential([keras.Input((64,)), *layers])
    model.compile(keras.optimizers.Adam(), loss="mse")
    assert tfwarmup.critical_rate(model, np.random.normal(size=(1, 64)), np.zeros((1, 1)), seed=seed) > 0


def test_a_gradient_that_overflows_has_no_update_and_no_critical_rate():
    model = parabola(keras.optimizers.LossScaleOptimizer(tfwarmup.Adam(), initial_scale=3e38))
    assert np.isnan(tfwarmup.critical_rate(model, 100 * X, Y))


def test_a_run_with_the_callback_is_the_run_without_it_to_the_bit():
    ends = []
    for callbacks in ([], [tfwarmup.CriticalRate(X, Y, every=2)]):
        model = noisy_model(tfwarmup.Adam(1e-2, warmup="linear", period=8))
        model.fit(X, Y, batch_size=8, epochs=2, verbose=0, callbacks=callbacks)
        ends.append(weights(model))
    np.testing.assert_array_equal(ends[1], ends[0])
    history = callbacks[0].history
    assert history["t"] == [1, 2, 4, 6, 8]
    assert history["learning_rate_applied"] == pytest.approx([1e-2 * t / 8 for t in history["t"]], rel=1e-6)
    assert min(history["critical_rate"]) > 0


def test_one_gradient_that_is_not_compiled_and_nine_forward_passes_are_made(monkeypatch):
    calls, compiled = [], []

    def counted(y, y_pred):
        calls.append(1)
        return keras.ops.mean(keras.ops.square(y - y_pred), axis=-1)

    model = small_model(keras.optimizers.Adam(), loss=counted)
    if BACKEND == "tensorflow":
        import tensorflow as tf

        monkeypatch.setattr(tf, "function", lambda *function, **_: compiled.append(function))
    elif BACKEND == "jax":
        import jax

        monkeypatch.setattr(jax, "jit", lambda *function, **_: compiled.append(function))
    assert tfwarmup.critical_rate(model, X, Y) > 0
    assert (len(calls), compiled) == (10, [])


@pytest.mark.parametrize("sign", [1, -1])
def test_a_loss_without_an_end_has_no_critical_rate(sign):
    model = parabola(keras.optimizers.Adam(1e-2))
    model.compile(keras.optimizers.Adam(1e-2), loss=lambda y, y_pred: keras.ops.mean(y_pred, axis=-1))
    x = np.ones((4, 3), "float32")
    if sign < 0:
        x = np.full((4, 3), np.nan, "float32")  # no rate lowers this loss
        assert tfwarmup.critical_rate(model, x, x[:, :1]) < 1e-6
    else:
        assert tfwarmup.critical_rate(model, x, x[:, :1]) == np.inf


@pytest.mark.parametrize(
    "make",
    [
        lambda: keras.optimizers.SGD(),
        lambda: keras.optimizers.Nadam(),
        lambda: keras.optimizers.Adam(amsgrad=True),
        lambda: tfwarmup.Adam(clip_update_rms=True),
    ],
)
def test_an_optimizer_whose_next_update_is_not_known_is_refused_before_the_first_step(make):
    with pytest.raises(ValueError, match=" Received: "):
        tfwarmup.critical_rate(small_model(make()), X, Y)
    with pytest.raises(ValueError, match=" Received: "):
        small_model(make()).fit(X, Y, verbose=0, callbacks=[tfwarmup.CriticalRate(X, Y)])


@pytest.mark.once
def test_a_model_without_weights_or_an_optimizer_is_refused():
    model = keras.Sequential([keras.layers.Dense(1)])
    with pytest.raises(ValueError, match="need an optimizer whose update is .* Received: optimizer=NoneType"):
        tfwarmup.critical_rate(model, X, Y)
    model.compile("adam", loss="mse")
    with pytest.raises(ValueError, match="needs a model whose weights exist. Received: <Sequential"):
        tfwarmup.critical_rate(model, X, Y)
