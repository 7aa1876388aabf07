"""Loads parallel texts as numbers of subwords."""

import dataclasses
import json
import logging
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from trainers.engine.data import Data, aligned
from trainers.tasks.cache import Arrays, DataCache, files_key, options_key
from trainers.tasks.files import require_data
from trainers.tasks.translation.config import ParallelTextFlags
from trainers.tasks.translation.parallel_text import Pair, corpus_files, load_pairs
from trainers.tasks.translation.sources import Sequences, TranslationBatches
from trainers.tasks.translation.subwords import FACTS, Subwords, kept_or_trained

SHORT = 10  # subwords; the ratio of lengths is ignored if neither side is longer
LONGEST_JUDGED = 1024  # subwords of a sentence for validation or test, unless `max_length` is larger
CHUNK = 100_000  # pairs to encode at a time, because tokens take ten times the memory as Python integers
# The options, besides the content of the files, that the numbers depend on.
MADE_BY = ("dataset", "source_language", "target_language", "vocabulary_size", "max_length", "max_ratio")
FILES = ("source", "target", "validation_source", "validation_target", "test_source", "test_target")
PARTS = ("train", "validation", "test")

Tokens = tuple[list[int], list[int]]


@dataclasses.dataclass(frozen=True)
class TranslationData(Data):
    """A parallel text as numbers of subwords, the subwords, and the pairs whose translations are scored."""

    train: TranslationBatches
    validation: TranslationBatches
    subwords: Subwords
    validation_pairs: list[Pair]
    test_pairs: list[Pair] | None
    filtered: int  # training pairs left out because of their lengths or length ratio


def load_translation(options: ParallelTextFlags, folder: Path | None = None) -> TranslationData:
    """Loads the text called `dataset`: `numbers`, `text` (two files), `folder` (of `data_dir`), or a TFDS set.

    A training pair is left out if a side has more than `max_length` subwords, including `EOS`, or more than `max_ratio`
    times as many as the other side, which is then probably not its translation. The ratio is ignored for up to 10
    subwords and for `numbers`. Nothing is fetched from the network unless `download` is true. `folder` may hold
    subwords from an earlier start.
    """
    if options.dataset == "numbers":
        return _learned(options, folder)
    place, files = corpus_files(options)
    # It matters whether a file is for validation or for the test, and whether it is given at all.
    made_by = (
        *(getattr(options, name) for name in MADE_BY),
        *(Path(getattr(options, name) or "").name for name in FILES),
    )
    cache = DataCache(place, options.cache_dir)
    name, key = f"pairs-{options_key(*made_by)}", files_key(files, *made_by)
    data = _unpacked(cache.remembered(name, key, lambda: _packed(_learned(options, folder))))
    if folder is None or not (folder / FACTS).exists():
        return data
    if Subwords.load(folder).fingerprint == data.subwords.fingerprint:
        return data
    return _learned(options, folder)  # reads the text again and says what is wrong


def _learned(options: ParallelTextFlags, folder: Path | None) -> TranslationData:
    """Reads and encodes the text."""
    train, validation, test, _ = load_pairs(options)
    subwords = kept_or_trained(folder, train, options.vocabulary_size)
    judged = _judged_batches(subwords, validation, "validation", options.max_length)
    tested = test and _judged_batches(subwords, [pair for pair in test if all(pair)], "test", options.max_length)
    # Pairs of numbers are never wrong, and German needs far fewer subwords for them.
    max_ratio = math.inf if options.dataset == "numbers" else options.max_ratio
    batches = _batches(subwords, train, options.max_length, max_ratio)
    filtered = len(train) - batches.size
    logging.info("%d of %d training pairs are left out for their lengths", filtered, len(train))
    return TranslationData(batches, judged, subwords, validation, test, filtered, test=tested or None)


def _batches(
    subwords: Subwords, pairs: Sequence[Pair], max_length: float = math.inf, max_ratio: float = math.inf
) -> TranslationBatches:
    """Encodes the pairs that are not too long and do not differ too much in length."""
    parts = []
    for chunk in _chunks(subwords, pairs):
        kept = [pair for pair in chunk if _fits(pair, max_length, max_ratio)]
        if kept:
            parts.append([Sequences.of(side) for side in zip(*kept, strict=True)])
    require_data(
        parts,
        f"A training pair must have at most max_length={max_length} subwords per side, and at most "
        f"max_ratio={max_ratio} times those of the other",
        f"{len(pairs)} pairs, none of which fits",
    )
    sources, targets = (Sequences.joined(side) for side in zip(*parts, strict=True))
    return TranslationBatches(sources, targets)


def _judged_batches(subwords: Subwords, pairs: Sequence[Pair], name: str, max_length: int) -> TranslationBatches:
    """Encodes all pairs of a validation or test split, none of which may be too long for memory."""
    batches = _batches(subwords, pairs)
    number = int(np.argmax(np.maximum(batches.sources.lengths, batches.targets.lengths)))
    most = max(LONGEST_JUDGED, max_length)
    rule = f"A sentence for {name} must have at most {most} subwords, which --max_length may raise"
    received = f"{batches.longest} in pair {number + 1}, {pairs[number][0][:40]!r}..."
    require_data(batches.longest <= most, rule, received)
    return batches


def _chunks(subwords: Subwords, pairs: Sequence[Pair]) -> Iterator[list[Tokens]]:
    for first in range(0, len(pairs), CHUNK):
        sources, targets = zip(*pairs[first : first + CHUNK], strict=True)
        yield list(zip(subwords.encode_with_end(sources), subwords.encode_with_end(targets), strict=True))


def _fits(pair: Tokens, max_length: float, max_ratio: float) -> bool:
    shorter, longer = sorted(map(len, pair))
    return longer <= max_length and (longer <= SHORT or longer <= max_ratio * shorter)


def _packed(data: TranslationData) -> Arrays:
    """What the cache keeps."""
    pairs = {"validation": data.validation_pairs, "test": data.test_pairs}
    facts = {"text": data.subwords.text, "filtered": data.filtered, **pairs}
    arrays = {"facts": np.frombuffer(json.dumps(facts).encode(), np.uint8)}
    arrays["subwords"] = np.frombuffer(data.subwords.model, np.uint8)
    for part in PARTS:
        batches = getattr(data, part)
        contents = () if batches is None else batches.contents()
        arrays |= {f"{part}_{number}": array for number, array in enumerate(contents)}
    return arrays


def _unpacked(arrays: Arrays) -> TranslationData:
    facts = json.loads(arrays["facts"].tobytes())
    train, validation = (_unpacked_batches(arrays, part) for part in PARTS[:2])
    test = _unpacked_batches(arrays, "test") if "test_0" in arrays else None
    subwords = Subwords(arrays["subwords"].tobytes(), facts["text"])
    validation_pairs, test_pairs = (facts[part] and [(pair[0], pair[1]) for pair in facts[part]] for part in PARTS[1:])
    return TranslationData(train, validation, subwords, validation_pairs, test_pairs, facts["filtered"], test=test)


def _unpacked_batches(arrays: Arrays, part: str) -> TranslationBatches:
    sources, source_ends, targets, target_ends = (aligned(arrays[f"{part}_{number}"]) for number in range(4))
    return TranslationBatches(Sequences(sources, source_ends), Sequences(targets, target_ends))
