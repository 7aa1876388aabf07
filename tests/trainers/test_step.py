"""Replicas, micro-batches and precisions are ways to compute, not other results."""

import json
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfwarmup
from tests.trainers.helpers import final_weights, finish, program, records, run_tiny, stored_checkpoint, tiny_flags
from tests.trainers.tiny import Tiny, TinyConfig
from trainers.engine.data import ArraySource, Data
from trainers.engine.flags import make_config
from trainers.engine.layer_state import MovingStatistics
from trainers.engine.run import train
from trainers.engine.step import Stepper

ONE, TWO = ({"strategy": strategy, "logical_devices": 2} for strategy in ("one", "mirrored"))
CLIPPED = {"global_clipnorm": 0.1, "weight_decay": 0.01}
KERAS = {**CLIPPED, "optimizer": "keras_adam"}  # the library's own sum first by themselves


@pytest.mark.parametrize(
    ("how", "options", "least", "most"),
    [
        (TWO, CLIPPED, 0, 1e-6),
        (TWO, KERAS, 0, 1e-6),
        ({**ONE, "accumulate": 4}, CLIPPED, 0, 1e-6),
        ({**TWO, "accumulate": 4}, CLIPPED, 0, 1e-6),
        ({**ONE, "xla": True}, CLIPPED, 0, 1e-5),
        ({**TWO, "precision": "mixed_float16"}, CLIPPED, 1e-6, 2e-2),
        ({**TWO, "precision": "mixed_bfloat16"}, CLIPPED, 1e-6, 2e-2),
        (TWO, {"normalise": True}, 0, 1e-6),  # synchronised, it sees the batch of all replicas
    ],
)
def test_it_equals_one_device_with_one_batch_clipping_included(how, options, least, most, finished):
    folder, alone = (finished(**each, **options) for each in (how, ONE))
    assert least <= np.abs(final_weights(folder) - final_weights(alone)).max() <= most
    for name in ("loss", "gradient_norm"):  # Adam hides a factor of all gradients from the weights
        assert records(folder)[0][name] == pytest.approx(records(alone)[0][name], rel=max(most, 1e-5))


def test_clipping_before_the_reduction_would_be_another_result(finished, tmp_path, monkeypatch):
    monkeypatch.setattr(tfwarmup, "reduce_first", lambda optimizer: optimizer)
    monkeypatch.setattr("trainers.engine.step.summed_over_replicas", list)  # Keras sums what it has clipped
    wrong = run_tiny(tmp_path, **TWO, **KERAS)
    monkeypatch.undo()
    assert np.abs(wrong - final_weights(finished(**ONE, **KERAS))).max() > 1e-3


def test_replicas_can_synchronise_inside_a_micro_batch(tmp_path):
    # Other rows meet in a micro-batch than on one device, so there is no equal run: this one must work and learn.
    run_tiny(tmp_path, **TWO, normalise=True, accumulate=2)
    losses = [line["loss"] for line in records(tmp_path)]
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("how", [ONE, TWO])
def test_an_overflow_on_any_replica_skips_the_update_everywhere(how, tmp_path):
    # The order of an epoch brings the bad row to either replica in turn.
    weights = run_tiny(tmp_path, **how, precision="mixed_float16", bad_row=7, epochs=6, decay="cosine")
    assert np.all(np.isfinite(weights))
    last = records(tmp_path)[-1]
    assert last["step"] == 30
    assert last["updates"] == 24  # one skipped step an epoch: neither warmup nor decay counts it
    expected = 1e-2 * 0.5 * (1 + np.cos(np.pi * 23 / 30))
    assert last["learning_rate"] == pytest.approx(expected, rel=1e-5)


def peak_gigabytes(folder, accumulate):
    """The most memory that a run has at once, in a process of its own: these tests are large themselves."""
    options = {"rows": 4096, "batch_size": 4096, "width": 60000, "epochs": 2, "checkpoint_every": 0, "dry_run": True}
    output, _ = finish(program("tests.trainers.tiny", *tiny_flags(folder, accumulate=accumulate, **options)))
    return float(re.findall(r"peak memory ([\d.]+) GB", output)[0])


