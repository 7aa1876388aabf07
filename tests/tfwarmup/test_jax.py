"""What only JAX has: `keras.distribution.DataParallel`, on two logical devices of a process of its own."""

import os
import subprocess
import sys

import pytest

from tests.tfwarmup.helpers import BACKEND

PROGRAM = """
import sys
import jax, keras, numpy as np, tfwarmup
from tests.tfwarmup.helpers import small_data, small_model, weights

if sys.argv[1] == "2":
    keras.distribution.set_distribution(keras.distribution.DataParallel(devices=keras.distribution.list_devices()))
    assert len(jax.devices()) == 2
for make in (
    lambda: tfwarmup.RAdam(1e-2, beta_2=0.9, global_clipnorm=0.1, weight_decay=0.01),
    lambda: tfwarmup.warm_up(keras.optimizers.Adam(1e-2, beta_2=0.9)),
):
    model = small_model(make())
    model.fit(*small_data(), batch_size=16, epochs=3, shuffle=False, verbose=0)
    tfwarmup.restart_warmup(model)
    model.fit(*small_data(), batch_size=16, epochs=1, shuffle=False, verbose=0)
    np.savetxt(sys.stdout, weights(model))
"""


def trained(devices):
    flags = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    command = [sys.executable, "-c", PROGRAM, str(devices)]
    run = subprocess.run(command, env={**os.environ, **flags}, capture_output=True, text=True, timeout=300, check=True)
    return [float(line) for line in run.stdout.splitlines()]


@pytest.mark.skipif(BACKEND != "jax", reason="JAX only")
def test_data_parallel_training_equals_one_device():
    assert trained(2) == pytest.approx(trained(1), abs=2e-6)
