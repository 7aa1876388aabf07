"""The cost of probes: a train step in `fit` with and without probes of rates, updates and moments at every iteration.

Command: `python -m benchmarks.probe_cost [--only=transformer]`.
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
from keras import layers

import tfwarmup
from benchmarks.timing import interleaved, print_goals, print_medians, ratio
from tfwarmup import probes
from trainers.tasks.images.models import build_model

GOAL = 1.10
TOKENS, LENGTH, WIDTH, HEADS = 1000, 64, 128, 4


class Stopwatch(keras.callbacks.Callback):
    """Milliseconds per step, from the end of the first (which compiles) to the end of the last, callbacks included."""

    def on_train_begin(self, logs=None):
        self.moments = []

    def on_train_batch_end(self, batch, logs=None):
        self.moments.append(time.perf_counter())

    @property
    def milliseconds(self):
        return (self.moments[-1] - self.moments[0]) / (len(self.moments) - 1) * 1e3


def resnet():
    generator = np.random.default_rng(0)
    images = generator.random((4, 224, 224, 3), dtype="float32")
    return build_model("resnet50", (224, 224, 3), 1000), images, generator.integers(0, 1000, 4)


def transformer():
    """Two layers over 64 tokens, a next-token loss."""
    tokens = keras.Input((LENGTH,), dtype="int32")
    x = layers.Embedding(TOKENS, WIDTH)(tokens)
    for _ in range(2):
        normed = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(normed, normed, use_causal_mask=True)
        hidden = layers.Dense(4 * WIDTH, activation="gelu")(layers.LayerNormalization()(x))
        x = x + layers.Dense(WIDTH)(hidden)
    model = keras.Model(tokens, layers.Dense(TOKENS)(layers.LayerNormalization()(x)))
    text = np.random.default_rng(0).integers(0, TOKENS, (16, LENGTH + 1))
    return model, text[:, :-1], text[:, 1:]


CASES = {
    # name: title, model and data, steps per round, rounds
    "resnet50": ("ResNet-50, 224 x 224, batch 4", resnet, 3, 7),
    "transformer": ("Transformer, 2 layers of width 128, batch 16 x 64 tokens", transformer, 11, 21),
}


def train_step(make, steps, callbacks, inside):
    """Returns a function that trains with these callbacks, and adds their milliseconds per step to `inside`."""
    keras.utils.set_random_seed(0)
    model, x, y = make()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tfwarmup.Adam(1e-3, warmup="untuned_linear"), loss)
    data = tf.data.Dataset.from_tensors((x, y)).cache().repeat()
    before, after = Stopwatch(), Stopwatch()

    def measure():
        model.fit(data, steps_per_epoch=steps, shuffle=False, verbose=0, callbacks=[before, *callbacks, after])
        inside.extend((b - a) * 1e3 for a, b in zip(before.moments[1:], after.moments[1:], strict=True))
        return after.milliseconds

    return measure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CASES, help="measure only this network")
    only = parser.parse_args().only
    for name, (text, make, steps, rounds) in CASES.items():
        if only not in (None, name):
            continue
        inside = []
        contenders = {
            "without probes": train_step(make, steps, [], []),
            "with probes": train_step(make, steps, probes.all_probes(), inside),
        }
        interleaved(contenders, 1)
        inside.clear()
        times = interleaved(contenders, rounds)
        print(f"One train step of {text}")
        print_medians({**times, "inside the probes": inside})
        print_goals([("with rate, update and moment probes / without", ratio(times, *reversed(contenders)), GOAL)])


if __name__ == "__main__":
    main()
