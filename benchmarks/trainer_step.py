"""Steps a second of the trainer, records and progress on, against a bare hand-written `tf.function` loop.

Command: `python -m benchmarks.trainer_step`.
"""

import argparse
import contextlib
import io
import os
import tempfile
import time
import unittest.mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

import tfwarmup
from benchmarks.timing import interleaved, milliseconds, print_medians, ratio
from trainers.engine.config import make_config
from trainers.engine.data import ArraySource
from trainers.engine.records import RunFolder
from trainers.engine.run import train
from trainers.engine.task import Data
from trainers.tasks.image_classification import ImageClassification, ImageConfig
from trainers.tasks.image_models import build_model

CASES = {
    # name: model, image shape, classes, examples, batch, steps, rounds, goal
    "784-200-100-50-10, batch 256": ("mlp", (28, 28, 1), 10, 60_000, 256, 2000, 7, 0.9),
    "ResNet-50, 224 x 224, batch 8": ("resnet50", (224, 224, 3), 1000, 128, 8, 8, 3, 0.97),
}


class InMemory(ImageClassification):
    """The image task on random arrays, so that both loops read the same data from memory."""

    def __init__(self, images, labels, classes):
        self.images, self.labels, self.classes = images, labels, classes

    def load(self, config):
        source = ArraySource(self.images, self.labels)
        details = type("Details", (), {"image_shape": self.images.shape[1:], "classes": self.classes})
        return Data(source, ArraySource(self.images[:8], self.labels[:8]), details)


def bare_loop(model_name, images, labels, classes, batch, steps):
    """What one would write by hand: shuffle, batch, and a loop in one graph."""
    keras.utils.set_random_seed(0)
    model = build_model(model_name, images.shape[1:], classes)
    optimizer = tfwarmup.Adam(1e-3, warmup="untuned_linear")
    optimizer.build(model.trainable_variables)
    data = tf.data.Dataset.from_tensor_slices((images, labels)).cache()
    data = data.shuffle(len(labels)).repeat().batch(batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    iterator = iter(data)

    @tf.function
    def loop(count):
        for _ in tf.range(count):
            x, y = next(iterator)
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, training=True))
                loss = tf.reduce_mean(losses)
            optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

    loop(tf.constant(2))
    return lambda: milliseconds(lambda: loop(tf.constant(steps)), 1) / steps


def trainer(model_name, images, labels, classes, batch, steps):
    """A step of a whole run, all between two records included: ends of epochs, checkpoints, models."""
    task = InMemory(images, labels, classes)
    every = max(1, steps // 20)

    def measure():
        moments = []
        record = RunFolder.record

        def timed(self, values):
            record(self, values)
            moments.append((time.perf_counter(), values["step"]))

        values = {"model": model_name, "batch_size": batch, "steps": steps + every, "log_every": every}
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.redirect_stderr(io.StringIO()),
            unittest.mock.patch.object(RunFolder, "record", timed),
        ):
            train(task, make_config(ImageConfig, {**values, "output_dir": folder, "checkpoint_every": 0}))
        # The last record waits for the final validation, which the bare loop does not have.
        (start, first), (end, last) = moments[0], moments[-2]
        return (end - start) / (last - first) * 1e3

    return measure


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("mlp", "resnet50"), help="one of the two networks")
    only = parser.parse_args().only
    for name, (model, shape, classes, examples, batch, steps, rounds, goal) in CASES.items():
        if only not in (None, model):
            continue
        generator = np.random.default_rng(0)
        images = generator.random((examples, *shape), dtype="float32")
        labels = generator.integers(0, classes, examples)
        arguments = (model, images, labels, classes, batch, steps)
        contenders = {"bare tf.function loop": bare_loop(*arguments), "trainer": trainer(*arguments)}
        times = interleaved(contenders, rounds)
        print(name)
        print_medians(times)
        speed = ratio(times, "bare tf.function loop", "trainer")
        print(f"  steps a second, trainer / bare loop: {speed:.3f}   goal >= {goal}", end="  ")
        print("reached" if speed >= goal else "MISSED")


if __name__ == "__main__":
    main()
