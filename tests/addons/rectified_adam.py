"""Prints what `tfa.optimizers.RectifiedAdam` does with the gradients it reads, as JSON: run in the environment with
tensorflow-addons by `tests/tfwarmup/test_addons.py`, which holds `tfwarmup.RAdam` against it.

Reads from standard input: {"gradients": [[...], ...], "runs": {name: {arguments of RectifiedAdam}}}.
"""

import json
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")

import tensorflow as tf  # noqa: E402
import tensorflow_addons as tfa  # noqa: E402


def trajectory(gradients, arguments):
    # In float64 tensorflow-addons' own rounding is out of the way: in float32 its rho_t loses four digits.
    variable = tf.Variable(np.full(len(gradients[0]), 0.5), dtype=tf.float64)
    optimizer = tfa.optimizers.RectifiedAdam(**arguments)
    values = []
    for gradient in gradients:
        optimizer.apply_gradients([(tf.constant(gradient, tf.float64), variable)])
        values.append(variable.numpy().tolist())
    return values


if __name__ == "__main__":
    question = json.load(sys.stdin)
    answer = {name: trajectory(question["gradients"], arguments) for name, arguments in question["runs"].items()}
    json.dump(answer, sys.stdout)
