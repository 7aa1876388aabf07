"""The trainers run on TensorFlow; the other backends have nothing to collect here."""

import functools
import shutil
import urllib.error

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


@pytest.fixture(scope="session")
def image_root(tmp_path_factory):
    """A folder with one image set of every kind, for reading only."""
    import tensorflow_datasets as tfds

    from tests.trainers import pictures

    root = tmp_path_factory.mktemp("images")
    pictures.write_idx_folder(root / "idx")
    pictures.write_photographs(root / "folder")
    for builder in (pictures.SmallColours, pictures.LargePhotographs):
        builder(data_dir=root).download_and_prepare(download_config=tfds.download.DownloadConfig(num_shards=4))
    return root


@pytest.fixture(scope="session")
def image_sets(image_root):
    """These sets, loaded."""
    from tests.trainers.pictures import SIZE, load

    return {
        "idx": load("folder", image_root / "idx"),
        "folder": load("folder", image_root / "folder", SIZE),
        "in_memory": load("small_colours", image_root),
        "stream": load("large_photographs", image_root, SIZE),
    }


@pytest.fixture
def no_network(monkeypatch):
    def unreachable(request, timeout):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr("urllib.request.urlopen", unreachable)
