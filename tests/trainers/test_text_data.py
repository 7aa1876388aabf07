"""Texts are cut as a function of the step, count a token of validation once, and say what is wrong with their files."""

import contextlib
import gzip
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tensorflow_datasets as tfds

from tests.trainers.batches import take
from trainers.engine.data import Feed
from trainers.engine.flags import make_config
from trainers.system.errors import ConfigError, DataError
from trainers.tasks import cache
from trainers.tasks.files import read_lines
from trainers.tasks.language import data as text_data
from trainers.tasks.language.config import LanguageConfig, TextFlags
from trainers.tasks.language.data import load_text, split_words
from trainers.tasks.language.sources import IGNORED, TrainingBlocks, Windows
from trainers.tasks.language.vocabulary import END, UNKNOWN, Vocabulary, number_text
from trainers.tasks.language.wikitext import ARCHIVE, URL, Wikitext103
from trainers.tasks.tfds_sets import read_texts

REAL = Path(__file__).parents[3] / "shared/data"
TRAIN = " \n = A = \n \n the cat saw the <unk> \n the dog , the cat \n"
VALID = " \n the cat saw a bird \n"
SPLITS = ("train", "valid", "test")


def text_of(tokens):
    """Numbers from 1 on, after the one that stands before the first."""
    return np.arange(tokens + 1, dtype=np.int32)


def write_wikitext(folder, train=TRAIN, valid=VALID, test=None, suffix=".tokens"):
    folder.mkdir(parents=True, exist_ok=True)
    for split, text in (("train", train), ("valid", valid), ("test", test)):
        if text is not None:
            (folder / f"wiki.{split}{suffix}").write_text(text)
    return folder


def write_texts(folder, **texts):
    """Text files by their names without the ending."""
    for name, text in texts.items():
        path = folder / f"{name}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def load(dataset, data_dir=None, context=2, eval_context=0, download=False, vocabulary_size=None):
    flags = TextFlags(dataset, data_dir and str(data_dir), download, vocabulary_size, context, eval_context)
    return load_text(flags)


def error(*arguments, **options):
    with pytest.raises(DataError) as caught:
        load(*arguments, **options)
    return str(caught.value)


# Blocks and windows


def test_training_blocks_tile_the_text_and_targets_follow_their_tokens():
    source = TrainingBlocks(text_of(23), 5)
    assert source.size == 4
    [(tokens, targets, same, weights)] = take(source.evaluation(Feed(4)))
    np.testing.assert_array_equal(tokens, np.arange(20).reshape(4, 5))
    np.testing.assert_array_equal(targets, tokens + 1)
    np.testing.assert_array_equal(same, targets)
    np.testing.assert_array_equal(weights, [5] * 4)
    assert (tokens.dtype, targets.dtype, weights.dtype) == (np.int32, np.int32, np.float32)


@pytest.mark.parametrize(("context", "eval_context"), [(1, 0), (4, 0), (4, 3), (7, 2), (16, 8), (20, 19)])
def test_every_token_of_validation_counts_once_with_its_context(context, eval_context):
    for tokens in (context, context + 1, 44):
        source = Windows(text_of(tokens), context, eval_context)
        batches = take(source.evaluation(Feed(5)))
        inputs, targets, _, weights = (np.concatenate(part)[: source.size] for part in zip(*batches, strict=True))
        counted = targets != IGNORED
        np.testing.assert_array_equal(np.sort(targets[counted]), np.arange(1, tokens + 1))
        np.testing.assert_array_equal(targets[counted], inputs[counted] + 1)
        np.testing.assert_array_equal(weights, counted.sum(axis=1))
        assert counted[0].all()
        assert (weights > 0).all()
        # Uncounted targets come first, and there are as many as were asked for or, in the last window, more.
        ignored = context - counted.sum(axis=1)
        np.testing.assert_array_equal(counted, np.arange(context) >= ignored[:, None])
        assert (ignored[1:-1] == eval_context).all()
        assert (ignored[1:] >= eval_context).all()
        assert inputs[-1, -1] == tokens - 1


