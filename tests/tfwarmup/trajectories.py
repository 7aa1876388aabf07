"""Prints what this backend makes of one optimizer, as JSON: run by `test_backends` with each `KERAS_BACKEND`."""

import json
import sys

import tfwarmup
from tests.tfwarmup.helpers import random_gradients, trajectory

OPTIMIZERS = {
    "radam": lambda: tfwarmup.RAdam(1e-3, weight_decay=0.01),
    "adam": lambda: tfwarmup.Adam(1e-3, warmup="untuned_exponential"),
    "dynamic": lambda: tfwarmup.Adam(1e-3, beta_2=0.98, warmup="dynamic"),
    "gi_adam": lambda: tfwarmup.Adam(1e-3, beta_2=0.98, gradient_init=True),
    "stable_adam": lambda: tfwarmup.Adam(1e-3, beta_2=0.98, clip_update_rms=True),
    "exact_betas": lambda: tfwarmup.RAdam(1e-3, beta_2=0.99999),
}


def trajectories():
    return {name: trajectory(make(), random_gradients(100)).tolist() for name, make in OPTIMIZERS.items()}


if __name__ == "__main__":
    json.dump(trajectories(), sys.stdout)
