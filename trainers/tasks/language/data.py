"""Loads texts: the language reference that comes with Python, a corpus of your own, or WikiText."""

import codecs
import dataclasses
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from trainers.engine.data import Data
from trainers.system.files import shown
from trainers.tasks.cache import DataCache, files_key, options_key
from trainers.tasks.files import TEXT_SUFFIXES, Splits, existing_path, read_lines, require_data
from trainers.tasks.language.config import TextFlags
from trainers.tasks.language.sources import TrainingBlocks, Windows
from trainers.tasks.language.vocabulary import UNKNOWN, Vocabulary, number_text
from trainers.tasks.language.wikitext import prepared_wikitext103, require_wikitext
from trainers.tasks.tfds_sets import read_texts

MIN_COUNT = 3  # rarer words of a text without <unk> become <unk>, as in WikiText
HELD_OUT = 10  # every tenth topic or line is for validation
LOOKED_AT = 2**16  # bytes to read to find out whether a file is text
SPLIT_NAMES = ("train", "val", "test")  # prefixes of file names; `val` includes `valid` and `validation`
CHOSEN_ON_TEST = "the best model is chosen on the test files: there are no others for validation"
# A word with the apostrophes (straight or curved) inside it, or a punctuation mark and its repetitions.
TOKEN = re.compile(rf"{UNKNOWN}|\w+(?:['\u2019]\w+)*|([^\w\s])\1*")


@dataclasses.dataclass(frozen=True)
class TextData(Data):
    """The splits of a text as numbers of words, and the vocabulary."""

    train: TrainingBlocks
    validation: Windows
    vocabulary: Vocabulary


@dataclasses.dataclass(frozen=True)
class Corpus:
    """The lines of each split of a text, and how to split a line into words."""

    lines: Splits[Iterable[str]]
    words: Callable[[str], list[str]]
    min_count: int = MIN_COUNT
    place: Path | None = None  # the folder of its files
    files: Sequence[Path] = ()


def load_text(options: TextFlags) -> TextData:
    """Loads a text in blocks of `context` tokens.

    Validation predicts every token but the first ones from at least `eval_context` others. The vocabulary has at most
    `vocabulary_size` words, including `<unk>` and `<eos>`. Nothing is fetched from the network unless `download` is
    true.
    """
    corpus = _corpus(options)
    texts = _numbered(corpus, options)
    for name in ("training", "validation"):
        tokens = len(texts[name]) - 1
        rule = f"`context` must be at most the number of tokens of the {name} text, {tokens}"
        require_data(tokens >= options.context, rule, f"context={options.context}")
    train = TrainingBlocks(texts["training"], options.context)
    validation, *test = (
        Windows(texts[name], options.context, options.eval_context)
        for name in ("validation", "test")
        if len(texts[name]) > options.context  # a test text shorter than a block is ignored
    )
    vocabulary = Vocabulary(texts["words"].tobytes().decode().split("\n"))
    return TextData(train, validation, vocabulary, test=test[0] if test else None, notes=corpus.lines.notes)


def _numbered(corpus: Corpus, options: TextFlags) -> Mapping[str, np.ndarray]:
    """The texts of a corpus as numbers of words, and its words; cached for the next start if the corpus is large."""

    def number() -> dict[str, np.ndarray]:
        split = corpus.lines.map(lambda lines: map(corpus.words, lines))
        train, vocabulary = number_text(split.train, options.vocabulary_size, corpus.min_count)
        validation = vocabulary.number_lines(split.validation)
        test = np.zeros(0, np.int32) if split.test is None else vocabulary.number_lines(split.test)
        words = np.frombuffer("\n".join(vocabulary.words).encode(), np.uint8)
        return {"training": train, "validation": validation, "test": test, "words": words}

    if corpus.place is None:
        return number()
    made_by = (options.dataset, options.vocabulary_size, corpus.min_count, TOKEN.pattern, HELD_OUT)
    kept = DataCache(corpus.place, options.cache_dir)
    return kept.remembered(f"text-{options_key(*made_by)}", files_key(corpus.files, *made_by), number)