# Words


def test_words_are_in_order_of_frequency_then_of_appearance():
    text, vocabulary = number_text([["c", "b", "a", "b"], [], ["c", "d"]])
    assert vocabulary.words == (END, "c", "b", "a", "d", UNKNOWN)
    assert vocabulary.decode(text) == [END, "c", "b", "a", "b", END, END, "c", "d", END]
    assert text.dtype == np.int32
    np.testing.assert_array_equal(vocabulary.number_lines([["b", "new"]]), [0, 2, 5, 0])
    np.testing.assert_array_equal(vocabulary.encode(["b", "new", END]), [2, vocabulary.unknown, vocabulary.end])


def test_rare_words_are_unknown_and_count_as_such():
    lines = [["a"] * 5 + ["b"] * 4 + ["c"] * 3 + ["d", "e", UNKNOWN]]
    assert number_text(lines)[1].words == ("a", "b", "c", UNKNOWN, END, "d", "e")
    text, vocabulary = number_text(lines, min_count=4)
    assert vocabulary.words == (UNKNOWN, "a", "b", END)
    assert Counter(vocabulary.decode(text[1:])) == {UNKNOWN: 6, "a": 5, "b": 4, END: 1}
    assert number_text(lines, size=3)[1].words == (UNKNOWN, "a", END)
    assert number_text(lines, size=100)[1].size == 7


def test_long_texts_are_numbered_in_parts(monkeypatch):
    lines = [["b", "a", "b"], ["c"]] * 10
    text, vocabulary = number_text(lines, size=4)
    monkeypatch.setattr("trainers.tasks.language.vocabulary.CHUNK", 7)
    again, other = number_text(lines, size=4)
    np.testing.assert_array_equal(again, text)
    assert other.words == vocabulary.words == (END, "b", UNKNOWN, "a")


def test_a_vocabulary_is_saved_whole_and_another_one_is_refused(tmp_path):
    vocabulary = Vocabulary(["the", END, "naïve", UNKNOWN, "戦場"])
    vocabulary.save(tmp_path / "words")
    assert (tmp_path / "words").read_bytes() == "the\n<eos>\nnaïve\n<unk>\n戦場\n".encode()
    assert Vocabulary.load(tmp_path / "words").words == vocabulary.words
    vocabulary.check_saved(tmp_path / "words")
    for words in (["the", END, "naive", UNKNOWN, "戦場"], ["the", END, "naïve", UNKNOWN, "戦場", "an"]):
        with pytest.raises(DataError, match=f"5 words in .*words. Received: another one of {len(words)} words"):
            Vocabulary(words).check_saved(tmp_path / "words")


@pytest.mark.parametrize("content", [b"the\n<eos>\n", b"a\na\n<eos>\n<unk>\n", b"\xff\n<eos>\n<unk>\n", None])
def test_what_is_no_vocabulary_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "words").write_bytes(content)
    with pytest.raises(DataError, match="must be a text with one word per line. Received: .*words"):
        Vocabulary.load(tmp_path / "words")


def test_own_text_is_split_into_words_and_marks():
    assert split_words('  It\'s "so" -- see **print()**... l\u2019été <unk> x_1\t=== \n') == [
        *("It's", '"', "so", '"', "--", "see", "**", "print", "(", ")", "**", "..."),
        *("l\u2019été", "<unk>", "x_1", "==="),
    ]


# Texts


def test_wikitext_is_words_between_spaces_and_an_end_for_every_line(tmp_path):
    data = load("wikitext", write_wikitext(tmp_path))
    assert data.vocabulary.words == (END, "the", "=", "cat", UNKNOWN, "A", "saw", "dog", ",")
    words = f"{END} = A = {END} {END} the cat saw the <unk> {END} the dog , the cat {END}"
    assert data.vocabulary.decode(data.train.tokens) == words.split()
    assert data.vocabulary.decode(data.validation.tokens) == f"{END} the cat saw <unk> <unk> {END}".split()
    assert data.train.text[:3].tolist() == [data.vocabulary.end, data.vocabulary.end, data.vocabulary.words.index("=")]
    assert (data.train.size, data.validation.size) == (9, 4)


