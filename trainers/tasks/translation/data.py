"""Loads parallel texts: numbers in words, your own files or folder, or a TFDS translation set."""

import logging
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from trainers.system.errors import DataError
from trainers.tasks.cache import DataCache, files_key, options_key
from trainers.tasks.translation.batches import Sequences, TranslationBatches
from trainers.tasks.translation.config import EOS, ParallelTextFlags
from trainers.tasks.translation.corpus import TranslationData, find_corpus, kept_or_learned
from trainers.tasks.translation.number_words import number_pairs
from trainers.tasks.translation.parallel_text import TEST, Pair, TextSplits, folder_splits, read_pairs, tfds_splits
from trainers.tasks.translation.subwords import Subwords, kept_or_trained

HELD_OUT = 10  # the last tenth is for validation if a text has no validation split
MOST_HELD_OUT = 2000  # pairs
MOST_NUMBERS = 1000  # pairs of numbers held out for validation, and as many for the test
SHORT = 10  # subwords; the ratio of lengths is ignored if neither side is longer
LONGEST_JUDGED = 1024  # subwords of a sentence for validation or test, unless `max_length` is larger
CHUNK = 100_000  # pairs to encode at a time, because tokens take ten times the memory as Python integers

Files = tuple[str | None, str | None]  # of the source and of the target
Tokens = tuple[list[int], list[int]]


def load_translation(options: ParallelTextFlags, folder: Path | None = None) -> TranslationData:
    """Loads the text called `dataset`: `numbers`, `text` (two files), `folder` (of `data_dir`), or a TFDS set.

    Files for validation or test replace the splits of the text itself. If there is no validation split, the last tenth
    of the text, at most 2,000 pairs, is held out. A training pair is left out if a side has more than `max_length`
    subwords, including `EOS`, or more than `max_ratio` times as many as the other side, which is then probably not its
    translation. The ratio is ignored for up to 10 subwords and for `numbers`. Nothing is fetched from the network
    unless `download` is true. `folder` may hold subwords from an earlier start.
    """
    _check_numbers(options.pairs, options.max_length, options.max_ratio)
    _check_languages(options)
    found = find_corpus(options)
    if found is None:
        return _learned(options, folder)
    name, key = f"pairs-{options_key(*found.options)}", files_key(found.files, *found.options)
    return kept_or_learned(
        DataCache(found.place, options.cache_dir), name, key, folder, lambda: _learned(options, folder)
    )


def _learned(options: ParallelTextFlags, folder: Path | None) -> TranslationData:
    """Reads and encodes the text."""
    splits = _own_splits(options)
    validation = _file_pairs("validation", options.validation_source, options.validation_target) or splits.validation
    test = _file_pairs(TEST, options.test_source, options.test_target) or splits.test
    train = splits.train
    if validation is None:
        train, validation = _hold_out(train)
    for name, pairs in (("validation", validation), (TEST, test or [])):
        # A word is at least one subword: the worst sentences are found before subwords are learned.
        _check_judged(pairs, [max(len(side.split()) for side in pair) for pair in pairs], name, options.max_length)
    subwords = kept_or_trained(folder, train, options.vocabulary_size)
    judged = _judged_batches(subwords, validation, "validation", options.max_length)
    tested = test and _judged_batches(subwords, [pair for pair in test if all(pair)], TEST, options.max_length)
    # Pairs of numbers are never wrong, and German needs far fewer subwords for them.
    max_ratio = math.inf if options.dataset == "numbers" else options.max_ratio
    batches = _batches(subwords, train, options.max_length, max_ratio)
    filtered = len(train) - batches.size
    logging.info("%d of %d training pairs are left out for their lengths", filtered, len(train))
    return TranslationData(batches, judged, subwords, validation, test, filtered, test=tested or None)


def _check_numbers(pairs: int, max_length: int, max_ratio: float) -> None:
    for name, value, least in (("pairs", pairs, 1), ("max_length", max_length, 2), ("max_ratio", max_ratio, 1)):
        if not value >= least:
            raise DataError(f"`{name}` must be at least {least}. Received: {name}={value}")


