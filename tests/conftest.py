"""Settings that must be made before any test: a quiet TensorFlow with two logical CPU devices."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import pytest

BACKEND = keras.backend.backend()

if BACKEND == "tensorflow":
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)


def pytest_collection_modifyitems(config, items):
    """What is marked `once` does not depend on the backend: TensorFlow alone runs it."""
    once = [item for item in items if BACKEND != "tensorflow" and item.get_closest_marker("once")]
    if once:
        config.hook.pytest_deselected(items=once)
        items[:] = [item for item in items if item not in once]


@pytest.fixture(autouse=True)
def _same_seed():
    """Keeps the random state of one test from reaching the next."""
    keras.utils.set_random_seed(0)


@pytest.fixture(autouse=True)
def _no_fork(monkeypatch):
    """A fork of this process would inherit locks of TensorFlow, JAX and gRPC without the threads that hold them."""

    def refuse():
        raise AssertionError("The process of the tests must not fork. Start a program instead.")

    monkeypatch.setattr(os, "fork", refuse)
