"""Trains half of a run and saves it, or goes on from saved halves: run by `test_saving` with each `KERAS_BACKEND`.

python -m tests.tfwarmup.handover save FILE
python -m tests.tfwarmup.handover continue FILE ...    prints the weights at the end of each, as JSON
"""

import json
import sys

import keras
import numpy as np

import tfwarmup
from tests.tfwarmup.helpers import fit, small_model, weights

OPTIMIZERS = {
    "radam": lambda: tfwarmup.RAdam(1e-2, beta_2=0.9, weight_decay=0.01),
    "inside": lambda: tfwarmup.Adam(1e-2, beta_2=0.9, warmup=tfwarmup.warmups.Linear(12, initial=0.1)),
}
if hasattr(keras.optimizers, "Lamb"):
    # Not Keras' Adam: a file saved on torch names Keras' Adam for torch, and loads nowhere else.
    OPTIMIZERS["schedule"] = lambda: tfwarmup.warm_up(keras.optimizers.Lamb(1e-2, beta_2=0.9), "untuned_exponential")


def save(path):
    """One file for each optimizer, each in the middle of its second warmup."""
    for name, make in OPTIMIZERS.items():
        model = small_model(make(), jit_compile=False)
        generator = np.random.default_rng(0)  # backends draw first weights of their own
        model.set_weights([generator.normal(size=weight.shape) for weight in model.get_weights()])
        fit(model, epochs=2)
        tfwarmup.restart_warmup(model)
        fit(model, epochs=2)
        model.save(f"{path}-{name}.keras")


def go_on(path):
    """The weights of each saved model after more training."""
    ends = {}
    for name in OPTIMIZERS:
        model = keras.models.load_model(f"{path}-{name}.keras")
        fit(model, epochs=2)
        ends[name] = weights(model).tolist()
    return ends


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    if command == "save":
        save(*paths)
    else:
        json.dump([go_on(path) for path in paths], sys.stdout)
