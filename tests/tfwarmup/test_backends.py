"""TensorFlow equals JAX equals torch, each in a process of its own."""

import json
import os
import subprocess
import sys

import pytest

from tests.tfwarmup.helpers import drift
from tests.tfwarmup.trajectories import OPTIMIZERS, trajectories


@pytest.fixture(scope="module")
def here():
    return trajectories()


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_other_backends_compute_the_same_numbers(backend, here):
    there = json.loads(
        subprocess.run(
            [sys.executable, "-m", "tests.tfwarmup.trajectories"],
            env={**os.environ, "KERAS_BACKEND": backend},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )
    for name in OPTIMIZERS:
        assert drift(there[name], here[name]) < 16
    assert drift(there["adam"], here["radam"]) > 1000
