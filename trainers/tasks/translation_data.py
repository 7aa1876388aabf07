"""The parallel texts: numbers in words, two files or a folder of one's own, TFDS translation sets."""

import dataclasses
import logging
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from trainers.engine.errors import DataError
from trainers.tasks.marks import EOS
from trainers.tasks.number_words import number_pairs
from trainers.tasks.parallel_text import TEST, Pair, Splits, folder_splits, read_pairs, tfds_splits
from trainers.tasks.subwords import Subwords, kept_or_trained
from trainers.tasks.translation_batches import Sequences, TranslationBatches

HELD_OUT = 10  # the last tenth is for validation where a text has no part of its own for it
MOST_HELD_OUT = 2000  # pairs
MOST_NUMBERS = 1000  # pairs of numbers held out for validation, and as many for the test
SHORT = 10  # subwords: the ratio of lengths says nothing of a pair that has no more on either side
CHUNK = 100_000  # pairs to encode at a time: as Python's integers, tokens take ten times the memory

Files = tuple[str | None, str | None]  # of the source and of the target
Tokens = tuple[list[int], list[int]]


@dataclasses.dataclass(frozen=True)
class TranslationData:
    """A parallel text as numbers of subwords, the subwords, and the pairs whose translations are judged."""

    train: TranslationBatches
    validation: TranslationBatches
    subwords: Subwords
    validation_pairs: list[Pair]
    test_pairs: list[Pair] | None
    filtered: int  # training pairs left out, for their lengths or the ratio of these


def load_translation(
    *,
    dataset: str,
    data_dir: str | None = None,
    source: str | None = None,
    target: str | None = None,
    validation_source: str | None = None,
    validation_target: str | None = None,
    test_source: str | None = None,
    test_target: str | None = None,
    source_language: str = "en",
    target_language: str = "de",
    pairs: int = 40_000,
    vocabulary_size: int = 32_000,
    max_length: int = 250,
    max_ratio: float = 2.0,
    download: bool = False,
    folder: Path | None = None,
) -> TranslationData:
    """The text called `dataset`: `numbers`, `text` (two files), `folder` (of `data_dir`), or a TFDS set.

    Args:
        dataset: Which text.
        data_dir: The folder, or where TFDS keeps its sets.
        source: The file of the sentences, for `text`.
        target: The file of their translations, for `text`.
        validation_source: Files that take the place of a text's own part for validation, if it has one, or of the last
            tenth of its pairs, at most 2,000.
        validation_target: See `validation_source`.
        test_source: Files that take the place of a text's own part for a test, if it has one.
        test_target: See `test_source`.
        source_language: As files of a folder and TFDS call it.
        target_language: The same.
        pairs: How many training pairs of `numbers` there are.
        vocabulary_size: The number of subwords.
        max_length: A training pair is left out if a side has more subwords, one for the end among them.
        max_ratio: A training pair is left out if one side has more than so many times the subwords of the other, which
            may well be no translation of it; but not one of up to 10 subwords, nor one of `numbers`.
        download: Nothing is fetched from the network unless this is true.
        folder: Where subwords may have been kept.
    """
    _check_numbers(pairs, max_length, max_ratio)
    splits = _own_splits(dataset, data_dir, (source, target), (source_language, target_language), pairs, download)
    validation = _file_pairs("validation", validation_source, validation_target) or splits.validation
    test = _file_pairs(TEST, test_source, test_target) or splits.test
    train = splits.train
    if validation is None:
        train, validation = _hold_out(train)
    subwords = kept_or_trained(folder, train, vocabulary_size)
    # No pair of numbers is a wrong one, and German has far fewer subwords for them.
    batches = _batches(subwords, train, max_length, math.inf if dataset == "numbers" else max_ratio)
    filtered = len(train) - batches.size
    logging.info("%d of %d training pairs are left out for their lengths", filtered, len(train))
    return TranslationData(batches, _batches(subwords, validation), subwords, validation, test, filtered)


def _check_numbers(pairs: int, max_length: int, max_ratio: float) -> None:
    for name, value, least in (("pairs", pairs, 1), ("max_length", max_length, 2), ("max_ratio", max_ratio, 1)):
        if not value >= least:
            raise DataError(f"`{name}` must be at least {least}. Received: {name}={value}")


