"""Replicas, micro-batches and precisions are ways to compute, not other results."""

import os

import numpy as np
import pytest
import tensorflow as tf

import tfwarmup
from tests.trainers.helpers import program, records, run_tiny, tiny_flags

CLIPPED = {"global_clipnorm": 0.1, "logical_devices": 2, "weight_decay": 0.01}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return run_tiny(tmp_path_factory.mktemp("alone"), strategy="one", **CLIPPED)


@pytest.mark.parametrize(
    "options",
    [{"strategy": "mirrored"}, {"strategy": "one", "accumulate": 4}, {"strategy": "mirrored", "accumulate": 4}],
    ids=["two replicas", "four micro-batches", "both"],
)
def test_it_equals_one_device_with_one_batch_clipping_included(options, alone, tmp_path):
    np.testing.assert_allclose(run_tiny(tmp_path, **CLIPPED, **options), alone, rtol=0, atol=1e-6)


def test_clipping_before_the_reduction_would_be_another_result(tmp_path, monkeypatch):
    options = {**CLIPPED, "optimizer": "keras_adam"}  # the library's own sum first by themselves
    one = run_tiny(tmp_path / "one", strategy="one", **options)
    np.testing.assert_allclose(run_tiny(tmp_path / "two", strategy="mirrored", **options), one, rtol=0, atol=1e-6)
    monkeypatch.setattr(tfwarmup, "reduce_first", lambda optimizer: optimizer)
    wrong = run_tiny(tmp_path / "wrong", strategy="mirrored", **options)
    assert np.abs(wrong - one).max() > 1e-3


def test_synchronised_batch_normalisation_sees_the_batch_of_all_replicas(tmp_path):
    options = {"normalise": True, "logical_devices": 2}
    one = run_tiny(tmp_path / "one", strategy="one", **options)
    two = run_tiny(tmp_path / "two", strategy="mirrored", **options)
    np.testing.assert_allclose(two, one, rtol=0, atol=1e-6)


def test_replicas_can_synchronise_inside_a_micro_batch(tmp_path):
    # Other rows meet in a micro-batch than on one device, so there is no equal run: this one must work and learn.
    run_tiny(tmp_path, normalise=True, logical_devices=2, strategy="mirrored", accumulate=2)
    losses = [line["loss"] for line in records(tmp_path)]
    assert losses[-1] < 0.9 * losses[0]


def test_dropout_draws_another_mask_on_every_replica_step_and_micro_batch(tmp_path):
    from tests.trainers.tiny import Tiny, TinyConfig
    from trainers.engine.config import make_config
    from trainers.engine.devices import make_strategy
    from trainers.engine.optimizers import make_optimizer
    from trainers.engine.step import Stepper

    config = make_config(TinyConfig, {"output_dir": "-", "dropout": 0.5, "strategy": "mirrored", "logical_devices": 2})
    strategy = make_strategy(config)
    with strategy.scope():
        model = Tiny().build(config, None)
        optimizer = make_optimizer(config, 1, 1)
        optimizer.build(model.trainable_variables)
        stepper = Stepper(config, Tiny(), model, optimizer, strategy)
    dropout = model.layers[1]

    @tf.function
    def masks():
        return strategy.run(lambda: dropout(tf.ones((1, 64)), training=True))

    def draw(step):
        stepper.step.assign(step)
        return [mask.numpy() for mask in strategy.experimental_local_results(masks())]

    first, second = draw(0), draw(1)
    assert len({mask.tobytes() for mask in first + second}) == 4
    np.testing.assert_array_equal(draw(0), first)


@pytest.mark.parametrize("strategy", ["one", "mirrored"])
def test_an_overflow_on_any_replica_skips_the_update_everywhere(strategy, tmp_path):
    # The order of an epoch brings the bad row to either replica in turn.
    weights = run_tiny(
        tmp_path, strategy=strategy, logical_devices=2, precision="mixed_float16", bad_row=7, epochs=6, decay="cosine"
    )
    assert np.all(np.isfinite(weights))
    last = records(tmp_path)[-1]
    assert last["step"] == 30
    assert last["updates"] == 24  # one skipped step an epoch: neither warmup nor decay counts it
    expected = 1e-2 * 0.5 * (1 + np.cos(np.pi * 23 / 30))
    assert last["learning_rate"] == pytest.approx(expected, rel=1e-5)


def test_half_precision_is_close_to_float32(alone, tmp_path):
    for precision in ("mixed_float16", "mixed_bfloat16"):
        half = run_tiny(tmp_path / precision, strategy="mirrored", precision=precision, **CLIPPED)
        np.testing.assert_allclose(half, alone, rtol=0, atol=2e-2)
        assert np.abs(half - alone).max() > 1e-6


def test_xla_computes_the_same(alone, tmp_path):
    np.testing.assert_allclose(run_tiny(tmp_path, strategy="one", xla=True, **CLIPPED), alone, rtol=0, atol=1e-5)


def peak_mebibytes(folder, accumulate):
    options = {"rows": 4096, "batch_size": 4096, "width": 60000, "epochs": 2, "checkpoint_every": 0}
    with program("tests.trainers.tiny", *tiny_flags(folder, accumulate=accumulate, **options)) as process:
        _, process.returncode, usage = os.wait4(process.pid, 0)
    assert process.returncode == 0
    return usage.ru_maxrss / 2**10


@pytest.mark.slow
def test_memory_follows_the_micro_batch(tmp_path):
    # One activation of the whole batch is 4096 x 60000 x 4 bytes: at least that much is never there.
    activation = 4096 * 60000 * 4 / 2**20
    whole, sixteenth = (peak_mebibytes(tmp_path / str(accumulate), accumulate) for accumulate in (1, 16))
    assert whole - sixteenth > activation
