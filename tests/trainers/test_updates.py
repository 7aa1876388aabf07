"""The size of a run's updates, as its records have it."""

import keras
import numpy as np
import pytest
from keras import ops

import tfwarmup
from tests.trainers.helpers import records, run_tiny
from tfwarmup.analysis.applied import applied_rate
from trainers.engine.optimizers import UpdateSize

GRADIENTS = np.random.default_rng(0).normal(0.1, 1, (6, 5, 4)).astype("float32")
NOISE = np.sqrt(0.1 / 1.9)


def trained(optimizer, gradients=GRADIENTS):
    variable = keras.Variable(np.zeros(gradients.shape[1:], "float32"))
    optimizer.build([variable])
    for gradient in gradients:
        optimizer.apply([ops.convert_to_tensor(gradient)], [variable])
    return UpdateSize(optimizer, [variable]).measure(optimizer, applied_rate(optimizer))


def expected(gradients, beta_1=0.9, beta_2=0.98):
    m = v = 0.0
    for g in gradients.astype("float64"):
        m, v = beta_1 * m + (1 - beta_1) * g, beta_2 * v + (1 - beta_2) * g**2
    t = len(gradients)
    return np.sqrt(np.mean(((m / (1 - beta_1**t)) / np.sqrt(v / (1 - beta_2**t))) ** 2))


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: tfwarmup.Adam(1e-3, beta_2=0.98, warmup="untuned_linear", epsilon=1e-12),
        lambda: tfwarmup.Adam(1e-3, beta_2=0.98, warmup="dynamic", epsilon=1e-12),
        lambda: tfwarmup.RAdam(1e-3, beta_2=0.98, epsilon=1e-12),
        lambda: tfwarmup.warm_up(keras.optimizers.Adam(1e-3, beta_2=0.98, epsilon=1e-12)),
        lambda: keras.optimizers.LossScaleOptimizer(tfwarmup.Adam(1e-3, beta_2=0.98, epsilon=1e-12), initial_scale=1.0),
    ],
)
def test_the_size_is_that_of_the_update_without_rate_and_warmup(optimizer):
    assert trained(optimizer()) == pytest.approx(expected(GRADIENTS), rel=1e-5)
    assert expected(GRADIENTS) != pytest.approx(NOISE, rel=0.1)


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: keras.optimizers.SGD(1e-3, momentum=0.9),
        lambda: keras.optimizers.Nadam(1e-3),
        lambda: keras.optimizers.Lamb(1e-3),
        lambda: tfwarmup.Adam(clip_update_rms=True),
    ],
)
def test_an_update_that_does_not_follow_from_the_moments_has_no_size(optimizer):
    assert trained(optimizer()) is None


def test_a_momentum_step_of_radam_has_no_size():
    assert trained(tfwarmup.RAdam(beta_2=0.98), GRADIENTS[:4]) is None
    assert trained(tfwarmup.RAdam(beta_2=0.98), GRADIENTS[:5]) > 0


@pytest.mark.parametrize(
    "options", [{"logical_devices": 2}, {"precision": "mixed_float16"}, {"logical_devices": 2, "accumulate": 2}]
)
def test_replicas_and_half_precision_record_nearly_the_same_sizes(options, whole, tmp_path):
    run_tiny(tmp_path, **options)
    plain, other = ([line["update_rms"] for line in records(folder)] for folder in (whole, tmp_path))
    assert all(0 < size < 1.1 for size in plain)
    np.testing.assert_allclose(other, plain, rtol=0.1 if "precision" in options else 1e-3)


def test_optimizers_of_other_kinds_record_none(tmp_path):
    run_tiny(tmp_path, optimizer="keras_sgd", warmup="none")
    assert {line["update_rms"] for line in records(tmp_path)} == {None}