@pytest.mark.parametrize("name", ["wiki.{}.tokens", "wiki.{}.tokens.gz", "wiki.{}.raw", "{}.txt", "{}.txt.gz"])
def test_wikitext_is_found_by_each_of_its_names(tmp_path, name):
    for split, text in (("train", TRAIN), ("valid", VALID)):
        content = text.encode()
        (tmp_path / name.format(split)).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    data = load("wikitext", tmp_path)
    assert (len(data.train.tokens), len(data.validation.tokens)) == (18, 7)
    assert data.vocabulary.size == (3 if ".raw" in name else 9)  # raw text has no <unk>: here its rare words become it


@pytest.mark.skipif(not (REAL / "wikitext-2").is_dir(), reason="no WikiText-2 here")
def test_wikitext_2_has_the_published_number_of_tokens_and_types():
    data = load("wikitext", REAL / "wikitext-2", context=512, eval_context=256)
    assert (len(data.train.tokens), len(data.validation.tokens), data.vocabulary.size) == (2_088_628, 217_646, 33_278)
    assert data.vocabulary.words[:5] == ("the", ",", ".", "of", UNKNOWN)
    assert data.validation.size == 1 + -(-(217_646 - 512) // 256)
    counts = np.bincount(data.train.tokens)
    assert (counts[:-1] >= counts[1:]).all()
    assert counts.min() == 3


@pytest.mark.skipif(not (REAL / "wikitext-103").is_dir(), reason="no WikiText-103 here")
@pytest.mark.parametrize(("split", "tokens"), [("valid", 217_646), ("test", 245_569)])
def test_wikitext_103_has_the_published_number_of_tokens(tmp_path, split, tokens):
    write_wikitext(tmp_path, valid=None)
    (tmp_path / "wiki.valid.tokens.gz").write_bytes((REAL / "wikitext-103" / f"wiki.{split}.tokens.gz").read_bytes())
    assert len(load("wikitext", tmp_path).validation.tokens) == tokens


def test_pydoc_is_the_reference_and_shares_no_paragraph_between_the_splits():
    data = load("pydoc", context=64, eval_context=32)
    train, validation = len(data.train.tokens), len(data.validation.tokens)
    assert 50_000 < train < 1_000_000  # it grows with every Python; 77,452 in 3.11.7
    assert 0.05 < validation / train < 0.2
    assert {"the", "statement", "Python", "(", UNKNOWN} <= {*data.vocabulary.words}
    counts = np.bincount(data.train.tokens, minlength=data.vocabulary.size)
    assert counts.min() >= 3
    assert np.mean(data.train.tokens == data.vocabulary.unknown) < 0.05
    paragraphs = [
        {
            words
            for words in re.split(rf"(?: ?{END}){{2,}} ?", " ".join(data.vocabulary.decode(tokens)))
            if len(words) > 200
        }
        for tokens in (data.train.tokens, data.validation.tokens)
    ]
    assert len(paragraphs[1]) > 20
    assert not paragraphs[0] & paragraphs[1]


def test_own_text_has_rare_words_that_become_unknown(tmp_path):
    write_texts(tmp_path, train="Yes, yes: no!\n" * 3 + "rare\n", valid="No, yes rare\n")
    data = load("text", tmp_path)
    assert data.vocabulary.words == (END, "Yes", ",", "yes", ":", "no", "!", UNKNOWN)
    assert data.vocabulary.decode(data.validation.tokens) == [UNKNOWN, ",", "yes", UNKNOWN, END]
    assert load("text", tmp_path, vocabulary_size=4).vocabulary.words == (UNKNOWN, END, "Yes", ",")


@pytest.mark.parametrize(
    ("train", "validation"),
    [("train", "valid"), ("train_1", "validation"), ("train/book", "val/book"), ("Train", "Test")],
)
def test_own_text_is_split_by_name(tmp_path, train, validation):
    write_texts(tmp_path, **{train: "a\n" * 9, validation: "a a\n" * 3, "README": "left out\n", ".val": "\0"})
    data = load("text", tmp_path)
    assert (len(data.train.tokens), len(data.validation.tokens), data.test) == (18, 9, None)
    chosen_on_test = ("the best model is chosen on the test files: there are no others for validation",)
    assert data.notes == (chosen_on_test if validation == "Test" else ())


def test_validation_files_go_before_test_files_and_names_decide_the_order(tmp_path):
    write_texts(tmp_path, train_b="b\n" * 3, train_a="a\n" * 3, test="a\n" * 9, val="a b\n")
    data = load("text", tmp_path)
    assert data.vocabulary.decode(data.train.tokens[::2]) == ["a"] * 3 + ["b"] * 3
    assert (len(data.validation.tokens), len(data.test.tokens), data.notes) == (3, 18, ())


def test_any_file_that_is_text_counts_and_others_are_named(tmp_path):
    (tmp_path / "one.md").write_text("abc\n" * 20)
    (tmp_path / "two").write_text("déjà\n" * 20, encoding="utf-8")
    with gzip.open(tmp_path / "three.gz", "wt") as file:
        file.write("xyz\n" * 10)
    (tmp_path / "long").write_text("é" * 2**16 + "\n", encoding="utf-8")  # cut off in the middle of a letter
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (tmp_path / "latin").write_bytes(b"d\xe9j\xe0\n")
    (tmp_path / "blank.md").write_text(" \n")
    (tmp_path / ".hidden").write_text("hidden\n" * 20)
    os.mkfifo(tmp_path / "fifo")
    data = load("text", tmp_path)
    assert {"abc", "déjà", "xyz"} <= {*data.vocabulary.words}
    assert "hidden" not in data.vocabulary.words
    assert len(data.train.tokens) == 2 * (18 + 18 + 9 + 1)
    assert data.notes == ("left out 3 files that are not text: blank.md, latin, picture.png",)


def test_a_line_of_two_million_words_is_no_matter(tmp_path):
    write_texts(tmp_path, train="a b\n" * 100, val="a " * 2_000_000 + "\n")
    assert len(load("text", tmp_path, context=64).validation.tokens) == 2_000_001


@pytest.mark.parametrize("dataset", ["text", "wikitext", "wikitext103"])
def test_a_second_start_reads_no_text_again_unless_it_has_changed(tmp_path, dataset, monkeypatch):
    monkeypatch.setattr(cache, "WORTH_SECONDS", 0.0)
    names = ("train.txt", "valid.txt", "test.txt") if dataset == "text" else [f"wiki.{s}.tokens" for s in SPLITS]
    for name in names:
        (tmp_path / name).write_text("the cat saw the dog\n" * 5 + name + "\n")
    first = load(dataset, tmp_path)
    made = []
    number = text_data.number_text
    monkeypatch.setattr(text_data, "number_text", lambda *a: made.append(a) or number(*a))
    again = load(dataset, tmp_path)
    assert made == []
    assert again.vocabulary.words == first.vocabulary.words
    for part in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(again, part).text, getattr(first, part).text)
    load(dataset, tmp_path, vocabulary_size=3)
    load(dataset, tmp_path)
    assert len(made) == 1  # for another vocabulary, which leaves the first one there
    if dataset != "wikitext103":  # whose own files these no longer are
        (tmp_path / names[1]).write_text("the cat saw the dog and more\n" * 5)
        assert len(load(dataset, tmp_path).validation.tokens) == 40
        assert len(made) == 2


