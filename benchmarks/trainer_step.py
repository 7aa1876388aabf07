"""Steps per second of the trainer, with records and progress, and of a bare hand-written `tf.function` loop.

Command: `python -m benchmarks.trainer_step`.
"""

import argparse
import contextlib
import dataclasses
import io
import os
import tempfile
import time
import unittest.mock
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

import tfwarmup
from benchmarks.timing import interleaved, milliseconds, print_medians, ratio
from trainers.engine.data import ArraySource
from trainers.engine.flags import make_config
from trainers.engine.folder import RunFolder
from trainers.engine.run import train
from trainers.tasks.images.data import ImageData
from trainers.tasks.images.task import ImageClassification
from trainers.tasks.language.data import TextData
from trainers.tasks.language.sources import TrainingBlocks, Windows
from trainers.tasks.language.task import LanguageModeling
from trainers.tasks.language.vocabulary import END, UNKNOWN, Vocabulary
from trainers.tasks.translation.config import BOS, EOS
from trainers.tasks.translation.data import TranslationData
from trainers.tasks.translation.sources import Sequences, TranslationBatches
from trainers.tasks.translation.task import MachineTranslation


@dataclasses.dataclass(frozen=True)
class Case:
    """A task on random data in memory, which both loops read."""

    name: str
    task: Any
    values: dict[str, Any]  # of its config
    examples: Any  # (inputs, targets) for the bare loop
    batch: int  # examples
    steps: int
    rounds: int
    goal: float


class Images(ImageClassification):
    """The image task on arrays."""

    def __init__(self, images, labels, classes):
        self.images, self.labels, self.classes = images, labels, classes

    def load(self, config):
        source = ArraySource(self.images, self.labels)
        return ImageData(source, ArraySource(self.images[:8], self.labels[:8]), self.classes, self.images.shape[1:])


class Words(LanguageModeling):
    """The language model on random words."""

    def __init__(self, text, size):
        self.text, self.vocabulary = text, Vocabulary([UNKNOWN, END, *map(str, range(size - 2))])

    def load(self, config):
        train = TrainingBlocks(self.text, config.context)
        validation = Windows(self.text[: config.context * 8 + 1], config.context)
        return TextData(train, validation, self.vocabulary)

    def fill_folder(self, folder, config, data):
        """Does nothing: a random text has no baselines."""


class Sentences(MachineTranslation):
    """The translator on random sentences of one length."""

    def __init__(self, sources, targets, size):
        self.sources, self.targets, self.size = sources.tolist(), targets.tolist(), size

    def load(self, config):
        subwords = type("Subwords", (), {"size": self.size})
        return TranslationData(self._batches(None), self._batches(64), subwords, [], None, 0)

    def _batches(self, count):
        return TranslationBatches(Sequences.of(self.sources[:count]), Sequences.of(self.targets[:count]))

    def extra_validation(self, config, data, model):
        return lambda: {"bleu": 0.0}

    def final_results(self, config, data, model, folder):
        return {}

    def fill_folder(self, folder, config, data):
        """Does nothing: random subwords are not kept."""


def images(name, model, shape, classes, examples, batch, steps, rounds, goal):
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (examples, *shape), dtype="uint8")
    labels = generator.integers(0, classes, examples)
    values = {"model": model, "batch_size": batch}
    return Case(name, Images(pixels, labels, classes), values, (pixels, labels), batch, steps, rounds, goal)


def words(name, size, tokens, context, batch, steps, rounds, goal):
    generator = np.random.default_rng(0)
    text = (size ** generator.random(tokens + 1) - 1).astype("int32")  # with frequencies by Zipf's law
    cut = np.lib.stride_tricks.sliding_window_view(text, context + 1)[::context]
    inputs = {"tokens": cut[:, :-1].copy(), "targets": cut[:, 1:].copy()}
    values = {"batch_size": batch, "context": context, "cutoffs": (2000, 10_000), "factor": 2, "dropout": 0.1}
    return Case(name, Words(text, size), values, (inputs, inputs["targets"]), batch, steps, rounds, goal)


def sentences(name, size, pairs, length, batch, steps, rounds, goal):
    sources, targets = np.random.default_rng(0).integers(EOS + 1, size, (2, pairs, length), dtype="int32")
    sources[:, -1] = targets[:, -1] = EOS
    inputs = {"source": sources, "target": np.insert(targets[:, :-1], 0, BOS, axis=1)}
    values = {"max_tokens": batch * length, "layers": 2, "width": 128, "inner": 512}
    return Case(name, Sentences(sources, targets, size), values, (inputs, targets), batch, steps, rounds, goal)


CASES = {
    "mlp": lambda: images("784-200-100-50-10, batch 256", "mlp", (28, 28, 1), 10, 60_000, 256, 2000, 7, 0.9),
    "resnet50": lambda: images("ResNet-50, 224 x 224, batch 8", "resnet50", (224, 224, 3), 1000, 128, 8, 8, 3, 0.97),
    "language": lambda: words(
        "Transformer 2 x 128, 33,000 words, batch 16 x 128", 33_000, 200_000, 128, 16, 60, 5, 0.95
    ),
    "translation": lambda: sentences(
        "Transformer 2 + 2 x 128, 6,000 subwords, batch 64 x 24", 6000, 20_000, 24, 64, 60, 5, 0.95
    ),
}


def configuration(case, **values):
    return make_config(case.task.config_class, {**case.values, **values})


def bare_loop(case):
    """A hand-written loop: shuffle, batch, and all steps in one graph."""
    keras.utils.set_random_seed(0)
    config = configuration(case, output_dir="-")
    model = case.task.build(config, case.task.load(config))
    optimizer = tfwarmup.Adam(1e-3, warmup="untuned_linear")
    optimizer.build(model.trainable_variables)
    data = tf.data.Dataset.from_tensor_slices(case.examples).cache()
    data = data.shuffle(len(case.examples[1])).repeat().batch(case.batch, drop_remainder=True)
    iterator = iter(data.prefetch(tf.data.AUTOTUNE))

    @tf.function
    def loop(count):
        for _ in tf.range(count):
            x, y = next(iterator)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(case.task.loss(config, y, model(x, training=True)))
            optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

    loop(tf.constant(2))
    return lambda: milliseconds(lambda: loop(tf.constant(case.steps)), 1) / case.steps


def trainer(case):
    """A step of a whole run, including everything between records: ends of epochs, checkpoints, models."""
    every = max(1, case.steps // 20)

    def measure():
        moments = []
        record = RunFolder.record

        def timed(self, values):
            record(self, values)
            moments.append((time.perf_counter(), values["step"]))

        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.redirect_stderr(io.StringIO()),
            unittest.mock.patch.object(RunFolder, "record", timed),
        ):
            values = {"steps": case.steps + every, "log_every": every, "checkpoint_every": 0, "output_dir": folder}
            train(case.task, configuration(case, **values))
        # The last record waits for the final validation, which the bare loop does not have.
        (start, first), (end, last) = moments[0], moments[-2]
        return (end - start) / (last - first) * 1e3

    return measure


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=tuple(CASES), help="measure only this network")
    only = parser.parse_args().only
    for key, make in CASES.items():
        if only not in (None, key):
            continue
        case = make()
        times = interleaved({"bare tf.function loop": bare_loop(case), "trainer": trainer(case)}, case.rounds)
        print(case.name)
        print_medians(times)
        speed = ratio(times, "bare tf.function loop", "trainer")
        print(f"  steps per second, trainer / bare loop: {speed:.3f}   goal >= {case.goal}", end="  ")
        print("reached" if speed >= case.goal else "MISSED")


if __name__ == "__main__":
    main()
