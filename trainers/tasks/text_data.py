"""The texts: the reference inside Python itself, a corpus of one's own, WikiText."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from trainers.engine.data import Source
from trainers.engine.errors import DataError
from trainers.tasks.text_blocks import TrainingBlocks, ValidationWindows
from trainers.tasks.text_files import existing_path, find_text, read_lines, require_wikitext
from trainers.tasks.vocabulary import UNKNOWN, Vocabulary, number_text
from trainers.tasks.wikitext103 import prepared_wikitext103, read_prepared

DATASETS = ("pydoc", "text", "wikitext", "wikitext103")
MIN_COUNT = 3  # of a word in a text that has no <unk> yet; WikiText was made with the same
HELD_OUT = 10  # every tenth topic or line is for validation
# A word with the apostrophes (straight or curved) inside it, or a punctuation mark and its repetitions.
TOKEN = re.compile(rf"{UNKNOWN}|\w+(?:['\u2019]\w+)*|([^\w\s])\1*")


@dataclasses.dataclass(frozen=True)
class TextData:
    """Two splits of a text as numbers of words, and the words."""

    train: Source
    validation: Source
    vocabulary: Vocabulary
    train_tokens: np.ndarray  # int32, all of them, of which the last few may be in no block
    validation_tokens: np.ndarray


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Where the lines of a text come from, and what its words are."""

    train: Iterable[str]
    validation: Iterable[str]
    words: Callable[[str], list[str]]
    min_count: int


def load_text(
    dataset: str,
    data_dir: str | None,
    context: int,
    eval_context: int,
    download: bool,
    vocabulary_size: int | None,
) -> TextData:
    """The text called `dataset`, one of `DATASETS`, in blocks of `context` tokens.

    Validation predicts every token from at least `eval_context` others, but for the first ones. The vocabulary has at
    most `vocabulary_size` words, `<unk>` and `<eos>` among them. Nothing is fetched from the network unless `download`
    is true.
    """
    if context < 1:
        raise DataError(f"`context` must be > 0. Received: context={context}")
    if not 0 <= eval_context < context:
        raise DataError(
            f"`eval_context` must be at least 0 and less than context={context}. Received: eval_context={eval_context}"
        )
    if vocabulary_size is not None and vocabulary_size < 3:
        raise DataError(f"`vocabulary_size` must be > 2. Received: vocabulary_size={vocabulary_size}")
    corpus = _corpus(dataset, data_dir, download)
    text, vocabulary = number_text(map(corpus.words, corpus.train), vocabulary_size, corpus.min_count)
    _check_length(text, context, "training")
    train = TrainingBlocks(text, context)
    text = vocabulary.number_lines(map(corpus.words, corpus.validation))
    _check_length(text, context, "validation")
    validation = ValidationWindows(text, context, eval_context)
    return TextData(train, validation, vocabulary, train.tokens, validation.tokens)


def _corpus(dataset: str, data_dir: str | None, download: bool) -> Corpus:
    if dataset == "pydoc":
        return _pydoc()
    if dataset == "text":
        return _own_text(existing_path(data_dir, dataset))
    if dataset == "wikitext":
        files = require_wikitext(existing_path(data_dir, dataset))
        min_count = MIN_COUNT if ".raw" in files["train"].suffixes else 1
        return Corpus(read_lines(files["train"]), read_lines(files["valid"]), str.split, min_count)
    if dataset == "wikitext103":
        builder = prepared_wikitext103(data_dir, download)
        return Corpus(read_prepared(builder, "train"), read_prepared(builder, "validation"), str.split, min_count=1)
    raise DataError(f"`dataset` must be one of {', '.join(DATASETS)}. Received: dataset={dataset!r}")


def split_words(line: str) -> list[str]:
    """Words and punctuation marks, the same mark repeated being one; case is kept, white space is not."""
    return [match.group() for match in TOKEN.finditer(line)]


def _pydoc() -> Corpus:
    """The language reference that `help()` shows, by topic; its text is that of the Python that runs this."""
    from pydoc_data.topics import topics  # half a megabyte that only this corpus needs

    lines = _without_repetitions(topics)
    names = sorted(topics)
    held_out = names[2::HELD_OUT]  # beginning with the third, it is a tenth of the words too
    train = [line for name in names if name not in held_out for line in lines[name]]
    return Corpus(train, [line for name in held_out for line in lines[name]], split_words, MIN_COUNT)


def _without_repetitions(topics: dict[str, str]) -> dict[str, list[str]]:
    """The lines of every topic, with each paragraph where it first stands.

    Some topics are chapters of others: without this, most of what is for validation would be in the training text too.
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
    train, validation = find_text(path)
    if validation is None:
        return Corpus(_train_part(train), _held_out_part(train), split_words, MIN_COUNT)
    return Corpus(_all_lines(train), _all_lines(validation), split_words, MIN_COUNT)


def _all_lines(files: list[Path]) -> Iterator[str]:
    return (line for file in files for line in read_lines(file))


def _train_part(files: list[Path]) -> Iterator[str]:
    return (line for file in files for line in islice(read_lines(file), _train_lines(file)))


def _held_out_part(files: list[Path]) -> Iterator[str]:
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
