"""Caches a parallel text as numbers of subwords, so that the next start need not read and encode it again."""

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trainers.engine.data import Data, aligned
from trainers.tasks import cache
from trainers.tasks.translation.batches import Sequences, TranslationBatches
from trainers.tasks.translation.config import ParallelTextFlags
from trainers.tasks.translation.parallel_text import Pair, prepared_builder
from trainers.tasks.translation.subwords import FACTS, Subwords

# The options, besides the files, that the numbers depend on.
MADE_BY = (
    "dataset",
    "source_language",
    "target_language",
    "vocabulary_size",
    "max_length",
    "max_ratio",
)
FILES = ("source", "target", "validation_source", "validation_target", "test_source", "test_target")
PARTS = ("train", "validation", "test")
SIDES = ("source", "target")


@dataclasses.dataclass(frozen=True)
class TranslationData(Data):
    """A parallel text as numbers of subwords, the subwords, and the pairs whose translations are scored."""

    train: TranslationBatches
    validation: TranslationBatches
    subwords: Subwords
    validation_pairs: list[Pair]
    test_pairs: list[Pair] | None
    filtered: int  # training pairs left out because of their lengths or length ratio


class Found(NamedTuple):
    """The folder of a corpus, which is also that of its cache, the files, and the options they are encoded with."""

    place: Path
    files: tuple[Path, ...]
    options: tuple[Any, ...]


def find_corpus(options: ParallelTextFlags) -> Found | None:
    """Finds the files of a corpus without checking their content; None if it has no files."""
    given = [Path(getattr(options, name) or "").expanduser() for name in FILES]
    # It matters whether a file is for validation or for the test, and whether it is given at all.
    made_by = (*(getattr(options, name) for name in MADE_BY), *(path.name for path in given))
    named = tuple(path for path in given if path.name)
    if options.dataset == "numbers":
        return None
    if options.dataset == "text":
        return Found(given[0].parent, named, made_by) if given[0].is_file() else None
    if options.dataset == "folder":
        folder = Path(options.data_dir or "").expanduser()
        texts = sorted(path for path in folder.glob("*.txt*") if path.is_file()) if options.data_dir else []
        return Found(folder, (*texts, *named), made_by) if texts else None
    builder = prepared_builder(
        options.dataset, options.data_dir, (options.source_language, options.target_language), options.download
    )
    files = tuple(Path(path) for split in builder.info.splits.values() for path in split.filepaths)
    return Found(Path(builder.data_dir), (*files, *named), made_by)


def kept_or_learned(
    known: cache.DataCache, name: str, key: str, folder: Path | None, learn: Callable[[], TranslationData]
) -> TranslationData:
    """Returns the result of `learn`, from the cache if it has the same key and the subwords of the run's folder."""
    stored = known.read(name)
    if stored is not None and stored["key"].tobytes() == key.encode():
        data = _unpacked(stored)
        # If the folder has other subwords, `learn` reads the text again and reports what is wrong.
        has_own = folder is not None and (folder / FACTS).exists()
        if not has_own or Subwords.load(folder).fingerprint == data.subwords.fingerprint:  # type: ignore[arg-type]
            return data
    began = time.monotonic()
    data = learn()
    if time.monotonic() - began >= cache.WORTH_SECONDS:
        known.write(name, {**_packed(data), "key": np.frombuffer(key.encode(), np.uint8)})
    return data


def _packed(data: TranslationData) -> dict[str, np.ndarray]:
    facts = {
        "text": data.subwords.text,
        "validation": data.validation_pairs,
        "test": data.test_pairs,
        "filtered": data.filtered,
    }
    arrays = {
        "facts": np.frombuffer(json.dumps(facts).encode(), np.uint8),
        "subwords": np.frombuffer(data.subwords.model, np.uint8),
    }
    for part in PARTS:
        batches = getattr(data, part)
        if batches is not None:
            arrays |= {f"{part}_source": batches.sources.tokens, f"{part}_source_ends": batches.sources.ends}
            arrays |= {f"{part}_target": batches.targets.tokens, f"{part}_target_ends": batches.targets.ends}
    return arrays


def _unpacked(arrays: cache.Arrays) -> TranslationData:
    facts = json.loads(arrays["facts"].tobytes())
    train, validation, test = (_batches(arrays, part) if f"{part}_source" in arrays else None for part in PARTS)
    assert train is not None
    assert validation is not None
    subwords = Subwords(arrays["subwords"].tobytes(), facts["text"])
    pairs = [None if facts[part] is None else [(pair[0], pair[1]) for pair in facts[part]] for part in PARTS[1:]]
    return TranslationData(train, validation, subwords, pairs[0] or [], pairs[1], facts["filtered"], test=test)


def _batches(arrays: cache.Arrays, part: str) -> TranslationBatches:
    sides = (Sequences(aligned(arrays[f"{part}_{side}"]), aligned(arrays[f"{part}_{side}_ends"])) for side in SIDES)
    return TranslationBatches(*sides)
