"""Loads parallel texts as numbers of subwords."""

import dataclasses
import json
import logging
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from trainers.engine.data import Data
from trainers.tasks.cache import Arrays, DataCache, files_key, options_key
from trainers.tasks.files import require_data
from trainers.tasks.translation.config import ParallelTextFlags
from trainers.tasks.translation.parallel_text import SIDES, Pair, ParallelText, find_text
from trainers.tasks.translation.sources import Sequences, TranslationBatches
from trainers.tasks.translation.subwords import FACTS, Subwords, kept_or_trained

SHORT = 10  # subwords; the ratio of lengths is ignored if neither side is longer
LONGEST_JUDGED = 1024  # subwords of a sentence for validation or test, unless `max_length` is larger
CHUNK = 100_000  # pairs to encode at a time, because tokens take ten times the memory as Python integers
# The options, besides the content of the files, that the numbers depend on.
MADE_BY = ("dataset", "source_language", "target_language", "vocabulary_size", "max_length", "max_ratio")
FILES = tuple(f"{part}{side}" for part in ("", "validation_", "test_") for side in SIDES)

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
    text = find_text(options)
    if text.place is None:
        return _unpacked(_encoded(text, options, folder))
    # It matters whether a file is for validation or for the test, and whether it is given at all.
    made_by = (
        *(getattr(options, name) for name in MADE_BY),
        *(Path(getattr(options, name) or "").name for name in FILES),
    )
    cache = DataCache(text.place, options.cache_dir)
    name, key = f"pairs-{options_key(*made_by)}", files_key(text.files, *made_by)
    data = _unpacked(cache.remembered(name, key, lambda: _encoded(text, options, folder)))
    if folder is None or not (folder / FACTS).exists():
        return data
    if Subwords.load(folder).fingerprint == data.subwords.fingerprint:
        return data
    return _unpacked(_encoded(text, options, folder))  # reads the text again and says what is wrong


def _encoded(text: ParallelText, options: ParallelTextFlags, folder: Path | None) -> Arrays:
    """Reads and encodes the text; what the cache keeps."""
    train, validation, test = text.read()
    subwords = kept_or_trained(folder, train, options.vocabulary_size)
    # Pairs of numbers are never wrong, and German needs far fewer subwords for them.
    max_ratio = math.inf if options.dataset == "numbers" else options.max_ratio
    judged = {name: pairs for name, pairs in (("validation", validation), ("test", test)) if pairs is not None}
    texts = {name: _judged(subwords, pairs, name, options.max_length) for name, pairs in judged.items()}
    texts["train"] = _fitting(subwords, train, options.max_length, max_ratio)
    filtered = len(train) - len(texts["train"][0])
    logging.info("%d of %d training pairs are left out for their lengths", filtered, len(train))
    facts = {"text": subwords.text, "filtered": filtered, "pairs": judged}
    arrays = {"facts": np.frombuffer(json.dumps(facts).encode(), np.uint8)}
    arrays["subwords"] = np.frombuffer(subwords.model, np.uint8)
    for name, sides in texts.items():
        for side, sequences in zip(SIDES, sides, strict=True):
            arrays |= {f"{name}_{side}": sequences.tokens, f"{name}_{side}_lengths": sequences.lengths}
    return arrays


def _unpacked(arrays: Arrays) -> TranslationData:
    facts = json.loads(arrays["facts"].tobytes())
    pairs = {name: [(source, target) for source, target in rows] for name, rows in facts["pairs"].items()}
    parts = {}
    for name in ("train", *pairs):
        sides = (Sequences(arrays[f"{name}_{side}"], arrays[f"{name}_{side}_lengths"]) for side in SIDES)
        parts[name] = TranslationBatches(*sides)
    subwords = Subwords(arrays["subwords"].tobytes(), facts["text"])
    parts_and_pairs = (parts["train"], parts["validation"], subwords, pairs["validation"], pairs.get("test"))
    return TranslationData(*parts_and_pairs, facts["filtered"], test=parts.get("test"))


def _fitting(
    subwords: Subwords, pairs: Sequence[Pair], max_length: float = math.inf, max_ratio: float = math.inf
) -> list[Sequences]:
    """Encodes both sides of the pairs that are not too long and do not differ too much in length."""
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
    return [Sequences.joined(side) for side in zip(*parts, strict=True)]


def _judged(subwords: Subwords, pairs: Sequence[Pair], name: str, max_length: int) -> list[Sequences]:
    """Encodes all full pairs of a validation or test split, none of which may be too long for memory."""
    full = [pair for pair in pairs if all(pair)]
    sides = _fitting(subwords, full)
    lengths = np.maximum(*(side.lengths for side in sides))
    number = int(np.argmax(lengths))
    most = max(LONGEST_JUDGED, max_length)
    rule = f"A sentence for {name} must have at most {most} subwords, which --max_length may raise"
    require_data(lengths[number] <= most, rule, f"{lengths[number]} in pair {number + 1}, {full[number][0][:40]!r}...")
    return sides


def _chunks(subwords: Subwords, pairs: Sequence[Pair]) -> Iterator[list[Tokens]]:
    for first in range(0, len(pairs), CHUNK):
        sources, targets = zip(*pairs[first : first + CHUNK], strict=True)
        yield list(zip(subwords.encode_with_end(sources), subwords.encode_with_end(targets), strict=True))


def _fits(pair: Tokens, max_length: float, max_ratio: float) -> bool:
    shorter, longer = sorted(map(len, pair))
    return longer <= max_length and (longer <= SHORT or longer <= max_ratio * shorter)