def test_the_last_tenth_of_every_file_is_held_out_where_names_do_not_split(tmp_path):
    (tmp_path / "one.txt").write_text("".join(f"{'abc' if i < 18 else 'end'}\n" for i in range(20)))
    with gzip.open(tmp_path / "two.txt.gz", "wt") as file:
        file.write("abc\n" * 27 + "end\n" * 3)
    folder, file = load("text", tmp_path), load("text", tmp_path / "one.txt")
    assert (len(folder.train.tokens), len(folder.validation.tokens)) == (90, 10)
    assert folder.vocabulary.words == (END, "abc", UNKNOWN)
    assert (len(file.train.tokens), len(file.validation.tokens)) == (36, 4)
    assert folder.vocabulary.decode(folder.validation.tokens[::2]) == [UNKNOWN] * 5


def test_a_byte_order_mark_and_windows_line_ends_are_no_words(tmp_path):
    (tmp_path / "text.txt").write_bytes(b"\xef\xbb\xbf" + b"abc abc\r\n" * 20)
    data = load("text", tmp_path / "text.txt")
    assert data.vocabulary.words == ("abc", END, UNKNOWN)
    assert len(data.train.tokens) == 54


# Bad input


def test_a_pipe_and_a_device_are_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    for path in (tmp_path / "pipe.txt", Path("/dev/zero")):
        with pytest.raises(DataError, match=rf"A text must be a regular file\. Received: {path}"):
            next(read_lines(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must not be empty. Received: {path}"),
        (b" \n\n", "must not be empty. Received: {path}"),
        (b"ok\nPK\x03\x04\0\0", "must not be a binary file. Received: {path}, a zero byte in line 2"),
        (b"ok\nd\xe9j\xe0\n", "must be UTF-8. Received: {path}, line 2, byte 0xe9 at position 2"),
        (None, "must be readable and complete. Received: {path} ("),
    ],
)
@pytest.mark.parametrize(
    ("dataset", "name", "split"),
    [("text", "{}.txt", "train"), ("wikitext", "wiki.{}.tokens", "train"), ("wikitext103", "wiki.{}.tokens", "valid")],
)
def test_bad_files_are_named_and_nothing_is_written(tmp_path, content, message, dataset, name, split):
    for each in ("train", "valid"):
        (tmp_path / name.format(each)).write_text("good text\n" * 5)
    path = tmp_path / name.format(split)
    if content is None:
        path.unlink()
        path = path.with_name(f"{path.name}.gz")
        path.write_bytes(gzip.compress(b"good text\n" * 99)[:-9])
    else:
        path.write_bytes(content)
    before = sorted(tmp_path.iterdir())
    assert message.format(path=path) in error(dataset, tmp_path)
    assert sorted(tmp_path.iterdir()) == before


