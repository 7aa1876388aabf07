"""Other ways to hold back the first updates, against plain numpy: GI-Adam and StableAdamW."""

import keras
import numpy as np
import pytest

import tfwarmup
from tests.tfwarmup import reference
from tests.tfwarmup.helpers import BACKEND, drift, numpy, random_gradients, small_data, small_model, trajectory, weights
from tfwarmup import warmups

GRADIENTS = random_gradients(300)


def with_spikes():
    """Every fiftieth gradient is thirty times as large."""
    gradients = GRADIENTS.copy()
    gradients[49::50] *= 30
    return gradients


RIVALS = {"gi_adam": {"gradient_init": True}, "stable_adam": {"clip_update_rms": True}}
every_rival = pytest.mark.parametrize("options", RIVALS.values(), ids=RIVALS)
BOTH = {"gradient_init": True, "clip_update_rms": True}


@pytest.mark.parametrize("beta_2", [0.9, 0.99, 0.9999])
@pytest.mark.parametrize("options", [*RIVALS.values(), BOTH], ids=[*RIVALS, "both"])
def test_updates_are_those_of_the_formula(options, beta_2):
    gradients = with_spikes()
    # v_0 does not shrink with 1 - beta_2 as v_1 - v_0 does: the rounding of beta_2 to float32 shows.
    rounded = float(np.float32(beta_2))
    expected = list(reference.adam(gradients, np.zeros(40), beta_2=rounded, weight_decay=0.1, **options))
    values = trajectory(tfwarmup.Adam(1e-3, beta_2=beta_2, weight_decay=0.1, **options), gradients)
    plain = trajectory(tfwarmup.Adam(1e-3, beta_2=beta_2, weight_decay=0.1), gradients)
    assert drift(values, expected) < 40
    assert drift(plain, expected) > 10000


@every_rival
def test_a_warmup_may_come_on_top(options):
    omega = warmups.UntunedLinear(0.9)
    expected = list(reference.adam(GRADIENTS, np.zeros(40), beta_2=0.9, omega=omega, **options))
    values = trajectory(tfwarmup.Adam(1e-3, beta_2=0.9, warmup="untuned_linear", **options), GRADIENTS)
    assert drift(values, expected) < 40


def test_the_first_update_of_gi_adam_is_that_of_the_root_warmup():
    first = trajectory(tfwarmup.Adam(1e-3, gradient_init=True, epsilon=0.0), GRADIENTS[:1])
    np.testing.assert_allclose(np.abs(first), 1e-3 * np.sqrt(0.001), rtol=1e-5)
    root = trajectory(tfwarmup.Adam(1e-3, warmup="root", epsilon=0.0), GRADIENTS[:1])
    np.testing.assert_allclose(first, root, rtol=1e-5)


def test_each_variable_is_clipped_by_itself():
    optimizer = tfwarmup.Adam(1e-3, clip_update_rms=True)
    calm, wild = keras.Variable(np.zeros(3)), keras.Variable(np.zeros(3))
    for size in (1.0, 1.0, 100.0):
        optimizer.apply([keras.ops.ones(3), size * keras.ops.ones(3)], [calm, wild])
    alone = trajectory(tfwarmup.Adam(1e-3), np.ones((3, 3), "float32"))
    np.testing.assert_allclose(numpy(calm), alone[-1], rtol=1e-6)
    spike = np.float32([[1.0], [1.0], [100.0]])
    *_, expected = reference.adam(spike, np.zeros(1), clip_update_rms=True)
    np.testing.assert_allclose(numpy(wild), np.repeat(expected, 3), rtol=2e-6)


@every_rival
def test_a_gradient_of_zeros_moves_nothing(options):
    assert not trajectory(tfwarmup.Adam(1e-3, epsilon=1e-30, **options), np.zeros((3, 5), "float32")).any()


@every_rival
@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_variables_of_other_precisions_follow(options, dtype):
    if BACKEND == "jax" and dtype == "float64":
        pytest.skip("JAX has no float64 unless it is told to")
    values = trajectory(tfwarmup.Adam(1e-3, beta_2=0.9, **options), GRADIENTS[:50], dtype=dtype)
    expected = np.stack(list(reference.adam(GRADIENTS[:50], np.zeros(40), beta_2=0.9, **options)))
    scale = np.abs(expected).max(axis=0)
    assert np.max(np.abs(values - expected) / scale) < (1e-6 if dtype == "float64" else 0.1)


@every_rival
def test_a_saved_model_goes_on_bit_for_bit(options, tmp_path):
    whole = small_model(tfwarmup.Adam(1e-2, beta_2=0.9, **options))
    fit = {"batch_size": 16, "epochs": 2, "shuffle": False, "verbose": 0}
    whole.fit(*small_data(), **fit)
    whole.save(tmp_path / "model.keras")
    saved = keras.models.load_model(tmp_path / "model.keras")
    assert saved.optimizer.get_config() == whole.optimizer.get_config()
    for model in (whole, saved):
        model.fit(*small_data(), **fit)
    np.testing.assert_array_equal(weights(saved), weights(whole))


@every_rival
def test_accumulated_gradients_are_those_of_the_big_batch(options):
    big = small_model(tfwarmup.Adam(1e-2, beta_2=0.9, **options))
    accumulated = small_model(tfwarmup.Adam(1e-2, beta_2=0.9, gradient_accumulation_steps=4, **options))
    for model, size in ((big, 64), (accumulated, 16)):
        model.fit(*small_data(), batch_size=size, epochs=3, shuffle=False, verbose=0)
    np.testing.assert_allclose(weights(accumulated), weights(big), atol=3e-6)


def test_a_skipped_first_step_is_not_the_first_update_of_gi_adam():
    inner = tfwarmup.Adam(1e-3, gradient_init=True)
    scaled = keras.optimizers.LossScaleOptimizer(inner, initial_scale=1.0)
    bad = np.full((1, 40), np.inf, "float32")
    values = trajectory(scaled, np.concatenate([bad, GRADIENTS[:3] / 2]))  # a bad step halves the scale
    expected = trajectory(tfwarmup.Adam(1e-3, gradient_init=True), GRADIENTS[:3])
    np.testing.assert_array_equal(values[1:], expected)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="`gradient_init` needs a `beta_2` that float32 holds .* beta_2=0.99999"):
        tfwarmup.Adam(beta_2=0.99999, gradient_init=True)
    for option in ("gradient_init", "clip_update_rms"):
        with pytest.raises(ValueError, match=f"`{option}` must be True or False. Received: {option}=1"):
            tfwarmup.Adam(**{option: 1})
