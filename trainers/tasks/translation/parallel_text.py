"""Pairs of sentences: numbers in words, two files, a folder as TFDS lays it out, or a TFDS translation set by name."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow_datasets as tfds

from trainers.system.errors import DataError
from trainers.tasks.files import TEXT_SUFFIXES, existing_path, first_file, read_lines, require_data
from trainers.tasks.tfds_sets import make_builder, read_texts, require_prepared
from trainers.tasks.translation.config import ParallelTextFlags
from trainers.tasks.translation.number_words import number_pairs

DATASETS = "numbers, text, folder, or the name of a TFDS translation set such as wmt16_translate/de-en"
TEST = "test"
SIDES = ("source", "target")
VALIDATION_NAMES = ("validation", "valid", "val", "dev")  # possible names of the split, in order of preference
HELD_OUT = 10  # the last tenth is for validation if a text has no validation split
MOST_HELD_OUT = 2000  # pairs
MOST_NUMBERS = 1000  # pairs of numbers held out for validation, and as many for the test

Pair = tuple[str, str]  # a sentence and its translation
Languages = tuple[str, str]


class ParallelSplits(NamedTuple):
    """The pairs of a text, in order; a split that it does not have is None.

    A test split may have pairs with a blank side, so that its translations have the line numbers of its sentences.
    """

    train: list[Pair]
    validation: list[Pair] | None = None
    test: list[Pair] | None = None


class ParallelText(NamedTuple):
    """A text that has not been read yet, the folder of its files, and all files that reading it needs."""

    read: Callable[[], ParallelSplits]
    place: Path | None = None
    files: Sequence[Path] = ()


def find_text(options: ParallelTextFlags) -> ParallelText:
    """The text called `dataset`; files for validation or test replace its own splits.

    If there is no validation split, the last tenth of the text, at most 2,000 pairs, is held out.
    """
    own = _own_text(options)
    validation, test = (
        [_path(getattr(options, f"{part}_{side}")) for side in SIDES] if getattr(options, f"{part}_source") else []
        for part in ("validation", "test")
    )

    def read() -> ParallelSplits:
        splits = own.read()
        if validation:
            splits = splits._replace(validation=read_pairs(validation))
        if test:
            splits = splits._replace(test=read_pairs(test, keep_blank=True))
        if splits.validation is not None:
            return splits
        first = len(splits.train) - _held_out(len(splits.train))
        require_data(first, "A parallel text without a part for validation must have 2 pairs", len(splits.train))
        return splits._replace(train=splits.train[:first], validation=splits.train[first:])

    return ParallelText(read, own.place, [*own.files, *validation, *test])


def _own_text(options: ParallelTextFlags) -> ParallelText:
    languages = (options.source_language, options.target_language)
    if options.dataset == "text":
        own = [_path(options.source), _path(options.target)]
        return ParallelText(lambda: ParallelSplits(read_pairs(own)), own[0].parent, own)
    if options.dataset == "numbers":
        return ParallelText(lambda: _numbers(options.pairs, languages))
    if options.dataset == "folder":
        folder = existing_path(options.data_dir, options.dataset)
        files = sorted(path for path in folder.glob("*.txt*") if path.is_file())
        return ParallelText(lambda: folder_splits(folder, languages), folder, files)
    builder = prepared_builder(options.dataset, options.data_dir, languages, options.download)
    files = [Path(path) for split in builder.info.splits.values() for path in split.filepaths]
    return ParallelText(lambda: tfds_splits(builder, languages), Path(builder.data_dir), files)


def _path(name: str | None) -> Path:
    return Path(name or "").expanduser()


def _numbers(pairs: int, languages: Languages) -> ParallelSplits:
    """Numbers for training, and held-out numbers, half of them for validation and half for the test.

    They are the same for every seed of a run.
    """
    count = 2 * min(MOST_NUMBERS, _held_out(pairs))
    train, held_out = number_pairs(pairs, 0, held_out=False), number_pairs(count, 1, held_out=True)
    if languages == ("de", "en"):
        train, held_out = ([(german, english) for english, german in each] for each in (train, held_out))
    return ParallelSplits(train, held_out[::2], held_out[1::2])


def _held_out(pairs: int) -> int:
    return min(MOST_HELD_OUT, -(-pairs // HELD_OUT))


def read_pairs(files: Sequence[Path], keep_blank: bool = False) -> list[Pair]:
    """Pairs of lines of two files; pairs with a blank side are left out unless `keep_blank` is true."""
    source, target = files
    sources, targets = ([line.strip() for line in read_lines(path)] for path in files)
    rule = "The files of a parallel text must have the same number of lines"
    received = f"{len(sources)} in {source} and {len(targets)} in {target}"
    require_data(len(sources) == len(targets), rule, received)
    pairs = list(zip(sources, targets, strict=True))
    full = _full_pairs(pairs, f"{source} and {target}")
    return pairs if keep_blank else full


def folder_splits(folder: Path, languages: Languages) -> ParallelSplits:
    """The pairs of a folder with the files of `tfds.TranslateFolder`, `en.train.txt` and such, compressed or not."""
    train = _split_pairs(folder, ("train",), languages)
    if train is None:
        raise DataError(
            f"`data_dir` must hold {' and '.join(f'{language}.train.txt' for language in languages)}, or such files "
            f"named .txt.gz. Received: {folder} with {sorted(path.name for path in folder.glob('*'))[:10]}"
        )
    validation, test = (_split_pairs(folder, names, languages) for names in (VALIDATION_NAMES, (TEST,)))
    return ParallelSplits(train, validation, test)


def _split_pairs(folder: Path, names: Sequence[str], languages: Languages) -> list[Pair] | None:
    for name in names:
        source, target = (
            first_file(folder, [f"{language}.{name}{suffix}" for suffix in TEXT_SUFFIXES]) for language in languages
        )
        if source and target:
            return read_pairs((source, target), keep_blank=name == TEST)
        missing = f"{languages[0 if source is None else 1]}.{name}.txt"
        found = source or target
        require_data(not found, "A split must be there in both languages", f"{found} without {missing}")
    return None


def tfds_splits(builder: Any, languages: Languages) -> ParallelSplits:
    """The pairs of a prepared TFDS set."""
    splits, name = builder.info.splits, builder.info.full_name
    require_data("train" in splits, "A TFDS set must have a split train", f"{name} with {sorted(splits)}")
    validation, test = (next(filter(splits.__contains__, names), None) for names in (VALIDATION_NAMES, (TEST,)))
    return ParallelSplits(
        *(split and _read_split(builder, split, languages) for split in ("train", validation, test))  # type: ignore
    )


def prepared_builder(name: str, data_dir: str | None, languages: Languages, download: bool) -> Any:
    builder = make_builder(name, data_dir, DATASETS)
    features = dict(builder.info.features.items())
    require_data(
        all(type(features.get(language)) is tfds.features.Text for language in languages),
        f"A TFDS set must have a text in each of the languages {' and '.join(languages)}",
        f"{builder.info.full_name} with {features}",
    )
    require_prepared(builder, name, download)
    return builder


def _read_split(builder: Any, split: str, languages: Languages) -> list[Pair]:
    pairs = [(source.strip(), target.strip()) for source, target in read_texts(builder, split, languages)]
    return _full_pairs(pairs, f"{builder.data_dir}, split {split}")


def _full_pairs(pairs: Iterable[Pair], place: str) -> list[Pair]:
    full = [pair for pair in pairs if all(pair)]
    require_data(full, "A parallel text must have a pair of lines that are not blank", f"none in {place}")
    return full
