"""A task that trains in a second, for testing the engine; `python -m tests.trainers.tiny` is its program."""

import dataclasses
import time

import keras
import numpy as np
import tensorflow as tf

from trainers.engine.config import ExamplesConfig
from trainers.engine.data import ArraySource, Data
from trainers.engine.flags import option
from trainers.engine.program import run_task
from trainers.engine.task import Task


@dataclasses.dataclass(frozen=True)
class TinyConfig(ExamplesConfig):
    dropout: float = option(0.0, "Dropout rate.", low=0, below=1)
    normalise: bool = option(False, "Batch normalisation.")
    synchronised: bool = option(True, "Whether batch normalisation is synchronised over replicas.")
    bad_row: int = option(-1, "Row of the training data that holds an infinity.")
    width: int = option(16, "Hidden units.")
    rows: int = option(200, "Training examples.")
    all_bad: bool = option(False, "Whether every row is infinite.")
    step_seconds: float = option(0.0, "Minimum seconds per step.")


class Tiny(Task):
    """Points on two sides of a plane."""

    name = "tiny"
    config_class = TinyConfig
    objective = "error"

    def load(self, config):
        x = np.random.default_rng(0).normal(size=(config.rows, 8)).astype("float32")
        y = (x.sum(axis=1) > 0).astype("int64")
        validation = ArraySource(x[:50].copy(), y[:50])
        if config.bad_row >= 0:
            x[config.bad_row] = np.inf
        if config.all_bad:
            x[:] = np.inf
        return Data(ArraySource(x, y, augment=_jitter), validation)

    def build(self, config, data):
        layers = [keras.Input((8,)), keras.layers.Dense(config.width, activation="tanh")]
        if config.normalise:
            layers.append(keras.layers.BatchNormalization(synchronized=config.synchronised))
        if config.dropout:
            layers.append(keras.layers.Dropout(config.dropout))
        return keras.Sequential([*layers, keras.layers.Dense(2, dtype="float32")])

    def loss(self, config, targets, outputs):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, outputs)
        if config.step_seconds:
            with tf.control_dependencies([tf.numpy_function(lambda: _sleep(config.step_seconds), [], tf.int64)]):
                losses = tf.identity(losses)
        return losses

    def metrics(self, config, targets, outputs):
        return {"error": tf.cast(tf.argmax(outputs, axis=1) != targets, tf.float32)}


def _sleep(seconds):
    time.sleep(seconds)
    return 0


def _jitter(rows, seeds):
    noise = tf.map_fn(lambda seed: tf.random.stateless_normal([8], seed), seeds, fn_output_signature=tf.float32)
    return rows + 0.01 * noise


if __name__ == "__main__":
    run_task(Tiny())
