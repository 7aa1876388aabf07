"""A set of TensorFlow Datasets is prepared, read whole, or refused with what to do, whatever its task is."""

import pytest
import tensorflow_datasets as tfds

from trainers.system.errors import DataError
from trainers.tasks.tfds_sets import make_builder, read_texts, require_prepared

LINES = ["one", " two ", "", "vier"]


class FourLines(tfds.core.GeneratorBasedBuilder):
    """One text per example."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        features = tfds.features.FeaturesDict({"text": tfds.features.Text()})
        return self.dataset_info_from_configs(features=features, disable_shuffling=True)

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples()}

    def _generate_examples(self):
        yield from ((number, {"text": line}) for number, line in enumerate(LINES))


def error(function, *arguments, **options):
    with pytest.raises(DataError) as caught:
        function(*arguments, **options)
    return str(caught.value)


@pytest.mark.parametrize("name", ["no_such_set", "emnist/no_such_config", "not a name"])
def test_unknown_names_say_which_names_there_are(tmp_path, name):
    said = error(make_builder, name, str(tmp_path), "digits or one of these")
    assert said.startswith(f"`dataset` must be digits or one of these. Received: dataset={name!r} (")


def test_a_set_is_prepared_only_when_downloads_are_allowed(tmp_path):
    builder = make_builder("four_lines", str(tmp_path), "")
    assert error(require_prepared, builder, "four_lines", False) == (
        "The TFDS set four_lines must be on disk: pass --download, or run `tfds build four_lines "
        f"--data_dir={tmp_path}`, or copy the prepared set to {tmp_path}/four_lines/1.0.0. Received: nothing there"
    )
    for download in (True, False):
        require_prepared(builder, "four_lines", download)
    assert [line for (line,) in read_texts(builder, "train", ["text"])] == LINES


def test_a_set_says_how_to_get_it_by_hand(tmp_path):
    builder = make_builder("imagenet2012", str(tmp_path), "")
    said = error(require_prepared, builder, "imagenet2012", False)
    assert "manual_dir should contain two files: ILSVRC2012_img_train.tar" in said
    said = error(require_prepared, builder, "imagenet2012", False, by_hand="ask a friend")
    assert "pass --download, or ask a friend, or copy the prepared set" in said


def test_without_a_network_a_download_fails_at_once_and_writes_nothing(tmp_path, no_network):
    for name, host in (("emnist/digits", "biometrics.nist.gov"), ("wmt16_translate/de-en", "data.statmt.org")):
        said = error(require_prepared, make_builder(name, str(tmp_path), ""), name, True)
        assert said.startswith(f"Downloading {name} needs a network. ")
        assert f", or copy the prepared set to {tmp_path}" in said
        assert said.endswith(f"Received: no answer from {host}")
    assert not list(tmp_path.iterdir())


def test_archives_to_fetch_by_hand_are_asked_for(tmp_path, no_network):
    builder = make_builder("imagenet2012", str(tmp_path), "")
    asked = f"Put them into {tmp_path}/downloads/manual, "
    assert asked in error(require_prepared, builder, "imagenet2012", True)
    (tmp_path / "downloads/manual").mkdir(parents=True, exist_ok=True)
    (tmp_path / "downloads/manual/another.tar").touch()  # no network is asked where something was fetched by hand
    said = error(require_prepared, builder, "imagenet2012", True)
    assert asked in said
    assert "Received: NotFoundError" in said


def test_files_of_a_set_must_be_there_and_whole(tmp_path):
    builder = FourLines(data_dir=tmp_path)
    builder.download_and_prepare()
    [file] = tmp_path.rglob("*train.tfrecord*")
    content = file.read_bytes()

    def read():
        list(read_texts(builder, "train", ["text"]))

    file.write_bytes(content[:-3])
    assert "The files of a TFDS set must be complete; prepare" in error(read)
    file.write_bytes(b"")
    assert f"split train of {builder.data_dir} must have 4 examples. Received: 0" in error(read)
    file.unlink()
    assert f"Received: no {file}, and 0 more are missing" in error(read)
