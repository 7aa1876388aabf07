"""The trainers run on TensorFlow; the other backends have nothing to collect here."""

import keras
import pytest

if keras.backend.backend() != "tensorflow":
    collect_ignore_glob = ["*.py"]


@pytest.fixture(autouse=True)
def _float32_again():
    yield
    keras.config.set_dtype_policy("float32")
