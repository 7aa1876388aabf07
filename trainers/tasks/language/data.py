"""Loads texts: the language reference that comes with Python, a corpus of your own, or WikiText."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from trainers.engine.data import Data
from trainers.system.errors import DataError
from trainers.tasks.cache import DataCache, files_key, options_key
from trainers.tasks.language.blocks import TrainingBlocks, ValidationWindows
from trainers.tasks.language.config import DATASETS, TextFlags
from trainers.tasks.language.files import existing_path, find_text, read_lines, require_wikitext
from trainers.tasks.language.vocabulary import UNKNOWN, Vocabulary, number_text
from trainers.tasks.language.wikitext103 import prepared_wikitext103, read_prepared

MIN_COUNT = 3  # rarer words of a text without <unk> become <unk>, as in WikiText
HELD_OUT = 10  # every tenth topic or line is for validation
# A word with the apostrophes (straight or curved) inside it, or a punctuation mark and its repetitions.
TOKEN = re.compile(rf"{UNKNOWN}|\w+(?:['\u2019]\w+)*|([^\w\s])\1*")


@dataclasses.dataclass(frozen=True)
class TextData(Data):
    """The splits of a text as numbers of words, and the vocabulary."""

    validation: ValidationWindows
    vocabulary: Vocabulary
    train_tokens: np.ndarray  # int32; the last few may not be part of any block
    validation_tokens: np.ndarray


@dataclasses.dataclass(frozen=True)
class Corpus:
    """The lines of each split of a text, and how to split a line into words."""

    train: Iterable[str]
    validation: Iterable[str]
    test: Iterable[str] | None
    words: Callable[[str], list[str]]
    min_count: int
    place: Path | None = None  # the folder of its files
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def load_text(options: TextFlags) -> TextData:
    """Loads a text in blocks of `context` tokens.

    Validation predicts every token but the first ones from at least `eval_context` others. The vocabulary has at most
    `vocabulary_size` words, including `<unk>` and `<eos>`. Nothing is fetched from the network unless `download` is
    true.
    """
    context, eval_context, vocabulary_size = options.context, options.eval_context, options.vocabulary_size
    if context < 1:
        raise DataError(f"`context` must be > 0. Received: context={context}")
    if not 0 <= eval_context < context:
        raise DataError(
            f"`eval_context` must be at least 0 and less than context={context}. Received: eval_context={eval_context}"
        )
    if vocabulary_size is not None and vocabulary_size < 3:
        raise DataError(f"`vocabulary_size` must be > 2. Received: vocabulary_size={vocabulary_size}")
    corpus = _corpus(options.dataset, options.data_dir, options.download)
    texts = _numbered(corpus, options)
    for name in ("training", "validation"):
        _check_length(texts[name], context, name)
    train = TrainingBlocks(texts["training"], context)
    validation, *test = (
        ValidationWindows(texts[name], context, eval_context)
        for name in ("validation", "test")
        if len(texts[name]) > context  # a test text shorter than a block is ignored
    )
    vocabulary = Vocabulary(texts["words"].tobytes().decode().split("\n"))
    return TextData(
        train,
        validation,
        vocabulary,
        train.tokens,
        validation.tokens,
        test=test[0] if test else None,
        notes=corpus.notes,
    )


def _numbered(corpus: Corpus, options: TextFlags) -> Mapping[str, np.ndarray]:
    """The texts of a corpus as numbers of words, and its words; cached for the next start if the corpus is large."""

    def number() -> dict[str, np.ndarray]:
        train, vocabulary = number_text(map(corpus.words, corpus.train), options.vocabulary_size, corpus.min_count)
        lines = {"validation": corpus.validation, "test": corpus.test}
        others = {
            name: np.zeros(0, np.int32) if text is None else vocabulary.number_lines(map(corpus.words, text))
            for name, text in lines.items()
        }
        words = np.frombuffer("\n".join(vocabulary.words).encode(), np.uint8)
        return {"training": train, **others, "words": words}

    if corpus.place is None:
        return number()
    made_by = (options.dataset, options.vocabulary_size, corpus.min_count, TOKEN.pattern, HELD_OUT)
    kept = DataCache(corpus.place, options.cache_dir)
    return kept.remembered(f"text-{options_key(*made_by)}", files_key(corpus.files, *made_by), number)


def _corpus(dataset: str, data_dir: str | None, download: bool) -> Corpus:
    if dataset == "pydoc":
        return _pydoc()
    if dataset == "text":
        return _own_text(existing_path(data_dir, dataset))
    if dataset == "wikitext":
        files = require_wikitext(existing_path(data_dir, dataset))
        min_count = MIN_COUNT if ".raw" in files["train"].suffixes else 1
        train, validation = read_lines(files["train"]), read_lines(files["valid"])
        test = read_lines(files["test"]) if "test" in files else None
        return Corpus(train, validation, test, str.split, min_count, files["train"].parent, tuple(files.values()))
    if dataset == "wikitext103":
        builder = prepared_wikitext103(data_dir, download)
        return _prepared(builder)
    raise DataError(f"`dataset` must be one of {', '.join(DATASETS)}. Received: dataset={dataset!r}")


def _prepared(builder: Any) -> Corpus:
    splits = builder.info.splits
    train, validation = read_prepared(builder, "train"), read_prepared(builder, "validation")
    test = read_prepared(builder, "test") if "test" in splits else None
    files = tuple(Path(path) for split in splits.values() for path in split.filepaths)
    return Corpus(train, validation, test, str.split, 1, Path(builder.data_dir), files)


def split_words(line: str) -> list[str]:
    """Splits a line into words and punctuation marks; a repeated mark is one. Case is kept, white space is not."""
    return [match.group() for match in TOKEN.finditer(line)]


def _pydoc() -> Corpus:
    """The language reference that `help()` shows, by topic, in the version of the running Python."""
    from pydoc_data.topics import topics  # half a megabyte that only this corpus needs

    lines = _without_repetitions(topics)
    names = sorted(topics)
    held_out = names[2::HELD_OUT]  # starting with the third topic, this is also a tenth of the words
    train = [line for name in names if name not in held_out for line in lines[name]]
    return Corpus(train, [line for name in held_out for line in lines[name]], None, split_words, MIN_COUNT)


def _without_repetitions(topics: dict[str, str]) -> dict[str, list[str]]:
    """The lines of every topic, keeping each paragraph only where it first appears.

    Some topics are chapters of others: otherwise, most of the validation text would be in the training text too.
    """
    seen: set[str] = set()
    lines: dict[str, list[str]] = {}
    for name in sorted(topics):
        lines[name] = []
        for paragraph in topics[name].split("\n\n"):
            key = " ".join(paragraph.split())
            if key not in seen:
                seen.add(key)
                lines[name] += [*paragraph.strip("\n").split("\n"), ""]
    return lines


def _own_text(path: Path) -> Corpus:
    found = find_text(path)
    train, judged = found.train, found.validation or found.test
    notes = []
    if found.test and not found.validation:
        notes.append("the best model is chosen on the test files: there are no others for validation")
    if found.left_out:
        notes.append(f"left out {len(found.left_out)} files that are not text: {', '.join(found.left_out[:10])}")
    files = (*train, *found.validation, *found.test)
    place = path.parent if path.is_file() else path
    if not judged:
        return Corpus(
            _train_part(train), _held_out_part(train), None, split_words, MIN_COUNT, place, files, tuple(notes)
        )
    test = _all_lines(found.test) if found.test and found.validation else None
    return Corpus(_all_lines(train), _all_lines(judged), test, split_words, MIN_COUNT, place, files, tuple(notes))


def _all_lines(files: Sequence[Path]) -> Iterator[str]:
    return (line for file in files for line in read_lines(file))


def _train_part(files: Sequence[Path]) -> Iterator[str]:
    return (line for file in files for line in islice(read_lines(file), _train_lines(file)))


def _held_out_part(files: Sequence[Path]) -> Iterator[str]:
    """The last tenth of the lines of each file."""
    return (line for file in files for line in islice(read_lines(file), _train_lines(file), None))


def _train_lines(file: Path) -> int:
    count = sum(1 for _ in read_lines(file))
    return count - count // HELD_OUT


def _check_length(text: np.ndarray, context: int, name: str) -> None:
    tokens = len(text) - 1
    if tokens < context:
        raise DataError(
            f"`context` must be at most the number of tokens of the {name} text, {tokens}. Received: context={context}"
        )