def _own_splits(
    dataset: str, data_dir: str | None, files: Files, languages: tuple[str, str], pairs: int, download: bool
) -> Splits:
    if dataset != "text" and any(files):
        raise DataError(
            f"`source` and `target` are the files of dataset='text'. Received: {files} with dataset={dataset!r}"
        )
    if languages[0] == languages[1]:
        raise DataError(f"`source_language` and `target_language` must differ. Received: {languages[0]!r} twice")
    if dataset == "text":
        return Splits(_require_pairs("", *files), None, None)
    if dataset == "numbers":
        return _numbers(pairs, languages)
    if dataset == "folder":
        return folder_splits(data_dir, languages)
    return tfds_splits(dataset, data_dir, languages, download)


def _numbers(pairs: int, languages: tuple[str, str]) -> Splits:
    """Numbers to train with, and numbers held out, a half of them for validation and the other for the test.

    They are the same for every seed of a run.
    """
    if {*languages} != {"en", "de"}:
        raise DataError(f"The languages of dataset='numbers' must be en and de. Received: {languages}")
    count = 2 * min(MOST_NUMBERS, _held_out(pairs))
    train, held_out = number_pairs(pairs, 0, held_out=False), number_pairs(count, 1, held_out=True)
    if languages == ("de", "en"):
        train, held_out = ([(german, english) for english, german in each] for each in (train, held_out))
    return Splits(train, held_out[::2], held_out[1::2])


def _require_pairs(kind: str, source: str | None, target: str | None, keep_blank: bool = False) -> list[Pair]:
    """The pairs of two files, both of which must be given."""
    if not source or not target:
        raise DataError(
            f"`{kind}source` and `{kind}target` must be two files. "
            f"Received: {kind}source={source!r}, {kind}target={target!r}"
        )
    return read_pairs(Path(source).expanduser(), Path(target).expanduser(), keep_blank)


def _file_pairs(kind: str, source: str | None, target: str | None) -> list[Pair] | None:
    return _require_pairs(f"{kind}_", source, target, keep_blank=kind == TEST) if source or target else None


def _held_out(pairs: int) -> int:
    return min(MOST_HELD_OUT, -(-pairs // HELD_OUT))


def _hold_out(pairs: list[Pair]) -> tuple[list[Pair], list[Pair]]:
    """The first pairs to train with, and the last ones, to judge the training by."""
    first = len(pairs) - _held_out(len(pairs))
    if not first:
        raise DataError(f"A parallel text without a part for validation must have 2 pairs. Received: {len(pairs)}")
    return pairs[:first], pairs[first:]


def _batches(
    subwords: Subwords, pairs: Sequence[Pair], max_length: float = math.inf, max_ratio: float = math.inf
) -> TranslationBatches:
    """The pairs that are not too long and do not differ too much in length."""
    parts = []
    for chunk in _chunks(subwords, pairs):
        kept = [pair for pair in chunk if _fits(pair, max_length, max_ratio)]
        if kept:
            parts.append([Sequences.of(side) for side in zip(*kept, strict=True)])
    if not parts:
        raise DataError(
            f"A training pair must have at most max_length={max_length} subwords a side, and at most "
            f"max_ratio={max_ratio} times those of the other. Received: {len(pairs)} pairs, none of them so"
        )
    sources, targets = (Sequences.joined(side) for side in zip(*parts, strict=True))
    return TranslationBatches(sources, targets)


def _chunks(subwords: Subwords, pairs: Sequence[Pair]) -> Iterator[list[Tokens]]:
    for first in range(0, len(pairs), CHUNK):
        sources, targets = zip(*pairs[first : first + CHUNK], strict=True)
        yield list(zip(_with_eos(subwords, sources), _with_eos(subwords, targets), strict=True))


def _with_eos(subwords: Subwords, sentences: Sequence[str]) -> list[list[int]]:
    return [[*numbers, EOS] for numbers in subwords.encode(sentences)]


def _fits(pair: Tokens, max_length: float, max_ratio: float) -> bool:
    shorter, longer = sorted(map(len, pair))
    return longer <= max_length and (longer <= SHORT or longer <= max_ratio * shorter)