@pytest.mark.slow
@pytest.mark.xdist_group("large")
def test_memory_follows_the_micro_batch(tmp_path):
    # One activation of the whole batch is 4096 x 60000 x 4 bytes: at least that much is never there.
    whole, sixteenth = (peak_gigabytes(tmp_path, accumulate) for accumulate in (1, 16))
    assert whole - sixteenth > 4096 * 60000 * 4 / 1e9


UNSYNCHRONISED = {**TWO, "normalise": True, "synchronised": False}


@pytest.fixture
def unsynchronised(finished):
    return finished(**UNSYNCHRONISED)


def test_unsynchronised_batch_normalisation_has_one_set_of_statistics(unsynchronised):
    """The records, the saved model and the checkpoint tell of the same model, on two replicas as on one."""
    model = keras.models.load_model(unsynchronised / "last.keras")
    validation = Tiny().load(Tiny.config_class()).validation
    losses = Tiny().loss(TinyConfig(), validation.targets, model(validation.inputs)).numpy()
    assert records(unsynchronised)[-1]["val_loss"] == pytest.approx(losses.mean(), rel=1e-6)


def test_statistics_are_averaged_over_the_replicas(unsynchronised, tmp_path, monkeypatch):
    """A replica's own would be others: what they are without the average differs."""
    monkeypatch.setattr(MovingStatistics, "average", lambda self: None)
    first_replica = run_tiny(tmp_path, **UNSYNCHRONISED)
    differing = final_weights(unsynchronised) != first_replica
    moving = slice(8 * 16 + 16 + 32, 8 * 16 + 16 + 64)  # after a kernel, its bias, gamma and beta
    assert np.any(differing[moving])
    assert not np.any(np.delete(differing, np.arange(moving.start, moving.stop)))  # training does not use them


class MaskTask(Tiny):
    """A unit whose gradient is the mask of its dropout, added up over all examples."""

    layer_calls = 1

    def load(self, config):
        data = ArraySource(np.ones((config.rows, 64), "float32"), np.zeros(config.rows, "int64"))
        return Data(data, data)

    def build(self, config, data):
        inputs = keras.Input((64,))
        dropout = keras.layers.Dropout(0.5)
        outputs = sum(dropout(inputs) for _ in range(self.layer_calls))
        dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros", dtype="float32")
        return keras.Model(inputs, dense(outputs))

    def loss(self, config, targets, outputs):
        return outputs[:, 0]

    def metrics(self, config, targets, outputs):
        return {"error": outputs[:, 0]}


def mask_counts(folder, task, **options):
    """How often each input passed at the last step, per example: the moment is that step's gradient."""
    values = {"output_dir": str(folder), "rows": 4, "steps": 1, "batch_size": 1, "beta_1": 0.0, **options}
    values |= {"log_every": 1, "checkpoint_every": 1}
    train(task, make_config(TinyConfig, {**values, "progress": False, "save_models": False}))
    header, arrays = stored_checkpoint(folder)
    moment = arrays[f"{header['names'].index('adam/dense_kernel_momentum'):05d}"]
    return np.round(moment[:, 0] * values["batch_size"] / 2, 3)  # what passes is doubled


@pytest.mark.parametrize("options", [{"accumulate": 2}, TWO])
def test_dropout_draws_another_mask_for_every_micro_batch_and_replica(options, tmp_path, monkeypatch):
    assert set(mask_counts(tmp_path / "two", MaskTask(), batch_size=2, **options)) == {0, 1, 2}
    monkeypatch.setattr(Stepper, "_position", lambda self: self.step)
    assert set(mask_counts(tmp_path / "one", MaskTask(), batch_size=2, **options)) == {0, 2}  # both passed the same


def test_dropout_draws_another_mask_at_every_step(tmp_path):
    folders = {steps: tmp_path / str(steps) for steps in (1, 2)}
    first, second = (mask_counts(folder, MaskTask(), steps=steps) for steps, folder in folders.items())
    assert np.any(first != second)


def test_a_dropout_layer_that_is_called_twice_draws_twice(tmp_path):
    task = MaskTask()
    task.layer_calls = 2
    assert set(mask_counts(tmp_path, task)) == {0, 1, 2}