def test_a_context_longer_than_a_text_is_refused(tmp_path):
    write_wikitext(tmp_path)
    assert load("wikitext", tmp_path, context=7).validation.size == 1
    assert error("wikitext", tmp_path, context=8) == (
        "`context` must be at most the number of tokens of the validation text, 7. Received: context=8"
    )
    assert "of the training text, 18. Received: context=19" in error("wikitext", tmp_path, context=19)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context": 0}, "--context must be an integer >= 1. Received: 0"),
        ({"context": 4, "eval_context": 4}, r"--eval_context must be in \[0, --context\). Received: 4"),
        ({"eval_context": -1}, "--eval_context must be an integer >= 0. Received: -1"),
        ({"vocabulary_size": 2}, "--vocabulary_size must be an integer >= 3. Received: 2"),
        ({"dataset": "ptb"}, "--dataset must be one of pydoc, text, wikitext, wikitext103. Received: 'ptb'"),
    ],
)
def test_flags_are_checked(options, message):
    with pytest.raises(ConfigError, match=message):
        make_config(LanguageConfig, {"output_dir": "runs/x", **options})


def test_missing_folders_and_files_are_named(tmp_path):
    for dataset in ("text", "wikitext"):
        assert f"dataset='{dataset}' needs `data_dir`" in error(dataset)
        assert f"must be a folder that can be read. Received: {tmp_path / 'no'}" in error(dataset, tmp_path / "no")
    assert f"at least one file of UTF-8 text. Received: {tmp_path}" in error("text", tmp_path)
    assert f"Received: {tmp_path} without train and valid" in error("wikitext", tmp_path)
    write_wikitext(tmp_path, train=None)
    assert f"Received: {tmp_path} without train" in error("wikitext", tmp_path)
    (tmp_path / "train.txt").write_text("text\n")
    assert f"must hold val* or test* too. Received: {tmp_path} with ['train.txt', 'wiki.valid.tokens']" in error(
        "text", tmp_path
    )


