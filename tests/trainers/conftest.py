"""The trainers run on TensorFlow; the other backends have nothing to collect here."""

import shutil

import keras
import pytest

if keras.backend.backend() != "tensorflow":
    collect_ignore_glob = ["*.py"]


@pytest.fixture(autouse=True)
def _float32_again():
    yield
    keras.config.set_dtype_policy("float32")


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The folder of a finished run of the tiny task, for reading only."""
    from tests.trainers.helpers import run_tiny

    folder = tmp_path_factory.mktemp("whole")
    run_tiny(folder)
    return folder


@pytest.fixture
def trained(whole, tmp_path):
    """A copy of it."""
    return shutil.copytree(whole, tmp_path / "trained")


@pytest.fixture(scope="session")
def longer(tmp_path_factory):
    """The folder of a run that is twice as long, for reading only."""
    from tests.trainers.helpers import run_tiny

    folder = tmp_path_factory.mktemp("longer")
    run_tiny(folder, epochs=8)
    return folder