class Weighted(Tiny):
    """Tiny, but rows whose label is 0 have no weight."""

    def load(self, config):
        data = super().load(config)
        return Data(WeightedSource(data.train.inputs, np.sort(data.train.targets)), data.validation)


class WeightedSource(ArraySource):
    def load(self, parts, training):
        return super().load(parts, training).map(lambda x, y, weights: (x, y, weights * tf.cast(y, tf.float32)))

    def order(self, feed):
        """As the rows stand: the first micro-batches have no weight at all."""
        parts = tf.data.Dataset.range(self.size).batch(feed.micro_size, drop_remainder=True).repeat()
        size = feed.micro_size
        return parts.map(lambda rows: (rows, tf.zeros([size, 2], tf.int64), tf.ones([size])))


def test_a_first_micro_batch_without_weight_divides_nothing_by_zero(tmp_path):
    options = {"rows": 40, "batch_size": 40, "steps": 5, "log_every": 1, "checkpoint_every": 0, "progress": False}
    options["epsilon"] = 1.0  # with a small one, a gradient of another size would be the same update of Adam
    weights = []
    for accumulate in (1, 4):
        folder = tmp_path / str(accumulate)
        train(Weighted(), make_config(TinyConfig, {**options, "accumulate": accumulate, "output_dir": str(folder)}))
        weights.append(final_weights(folder))
        assert all(line["loss"] is not None for line in records(folder))
    np.testing.assert_allclose(weights[1], weights[0], rtol=0, atol=1e-6)


@pytest.mark.slow
def test_the_gradient_norm_of_a_record_is_that_of_the_whole_batch_before_clipping(tmp_path):
    ways = {
        "plain": ONE,
        "replicas": TWO,
        "parts": {**TWO, "accumulate": 2},
        "clipped": {**TWO, "global_clipnorm": 1e-3},
        "half": {**TWO, "precision": "mixed_float16"},
    }
    norms = {}
    for name, options in ways.items():
        run_tiny(tmp_path / name, **options, log_every=1, checkpoint_every=0)
        norms[name] = records(tmp_path / name)[0]["gradient_norm"]
        assert norms[name] == pytest.approx(norms["plain"], rel=1e-2 if name == "half" else 1e-6)


def test_the_first_speed_is_without_tracing(tmp_path):
    run_tiny(tmp_path, log_every=1, checkpoint_every=0, epochs=2)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert lines[0]["examples_per_second"] is None  # a single step, which compiles
    speeds = [line["examples_per_second"] for line in lines[1:]]
    assert min(speeds) > max(speeds) / 50  # tracing is hundreds of steps long


def board_steps(folder):
    """The steps that TensorBoard shows of a run, by their tags."""
    from tensorflow.python.summary.summary_iterator import summary_iterator

    steps = {}
    for path in (folder / "tensorboard").iterdir():
        for event in summary_iterator(str(path)):
            for value in event.summary.value:
                steps.setdefault(value.tag, []).append(event.step)
    return {tag: sorted(found) for tag, found in steps.items()}


def test_tensorboard_shows_no_step_twice(trained):
    (trained / "checkpoints/step-000000000020.npz").unlink()  # as if it had been killed before it
    run_tiny(trained)
    assert board_steps(trained)["train/loss"] == [line["step"] for line in records(trained)]


def test_a_single_gpu_gets_its_batches_ahead_and_memory_as_it_needs_it(whole, tmp_path, monkeypatch):
    """There is no GPU here: a CPU plays its part, which shows the calls and not what they bring."""
    grown = []
    cpu = tf.config.list_logical_devices("CPU")[0]
    real = tf.config.list_logical_devices
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [cpu] if kind == "GPU" else real(kind))
    physical = tf.config.list_physical_devices
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["gpu"] if kind == "GPU" else physical(kind))
    monkeypatch.setattr(tf.config.experimental, "get_memory_growth", lambda gpu: gpu in grown)
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", lambda gpu, on: grown.append(gpu))
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda gpu: {"device_name": "a GPU"})
    weights = run_tiny(tmp_path / "gpu", strategy="one")
    monkeypatch.undo()
    assert grown == ["gpu"]
    np.testing.assert_array_equal(weights, final_weights(whole))
