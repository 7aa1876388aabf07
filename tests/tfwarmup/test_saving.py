"""A model saved on one backend, in the middle of a warmup, goes on on each other one."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.tfwarmup import handover

OTHERS = ("jax", "torch")


def on(backend, *arguments):
    command = [sys.executable, "-m", "tests.tfwarmup.handover", *map(str, arguments)]
    environment = {**os.environ, "KERAS_BACKEND": backend}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=300).stdout


@pytest.mark.slow
@pytest.mark.once
def test_a_run_goes_on_on_every_other_backend(tmp_path):
    paths = {backend: tmp_path / backend for backend in ("tensorflow", *OTHERS)}
    handover.save(paths["tensorflow"])
    for backend in OTHERS:
        on(backend, "save", paths[backend])
    ends = {"tensorflow": [handover.go_on(path) for path in paths.values()]}
    ends |= {backend: json.loads(on(backend, "continue", *paths.values())) for backend in OTHERS}
    expected = ends["tensorflow"][0]
    for backend, runs in ends.items():
        for saved_on, run in zip(paths, runs, strict=True):
            for name, values in run.items():
                message = f"{name}, saved on {saved_on}, continued on {backend}"
                np.testing.assert_allclose(values, expected[name], rtol=0, atol=2e-6, err_msg=message)
    assert np.abs(np.subtract(expected["radam"], expected["inside"])).max() > 1e-3
