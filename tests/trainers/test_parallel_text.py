"""Pairs keep their order and their partner wherever they come from, and what is wrong with a text is said."""

import gzip

import pytest
import tensorflow_datasets as tfds

from trainers.system.errors import DataError
from trainers.tasks.translation.parallel_text import (
    ParallelSplits,
    folder_splits,
    prepared_builder,
    read_pairs,
    tfds_splits,
)

LANGUAGES = ("en", "de")
PAIRS = [("A dog.", "Ein Hund."), ("Two cats!", "Zwei Katzen!"), ("Snow", "Schnee"), ("a  b", "c")]


class PhraseBook(tfds.core.GeneratorBasedBuilder):
    """Pairs, one of them blank, in three splits."""

    VERSION = tfds.core.Version("1.0.0")
    SPLITS = ("train", "validation", "test")

    def _info(self):
        features = tfds.features.Translation(languages=LANGUAGES)
        return self.dataset_info_from_configs(features=features, supervised_keys=LANGUAGES, disable_shuffling=True)

    def _split_generators(self, dl_manager):
        return {split: self._generate_examples(split) for split in self.SPLITS}

    def _generate_examples(self, split):
        for number, pair in enumerate([*PAIRS, (" ", "Nichts"), (split, "Teil")]):
            yield number, dict(zip(LANGUAGES, pair, strict=True))


class PhraseTest(PhraseBook):
    """A test split alone."""

    VERSION = tfds.core.Version("1.0.0")
    SPLITS = ("test",)


class Letters(tfds.core.GeneratorBasedBuilder):
    """One text only."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        return self.dataset_info_from_configs(features=tfds.features.FeaturesDict({"en": tfds.features.Text()}))

    def _split_generators(self, dl_manager):
        return {"train": []}

    def _generate_examples(self):
        yield from ()


def write(path, lines, end="\n"):
    content = "".join(f"{line}{end}" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_folder(folder, *splits, suffix=".txt"):
    for split in splits:
        for number, language in enumerate(LANGUAGES):
            write(folder / f"{language}.{split}{suffix}", [*(pair[number] for pair in PAIRS), split])
    return folder


def error(function, *arguments):
    with pytest.raises(DataError) as caught:
        function(*arguments)
    return str(caught.value)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    root = tmp_path_factory.mktemp("tfds")
    PhraseBook(data_dir=root).download_and_prepare(download_config=tfds.download.DownloadConfig(num_shards=2))
    return root


# Two files


@pytest.mark.parametrize(("name", "end"), [("{}.txt", "\n"), ("train.{}.gz", "\n"), ("{}", "\r\n")])
def test_lines_of_two_files_are_pairs(tmp_path, name, end):
    source, target = (
        write(tmp_path / name.format(language), [pair[number] for pair in PAIRS], end)
        for number, language in enumerate(LANGUAGES)
    )
    assert read_pairs((source, target)) == PAIRS


def test_a_pair_with_a_blank_side_is_left_out_and_the_others_keep_their_partner(tmp_path):
    source = write(tmp_path / "source", ["one", "", "three", " \t", "five"])
    target = write(tmp_path / "target", ["eins", "zwei", " ", "", "fünf"])
    assert read_pairs((source, target)) == [("one", "eins"), ("five", "fünf")]


def test_only_a_line_feed_ends_a_line(tmp_path):
    source = write(tmp_path / "source", ["a\u2028b\x0bc\x85d", "e"])
    target = write(tmp_path / "target", ["x", "y"])
    assert read_pairs((source, target)) == [("a\u2028b\x0bc\x85d", "x"), ("e", "y")]


def test_a_text_of_which_no_pair_is_full_is_refused(tmp_path):
    source, target = write(tmp_path / "source", ["a", ""]), write(tmp_path / "target", ["", "b"])
    assert f"that are not blank. Received: none in {source} and {target}" in error(read_pairs, (source, target))


# Folders


def test_a_folder_is_read_as_tfds_reads_it(tmp_path):
    splits = folder_splits(write_folder(tmp_path, "train", "test"), LANGUAGES)
    builder = tfds.TranslateFolder(str(tmp_path))
    for split in ("train", "test"):
        examples = builder.as_dataset(split=split).as_numpy_iterator()
        pairs = [tuple(example[language].decode() for language in LANGUAGES) for example in examples]
        assert getattr(splits, split) == pairs == [*PAIRS, (split, split)]
    assert splits.validation is None
    assert folder_splits(tmp_path, ("de", "en")).train == [pair[::-1] for pair in splits.train]


@pytest.mark.parametrize("validation", ["validation", "valid", "val", "dev"])
def test_validation_has_many_names_and_other_files_do_not_matter(tmp_path, validation):
    root = write_folder(tmp_path, "train", validation, suffix=".txt.gz")
    (tmp_path / "README.md").write_text("and so on")
    splits = folder_splits(root, LANGUAGES)
    assert splits.validation[-1] == (validation, validation)
    assert splits.test is None


def test_what_a_folder_lacks_is_named(tmp_path):
    assert error(folder_splits, tmp_path, LANGUAGES) == (
        f"`data_dir` must hold en.train.txt and de.train.txt, or such files named .txt.gz. Received: {tmp_path} with []"
    )
    write_folder(tmp_path, "train", "val")
    (tmp_path / "de.val.txt").unlink()
    assert error(folder_splits, tmp_path, LANGUAGES) == (
        f"A split must be there in both languages. Received: {tmp_path}/en.val.txt without de.val.txt"
    )
    assert "and fr.train.txt" not in error(folder_splits, tmp_path, ("en", "fr"))
    assert "without fr.train.txt" in error(folder_splits, tmp_path, ("en", "fr"))


# TFDS


def test_a_tfds_set_gives_full_pairs_in_order(book):
    builder = prepared_builder("phrase_book", str(book), LANGUAGES, False)
    assert tfds_splits(builder, LANGUAGES) == ParallelSplits(
        *([*PAIRS, (split, "Teil")] for split in PhraseBook.SPLITS)
    )
    assert tfds_splits(builder, ("de", "en")).test[0] == PAIRS[0][::-1]


@pytest.mark.parametrize(
    ("name", "languages", "message"),
    [
        ("wmt16_translate/de-en", LANGUAGES, "wmt16_translate/de-en must be on disk"),
        ("wmt16_translate/xx-en", LANGUAGES, "must be numbers, text, folder, or the name of a TFDS translation set"),
        ("wmt16_translate/de-en", ("en", "fr"), "a text in each of the languages en and fr. Received: wmt16_translate"),
        ("letters", LANGUAGES, "must have a text in each of the languages en and de. Received: letters"),
    ],
)
def test_a_tfds_set_must_be_there_in_both_languages(tmp_path, name, languages, message):
    assert message in error(prepared_builder, name, str(tmp_path), languages, False)


def test_a_tfds_set_must_have_a_split_for_training(tmp_path):
    builder = prepared_builder("phrase_test", str(tmp_path), LANGUAGES, True)
    assert "with ['test']" in error(tfds_splits, builder, LANGUAGES)
