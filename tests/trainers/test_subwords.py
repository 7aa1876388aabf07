"""Subwords give a sentence back, are the same for the same text, and are those that a run was trained with."""

import itertools
import json
import re

import pytest

from trainers.system.errors import DataError
from trainers.tasks.translation import subwords as module
from trainers.tasks.translation.config import BOS, EOS, PAD, UNK
from trainers.tasks.translation.number_words import number_pairs
from trainers.tasks.translation.subwords import FACTS, MODEL, Subwords, kept_or_trained, text_fingerprint

PAIRS = number_pairs(300, 0, held_out=False)
SIZE = 400


@pytest.fixture(scope="module")
def subwords():
    return Subwords.train(PAIRS, SIZE)


def error(function, *arguments):
    with pytest.raises(DataError) as caught:
        function(*arguments)
    return str(caught.value)


def test_a_sentence_is_few_subwords_and_comes_back(subwords):
    assert subwords.size == SIZE
    for sentences in zip(*PAIRS, strict=True):
        numbers = subwords.encode(sentences)
        assert subwords.decode(numbers) == list(sentences)
        assert sum(map(len, numbers)) < sum(map(len, sentences)) / 2
        assert {type(number) for sentence in numbers for number in sentence} == {int}
        assert not {PAD, BOS, EOS, UNK} & {number for sentence in numbers for number in sentence}


@pytest.mark.parametrize(
    "sentence",
    [
        "Größe ½ … „Zitat“ “quote” ﬁ Å e\u0301 ™",  # what NFKC would change
        "日本語 😀 \x01 a\u200bb",
        "<s> </s> <unk> <pad> <0x41>",
    ],
)
def test_unseen_characters_and_names_of_marks_come_back_unchanged(subwords, sentence):
    assert subwords.decode(subwords.encode([sentence])) == [sentence]


def test_white_space_becomes_one_space(subwords):
    assert subwords.decode(subwords.encode(["  one\ttwo\u00a0 three\n", " ", ""])) == ["one two three", "", ""]
    assert subwords.encode([" "]) == [[]]


def test_a_sentence_is_read_up_to_its_end_and_without_marks(subwords):
    [one, two] = subwords.encode(["one", "two"])
    assert subwords.decode([[BOS, *one, EOS, *two], [*two, PAD, PAD], [EOS]]) == ["one", "two", ""]


def test_both_languages_share_the_subwords(subwords):
    english, german = ({*itertools.chain(*subwords.encode(sentences))} for sentences in zip(*PAIRS, strict=True))
    assert len(english & german) > 10
    assert english - german
    assert german - english


def test_the_same_text_gives_the_same_subwords(subwords):
    again, other = Subwords.train(PAIRS, SIZE), Subwords.train(PAIRS[:-1], SIZE)
    assert (again.fingerprint, again.text) == (subwords.fingerprint, subwords.text)
    assert other.fingerprint != subwords.fingerprint
    assert other.text != subwords.text


def test_of_a_large_text_every_few_pairs_are_learned_from(monkeypatch, subwords):
    monkeypatch.setattr(module, "MOST_SENTENCES", 200)
    part = Subwords.train(PAIRS, 360)
    assert part.fingerprint == Subwords.train(PAIRS[::3], 360).fingerprint
    assert part.text == subwords.text


def test_the_text_s_fingerprint_knows_sides_and_order():
    texts = [[("a", "b"), ("c", "d")], [("b", "a"), ("c", "d")], [("c", "d"), ("a", "b")], [("a", "b")]]
    assert len({text_fingerprint(text) for text in texts}) == 4


def test_a_size_that_the_text_does_not_have_is_refused():
    least, most = (error(Subwords.train, PAIRS, size) for size in (261, 30_000))
    assert "one that sentencepiece can learn from the training text. Received: vocabulary_size=261 (" in least
    # The sizes that its messages name do exist.
    for message, size in ((least, r"vs (\d+)"), (most, r"value <= (\d+)")):
        size = int(re.search(size, message)[1])
        assert Subwords.train(PAIRS, size).size == size


def test_what_was_saved_is_loaded(tmp_path, subwords):
    subwords.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [FACTS, MODEL]
    loaded = Subwords.load(tmp_path)
    facts = {"fingerprint": loaded.fingerprint, "size": loaded.size, "text": loaded.text}
    assert json.loads((tmp_path / FACTS).read_text()) == facts
    assert facts == {"fingerprint": subwords.fingerprint, "size": SIZE, "text": text_fingerprint(PAIRS)}


def test_subwords_that_are_kept_are_not_trained_again_unless_the_save_was_cut_short(tmp_path, subwords, monkeypatch):
    (tmp_path / MODEL).write_bytes(subwords.model[:50])
    assert kept_or_trained(tmp_path, PAIRS, SIZE).fingerprint == subwords.fingerprint
    assert [path.name for path in tmp_path.iterdir()] == [MODEL]
    subwords.save(tmp_path)
    monkeypatch.setattr(Subwords, "train", None)
    assert kept_or_trained(tmp_path, PAIRS, SIZE).fingerprint == subwords.fingerprint


def test_other_subwords_than_the_kept_ones_are_refused(tmp_path, subwords):
    subwords.save(tmp_path)
    assert error(kept_or_trained, tmp_path, PAIRS, SIZE + 1) == (
        f"A model needs the subwords that it was trained with, {SIZE} in {tmp_path / MODEL}. "
        f"Received: vocabulary_size={SIZE + 1}"
    )
    assert error(kept_or_trained, tmp_path, PAIRS[1:], SIZE) == (
        f"A model needs the subwords that it was trained with, those in {tmp_path / MODEL}. "
        "Received: another training text, 299 pairs"
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (FACTS, b"{", "must be in its folder. Received: {folder} (JSONDecodeError"),
        (FACTS, b"[]", "must be in its folder. Received: {folder} (TypeError"),
        (FACTS, b"{}", "must be in its folder. Received: {folder} (KeyError"),
        (MODEL, None, "must be in its folder. Received: {folder} (FileNotFoundError"),
        (MODEL, b"other", "must be what subwords.json says. Received: another fingerprint in {folder}"),
    ],
)
def test_damaged_files_are_refused(tmp_path, subwords, name, content, message):
    subwords.save(tmp_path)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    for load in (Subwords.load, lambda folder: kept_or_trained(folder, PAIRS, SIZE)):
        assert message.format(folder=tmp_path) in error(load, tmp_path)


def test_what_is_no_model_is_refused():
    assert error(Subwords, b"garbage", "") == "Subwords must be a model of sentencepiece. Received: 7 bytes"
