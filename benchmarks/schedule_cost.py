"""The cost of a warmup schedule: a train step of 784-200-100-50-10 at batch 256, relative to a constant rate.

Command: `python -m benchmarks.schedule_cost`.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

import tfwarmup
from benchmarks.timing import interleaved, milliseconds, print_goals, print_medians, ratio

BATCH, STEPS, ROUNDS = 256, 100, 41


def train_step(learning_rate):
    """A hand-written loop of STEPS steps in one graph: the step itself and nothing around it."""
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(units, activation="relu") for units in (200, 100, 50)]
    model = keras.Sequential([keras.Input((784,)), *layers, keras.layers.Dense(10)])
    optimizer = keras.optimizers.Adam(learning_rate)
    optimizer.build(model.trainable_variables)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    generator = np.random.default_rng(0)
    x = tf.constant(generator.normal(size=(BATCH, 784)), "float32")
    y = tf.constant(generator.integers(0, 10, BATCH))

    @tf.function
    def steps():
        for _ in tf.range(STEPS):
            with tf.GradientTape() as tape:
                value = loss(y, model(x, training=True))
            optimizer.apply(tape.gradient(value, model.trainable_variables))

    return lambda: milliseconds(steps, 1) / STEPS


def main():
    decay = keras.optimizers.schedules.CosineDecay(1e-3, 10**6)
    contenders = {
        "constant rate": train_step(1e-3),
        "UntunedLinearWarmup": train_step(tfwarmup.UntunedLinearWarmup(1e-3, 0.999)),
        "UntunedExponentialWarmup": train_step(tfwarmup.UntunedExponentialWarmup(1e-3, 0.999)),
        "RAdamWarmup": train_step(tfwarmup.RAdamWarmup(1e-3, 0.999)),
        "CosineDecay": train_step(decay),
        "UntunedLinearWarmup of CosineDecay": train_step(tfwarmup.UntunedLinearWarmup(decay, 0.999)),
    }
    interleaved(contenders, 2)
    times = interleaved(contenders, ROUNDS)
    print(f"One train step of 784-200-100-50-10 at batch {BATCH}")
    print_medians(times)
    rows = [(name, "constant rate") for name in list(contenders)[1:4]]
    rows.append(("UntunedLinearWarmup of CosineDecay", "CosineDecay"))
    print_goals((f"{name} / {rival}", ratio(times, name, rival), 1.02) for name, rival in rows)


if __name__ == "__main__":
    main()
