"""Time of the analysis's gradient samples, computed together, and of as many separate backward passes.

Command: `python -m benchmarks.gradient_samples`.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

from benchmarks.timing import interleaved, milliseconds, print_medians, ratio
from tfwarmup.analysis.samples import ParameterSample
from trainers.analysis.gradient_samples import GradientSamples
from trainers.engine.data import Feed
from trainers.tasks.images.config import ImageFlags
from trainers.tasks.images.data import load_images
from trainers.tasks.images.models import build_model
from trainers.tasks.images.sources import SmallImages

BATCH, COUNT, PARAMETERS, ROUNDS, GOAL = 256, 256, 500, 7, 3.0


def separate_passes(model, sample, source):
    """A compiled backward pass for each batch, with batches from the same pipeline."""
    batches = iter(source.training(Feed(BATCH, seed=-2)))
    kernels = [variable.value for variable in sample.variables]

    @tf.function
    def gradient(images, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True))
            loss = tf.reduce_mean(losses)
        return sample.take(tape.gradient(loss, kernels))

    def draw():
        return np.array([gradient(*next(batches)[:2]) for _ in range(COUNT)])

    return draw


def together(model, sample, source, share):
    samples = GradientSamples(model, sample, source, BATCH, COUNT, 1, share)
    return lambda: samples.draw(0)


def compare(name, source):
    model = build_model("mlp", (28, 28, 1), 10)
    sample = ParameterSample(model.trainable_variables, PARAMETERS)
    draws = {
        "separate backward passes": separate_passes(model, sample, source),
        "one graph, one pass per batch": together(model, sample, source, share=False),
        "as the analysis does it": together(model, sample, source, share=None),
    }
    for draw in draws.values():
        draw()
    times = interleaved({key: lambda draw=draw: milliseconds(draw, 1) for key, draw in draws.items()}, ROUNDS)
    print(f"{COUNT} gradients from batches of {BATCH}, {len(sample)} parameters: {name}")
    print_medians(times)
    speed = ratio(times, "separate backward passes", "as the analysis does it")
    print(f"  speedup: {speed:.2f}   goal >= {GOAL}  {'reached' if speed >= GOAL else 'MISSED'}")


def main():
    keras.utils.set_random_seed(0)
    compare("4,000 digits, as embedded", load_images(ImageFlags()).train)
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (240_000, 28, 28, 1), dtype="uint8")
    compare("240,000 images, as EMNIST digits", SmallImages(pixels, generator.integers(0, 10, 240_000)))


if __name__ == "__main__":
    main()
