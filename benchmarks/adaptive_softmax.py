"""Time and memory of the adaptive softmax and of a full one, at the full vocabulary of WikiText-103.

A step is forward and backward: losses of the tokens, gradients of their vectors and of all weights. Words follow Zipf's
law, which puts one in five into a tail. Command: `python -m benchmarks.adaptive_softmax`.
"""

import argparse
import os
import pathlib
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

from benchmarks.timing import interleaved, milliseconds, print_goals, print_medians, ratio
from trainers.layers.adaptive import AdaptiveSoftmax

VOCABULARY, WIDTH, CUTOFFS, FACTOR = 267_735, 1024, (20_000, 60_000), 4
GOAL = 0.333
MIB = 2**20


class FullSoftmax(keras.layers.Layer):
    """One matrix for all words."""

    def build(self, hidden_shape, targets_shape=None):
        self.kernel = self.add_weight(shape=(WIDTH, VOCABULARY))

    def call(self, hidden, targets):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(targets, hidden @ tf.convert_to_tensor(self.kernel))


LAYERS = {
    "full": FullSoftmax,
    "adaptive": lambda: AdaptiveSoftmax(VOCABULARY, WIDTH, CUTOFFS, FACTOR),
}


def zipf_words(count):
    """Words with probabilities in proportion to 1 / rank."""
    weights = 1 / np.arange(1, VOCABULARY + 1)
    return np.random.default_rng(0).choice(VOCABULARY, count, p=weights / weights.sum()).astype("int32")


def contender(name, tokens):
    """A function that takes one step, and the bytes of its weights."""
    keras.utils.set_random_seed(0)
    layer = LAYERS[name]()
    hidden, targets = tf.random.stateless_normal([tokens, WIDTH], [0, 0]), tf.constant(zipf_words(tokens))
    layer.build(hidden.shape, targets.shape)

    @tf.function
    def gradients():
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            loss = tf.reduce_mean(layer(hidden, targets))
        return tape.gradient(loss, [hidden, *layer.trainable_variables])

    return gradients, sum(4 * int(np.prod(weight.shape)) for weight in layer.weights)


def print_memory(name, tokens):
    """Prints the bytes of the weights, and the peak of resident memory in three steps above the level before."""
    step, weights = contender(name, tokens)
    before = resident_bytes("VmRSS")
    # Resets the peak, which includes the creation of the weights.
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    for _ in range(3):
        step()
    print(weights, resident_bytes("VmHWM") - before)


def resident_bytes(field):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def measured_memory(name, tokens):
    command = [sys.executable, "-m", "benchmarks.adaptive_softmax", f"--memory_of={name}", f"--tokens={tokens}"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return tuple(int(word) for word in output.split())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=256, help="tokens per batch")
    parser.add_argument("--rounds", type=int, default=5, help="measurements per layer")
    parser.add_argument("--memory_of", choices=tuple(LAYERS), help="print the memory of one layer and stop")
    arguments = parser.parse_args()
    if arguments.memory_of:
        print_memory(arguments.memory_of, arguments.tokens)
        return
    # Memory first, each in its own process, while this one is still small.
    memory = {name: measured_memory(name, arguments.tokens) for name in LAYERS}
    steps = {name: contender(name, arguments.tokens)[0] for name in LAYERS}
    for step in steps.values():
        step()
    times = interleaved(
        {name: lambda step=step: milliseconds(step, 1) for name, step in steps.items()}, arguments.rounds
    )
    print(f"{arguments.tokens} tokens, {VOCABULARY} words, width {WIDTH}, cut-offs {CUTOFFS}, forward and backward")
    print_medians(times)
    for name, (weights, step) in memory.items():
        print(f"  {name:<8} weights {weights / MIB:7.0f} MiB, peak of a step above them {step / MIB:7.0f} MiB")
    (full_weights, full_step), (adaptive_weights, adaptive_step) = memory["full"], memory["adaptive"]
    print_goals(
        [
            ("time, adaptive / full", ratio(times, "adaptive", "full"), GOAL),
            ("peak memory of a step above the weights, adaptive / full", adaptive_step / full_step, GOAL),
            (
                "the same with the weights, adaptive / full",
                (adaptive_weights + adaptive_step) / (full_weights + full_step),
                GOAL,
            ),
        ]
    )


if __name__ == "__main__":
    main()