# WikiText-103


def test_the_builder_keeps_lines_and_order_over_files(tmp_path):
    lines = [f" {number} \n" if number % 3 else " \n" for number in range(200)]
    folder = write_wikitext(tmp_path / "from", "".join(lines), VALID * 2, "\n\n\nlast line without an end")
    builder = Wikitext103(data_dir=tmp_path / "to", folder=folder)
    builder.download_and_prepare(download_config=tfds.download.DownloadConfig(num_shards=4))
    assert len(list((tmp_path / "to" / "wikitext103" / "1.0.0").glob("*train.tfrecord*"))) == 4
    assert [f"{line}\n" for (line,) in read_texts(builder, "train", ["text"])] == lines
    assert [*read_texts(builder, "test", ["text"])] == [("",), ("",), ("",), ("last line without an end",)]
    examples = tfds.load("wikitext103", split="validation", data_dir=tmp_path / "to").as_numpy_iterator()
    assert [example["text"].decode() for example in examples] == VALID.split("\n")[:-1] * 2


def test_wikitext103_is_prepared_from_its_files_and_then_needs_them_no_more(tmp_path):
    files, set_ = load("wikitext", write_wikitext(tmp_path)), load("wikitext103", tmp_path)
    for path in tmp_path.glob("wiki.*"):
        path.unlink()
    again = load("wikitext103", tmp_path)
    for data in (set_, again):
        assert data.vocabulary.words == files.vocabulary.words
        np.testing.assert_array_equal(data.train.text, files.train.text)
        np.testing.assert_array_equal(data.validation.text, files.validation.text)


def test_without_files_and_without_a_network_nothing_is_written(tmp_path, no_network):
    write_wikitext(tmp_path, train=None)  # as the folder of a validation split alone
    assert f"must be on disk: pass --download, or unpack {URL}" in error("wikitext103", tmp_path)
    said = error("wikitext103", tmp_path, download=True)
    assert f"needs a network. Try again, or unpack {URL}" in said
    assert f"to {tmp_path}/wikitext103/1.0.0. Received: no answer from wikitext.smerity.com" in said
    assert [path.name for path in tmp_path.iterdir()] == ["wiki.valid.tokens"]


@pytest.fixture
def downloads(monkeypatch):
    """Makes another function of the download, which has a network."""
    monkeypatch.setattr("urllib.request.urlopen", lambda request, timeout: contextlib.nullcontext())
    return lambda function: monkeypatch.setattr(tfds.download.DownloadManager, "download_and_extract", function)


def test_the_archive_is_unpacked_and_read(tmp_path, downloads):
    """Up to the download itself, which hands the builder a folder as the archive has it."""

    def unpacked(manager, url):
        assert manager._url_infos[url] == ARCHIVE
        write_wikitext(tmp_path / "unpacked" / "wikitext-103")
        return tmp_path / "unpacked"

    downloads(unpacked)
    assert len(load("wikitext103", tmp_path, download=True).train.tokens) == 18


def test_a_failed_preparation_says_what_to_do(tmp_path, downloads):
    def broken(manager, url):
        raise tfds.download.DownloadError("HTTP code: 403\nand more")

    downloads(broken)
    message = error("wikitext103", tmp_path, download=True)
    assert "wikitext103 must be prepared once. Try again, or unpack" in message
    assert message.endswith("Received: DownloadError: HTTP code: 403")