def _check_languages(options: ParallelTextFlags) -> None:
    files = (options.source, options.target)
    if options.dataset != "text" and any(files):
        raise DataError(
            f"`source` and `target` are the files of dataset='text'. Received: {files} with dataset={options.dataset!r}"
        )
    if options.source_language == options.target_language:
        raise DataError(
            f"`source_language` and `target_language` must differ. Received: {options.source_language!r} twice"
        )


def _own_splits(options: ParallelTextFlags) -> TextSplits:
    dataset, files = options.dataset, (options.source, options.target)
    languages = (options.source_language, options.target_language)
    if dataset == "text":
        return TextSplits(_require_pairs("", *files), None, None)
    if dataset == "numbers":
        return _numbers(options.pairs, languages)
    if dataset == "folder":
        return folder_splits(options.data_dir, languages)
    return tfds_splits(dataset, options.data_dir, languages, options.download)


def _numbers(pairs: int, languages: tuple[str, str]) -> TextSplits:
    """Numbers for training, and held-out numbers, half of them for validation and half for the test.

    They are the same for every seed of a run.
    """
    if {*languages} != {"en", "de"}:
        raise DataError(f"The languages of dataset='numbers' must be en and de. Received: {languages}")
    count = 2 * min(MOST_NUMBERS, _held_out(pairs))
    train, held_out = number_pairs(pairs, 0, held_out=False), number_pairs(count, 1, held_out=True)
    if languages == ("de", "en"):
        train, held_out = ([(german, english) for english, german in each] for each in (train, held_out))
    return TextSplits(train, held_out[::2], held_out[1::2])


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
    """Splits pairs into the first ones, for training, and the last ones, for validation."""
    first = len(pairs) - _held_out(len(pairs))
    if not first:
        raise DataError(f"A parallel text without a part for validation must have 2 pairs. Received: {len(pairs)}")
    return pairs[:first], pairs[first:]


def _batches(
    subwords: Subwords, pairs: Sequence[Pair], max_length: float = math.inf, max_ratio: float = math.inf
) -> TranslationBatches:
    """Encodes the pairs that are not too long and do not differ too much in length."""
    parts = []
    for chunk in _chunks(subwords, pairs):
        kept = [pair for pair in chunk if _fits(pair, max_length, max_ratio)]
        if kept:
            parts.append([Sequences.of(side) for side in zip(*kept, strict=True)])
    if not parts:
        raise DataError(
            f"A training pair must have at most max_length={max_length} subwords per side, and at most "
            f"max_ratio={max_ratio} times those of the other. Received: {len(pairs)} pairs, none of which fits"
        )
    sources, targets = (Sequences.joined(side) for side in zip(*parts, strict=True))
    return TranslationBatches(sources, targets)


def _judged_batches(subwords: Subwords, pairs: Sequence[Pair], name: str, max_length: int) -> TranslationBatches:
    """Encodes all pairs of a validation or test split, none of which may be too long for memory."""
    batches = _batches(subwords, pairs)
    _check_judged(pairs, np.maximum(batches.sources.lengths, batches.targets.lengths), name, max_length)
    return batches


def _check_judged(pairs: Sequence[Pair], lengths: Sequence[int] | np.ndarray, name: str, max_length: int) -> None:
    longest, most = max(lengths, default=0), max(LONGEST_JUDGED, max_length)
    if longest > most:
        number = int(np.argmax(lengths))
        raise DataError(
            f"A sentence for {name} must have at most {most} subwords, which --max_length may raise. "
            f"Received: {longest} in pair {number + 1}, {pairs[number][0][:40]!r}..."
        )


def _chunks(subwords: Subwords, pairs: Sequence[Pair]) -> Iterator[list[Tokens]]:
    for first in range(0, len(pairs), CHUNK):
        sources, targets = zip(*pairs[first : first + CHUNK], strict=True)
        yield list(zip(_with_eos(subwords, sources), _with_eos(subwords, targets), strict=True))


def _with_eos(subwords: Subwords, sentences: Sequence[str]) -> list[list[int]]:
    return [[*numbers, EOS] for numbers in subwords.encode(sentences)]


def _fits(pair: Tokens, max_length: float, max_ratio: float) -> bool:
    shorter, longer = sorted(map(len, pair))
    return longer <= max_length and (longer <= SHORT or longer <= max_ratio * shorter)
