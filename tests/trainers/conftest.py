"""The trainers run on TensorFlow; the other backends have nothing to collect here."""

import functools
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
def finished(tmp_path_factory):
    """Returns the folder of a finished run of the tiny task with these options, for reading only."""
    from tests.trainers.helpers import run_tiny

    @functools.cache
    def folder(**options):
        run_tiny(place := tmp_path_factory.mktemp("finished"), **options)
        return place

    return folder


@pytest.fixture(scope="session")
def whole(finished):
    return finished()


@pytest.fixture(scope="session")
def longer(finished):
    return finished(epochs=8)


@pytest.fixture
def trained(whole, tmp_path):
    """A copy of a finished run."""
    return shutil.copytree(whole, tmp_path / "trained")
