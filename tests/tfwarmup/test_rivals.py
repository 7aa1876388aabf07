"""Other ways to hold back the first updates, against plain numpy: GI-Adam and StableAdamW."""

import keras
import numpy as np
import pytest

import tfwarmup
from tests.tfwarmup import reference
from tests.tfwarmup.helpers import BACKEND, drift, numpy, random_gradients, trajectory
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
    """A warmup may come on top."""
    gradients = with_spikes()
    # v_0 does not shrink with 1 - beta_2 as v_1 - v_0 does: the rounding of beta_2 to float32 shows.
    rounded = float(np.float32(beta_2))
    warmup, omega = ("untuned_linear", warmups.UntunedLinear(0.9)) if beta_2 == 0.9 else (None, lambda t: 1.0)
    expected = list(reference.adam(gradients, np.zeros(40), beta_2=rounded, omega=omega, weight_decay=0.1, **options))
    common = {"beta_2": beta_2, "warmup": warmup, "weight_decay": 0.1}
    values = trajectory(tfwarmup.Adam(1e-3, **common, **options), gradients)
    plain = trajectory(tfwarmup.Adam(1e-3, **common), gradients)
    assert drift(values, expected) < 40
    assert drift(plain, expected) > 10000


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