def _corpus(options: TextFlags) -> Corpus:
    if options.dataset == "pydoc":
        return _pydoc()
    if options.dataset == "wikitext103":
        return _wikitext103(options)
    if options.dataset == "wikitext":
        return _wikitext(existing_path(options.data_dir, options.dataset))
    return _own_text(existing_path(options.data_dir, options.dataset, may_be_file=True))


def _wikitext(folder: Path) -> Corpus:
    files = require_wikitext(folder)
    test = read_lines(files["test"]) if "test" in files else None
    lines = Splits(read_lines(files["train"]), read_lines(files["valid"]), test)
    min_count = MIN_COUNT if ".raw" in files["train"].suffixes else 1
    return Corpus(lines, str.split, min_count, folder, tuple(files.values()))


def _wikitext103(options: TextFlags) -> Corpus:
    builder = prepared_wikitext103(options.data_dir, options.download)
    splits = builder.info.splits
    names = Splits("train", "validation", "test" if "test" in splits else None)
    files = [Path(path) for split in splits.values() for path in split.filepaths]
    lines = names.map(lambda name: (line for (line,) in read_texts(builder, name, ["text"])))
    return Corpus(lines, str.split, 1, Path(builder.data_dir), files)


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
    return Corpus(Splits(train, [line for name in held_out for line in lines[name]]), split_words)


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
    """The text files of a folder: all that are named as such, and all others that begin with UTF-8 text.

    The path of a file below the folder begins with its split: `train`, `val` or `test`; other files are left out. If no
    path begins with `train`, or `path` is a file, the last tenth of the lines of each file is for validation.
    """
    place, (files, notes) = (path.parent, ([path], ())) if path.is_file() else (path, _text_files(path))
    train, validation, test = (
        [file for file in files if str(file.relative_to(path)).lower().startswith(name)] for name in SPLIT_NAMES
    )
    if not train:
        lines = Splits(_part(files, held_out=False), _part(files, held_out=True), None, notes)
        return Corpus(lines, split_words, place=place, files=files)
    names = [shown(file.name) for file in files][:10]
    require_data(validation or test, "A folder with train* must hold val* or test* too", f"{path} with {names}")
    used = [*train, *validation, *test]
    if not validation:
        validation, test, notes = test, [], (CHOSEN_ON_TEST, *notes)
    lines = Splits(_all_lines(train), _all_lines(validation), _all_lines(test) if test else None, notes)
    return Corpus(lines, split_words, place=path, files=used)


def _text_files(folder: Path) -> tuple[list[Path], tuple[str, ...]]:
    """The files with text below a folder, in order of their names, and notes on the others."""
    visible = [file for file in sorted(folder.rglob("*")) if _is_visible_file(file, folder)]
    texts = [file for file in visible if file.name.lower().endswith(TEXT_SUFFIXES) or _begins_with_text(file)]
    require_data(texts, "`data_dir` must hold at least one file of UTF-8 text", folder)
    left_out = [shown(file.relative_to(folder)) for file in sorted({*visible} - {*texts})]
    note = f"left out {len(left_out)} files that are not text: {', '.join(left_out[:10])}"
    return texts, (note,) if left_out else ()


def _is_visible_file(file: Path, folder: Path) -> bool:
    return not any(part.startswith(".") for part in file.relative_to(folder).parts) and file.is_file()


def _begins_with_text(file: Path) -> bool:
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            begin = stream.read(LOOKED_AT)
        # The bytes may end in the middle of a character.
        text = codecs.getincrementaldecoder("utf-8")().decode(begin, final=len(begin) < LOOKED_AT)
    except (OSError, EOFError, ValueError, zlib.error):
        return False
    return "\0" not in text and bool(text.strip())


def _all_lines(files: Sequence[Path]) -> Iterator[str]:
    return (line for file in files for line in read_lines(file))


def _part(files: Sequence[Path], held_out: bool) -> Iterator[str]:
    """The last tenth of the lines of each file, or the lines before."""
    for file in files:
        count = sum(1 for _ in read_lines(file))
        first = count - count // HELD_OUT
        yield from islice(read_lines(file), first, None) if held_out else islice(read_lines(file), first)
