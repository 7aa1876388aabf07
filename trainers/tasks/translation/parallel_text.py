"""Pairs of sentences: numbers in words, two files, a folder as TFDS lays it out, or a TFDS translation set by name."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow_datasets as tfds

from trainers.system.errors import DataError
from trainers.tasks.files import TEXT_SUFFIXES, Splits, existing_path, read_lines, require_data
from trainers.tasks.tfds_sets import make_builder, read_texts, require_prepared
from trainers.tasks.translation.config import ParallelTextFlags
from trainers.tasks.translation.number_words import number_pairs

DATASETS = "numbers, text, folder, or the name of a TFDS translation set such as wmt16_translate/de-en"
TEST = "test"
VALIDATION_NAMES = ("validation", "valid", "val", "dev")  # possible names of the split, in order of preference
HELD_OUT = 10  # the last tenth is for validation if a text has no validation split
MOST_HELD_OUT = 2000  # pairs
MOST_NUMBERS = 1000  # pairs of numbers held out for validation, and as many for the test

Pair = tuple[str, str]  # a sentence and its translation
Languages = tuple[str, str]


class TextSplits(NamedTuple):
    """The pairs of a corpus, in order; a split that it does not have is None.

    A test split may have pairs with a blank side, so that its translations have the line numbers of its sentences.
    """

    train: list[Pair]
    validation: list[Pair] | None = None
    test: list[Pair] | None = None


def load_pairs(options: ParallelTextFlags) -> Splits[list[Pair]]:
    """The pairs of the text called `dataset`; files for validation or test replace its own splits.

    If there is no validation split, the last tenth of the text, at most 2,000 pairs, is held out.
    """
    train, validation, test = _own_splits(options)
    if options.validation_source:
        validation = _file_pairs(options.validation_source, options.validation_target)
    if options.test_source:
        test = _file_pairs(options.test_source, options.test_target, keep_blank=True)
    if validation is not None:
        return Splits(train, validation, test)
    first = len(train) - _held_out(len(train))
    require_data(first, "A parallel text without a part for validation must have 2 pairs", len(train))
    return Splits(train[:first], train[first:], test)


def corpus_files(options: ParallelTextFlags) -> tuple[Path, list[Path]]:
    """The folder of a corpus that consists of files, and all files that are read; does not check their content."""
    own = [Path(name).expanduser() for name in (options.source, options.target) if name]
    if options.dataset == "text":
        place = own[0].parent
    elif options.dataset == "folder":
        place = existing_path(options.data_dir, options.dataset)
        own = sorted(path for path in place.glob("*.txt*") if path.is_file())
    else:
        builder = prepared_builder(options.dataset, options.data_dir, _languages(options), options.download)
        place = Path(builder.data_dir)
        own = [Path(path) for split in builder.info.splits.values() for path in split.filepaths]
    given = (options.validation_source, options.validation_target, options.test_source, options.test_target)
    return place, own + [Path(name).expanduser() for name in given if name]


def _languages(options: ParallelTextFlags) -> Languages:
    return options.source_language, options.target_language


def _own_splits(options: ParallelTextFlags) -> TextSplits:
    if options.dataset == "text":
        return TextSplits(_file_pairs(options.source, options.target))
    if options.dataset == "numbers":
        return _numbers(options.pairs, _languages(options))
    if options.dataset == "folder":
        return folder_splits(options.data_dir, _languages(options))
    return tfds_splits(options.dataset, options.data_dir, _languages(options), options.download)


def _numbers(pairs: int, languages: Languages) -> TextSplits:
    """Numbers for training, and held-out numbers, half of them for validation and half for the test.

    They are the same for every seed of a run.
    """
    count = 2 * min(MOST_NUMBERS, _held_out(pairs))
    train, held_out = number_pairs(pairs, 0, held_out=False), number_pairs(count, 1, held_out=True)
    if languages == ("de", "en"):
        train, held_out = ([(german, english) for english, german in each] for each in (train, held_out))
    return TextSplits(train, held_out[::2], held_out[1::2])


def _held_out(pairs: int) -> int:
    return min(MOST_HELD_OUT, -(-pairs // HELD_OUT))


def _file_pairs(source: str | None, target: str | None, keep_blank: bool = False) -> list[Pair]:
    return read_pairs(Path(source or "").expanduser(), Path(target or "").expanduser(), keep_blank)


def read_pairs(source: Path, target: Path, keep_blank: bool = False) -> list[Pair]:
    """Pairs of lines of two files; pairs with a blank side are left out unless `keep_blank` is true."""
    sources, targets = ([line.strip() for line in read_lines(path)] for path in (source, target))
    rule = "The files of a parallel text must have the same number of lines"
    received = f"{len(sources)} in {source} and {len(targets)} in {target}"
    require_data(len(sources) == len(targets), rule, received)
    pairs = list(zip(sources, targets, strict=True))
    full = _full_pairs(pairs, f"{source} and {target}")
    return pairs if keep_blank else full


def folder_splits(data_dir: str | None, languages: Languages) -> TextSplits:
    """The pairs of a folder with the files of `tfds.TranslateFolder`, `en.train.txt` and such, compressed or not."""
    folder = existing_path(data_dir, "folder")
    train = _split_pairs(folder, ("train",), languages)
    if train is None:
        raise DataError(
            f"`data_dir` must hold {' and '.join(f'{language}.train.txt' for language in languages)}, or such files "
            f"named .txt.gz. Received: {folder} with {sorted(path.name for path in folder.glob('*'))[:10]}"
        )
    validation, test = (_split_pairs(folder, names, languages) for names in (VALIDATION_NAMES, (TEST,)))
    return TextSplits(train, validation, test)


def _split_pairs(folder: Path, names: Sequence[str], languages: Languages) -> list[Pair] | None:
    for name in names:
        paths = [[folder / f"{language}.{name}{suffix}" for suffix in TEXT_SUFFIXES] for language in languages]
        source, target = (next(filter(Path.is_file, choices), None) for choices in paths)
        if source and target:
            return read_pairs(source, target, keep_blank=name == TEST)
        missing = f"{languages[0 if source is None else 1]}.{name}.txt"
        found = source or target
        require_data(not found, "A split must be there in both languages", f"{found} without {missing}")
    return None


def tfds_splits(name: str, data_dir: str | None, languages: Languages, download: bool) -> TextSplits:
    """The pairs of a TFDS set, which must be on disk unless `download` is true."""
    builder = prepared_builder(name, data_dir, languages, download)
    splits = builder.info.splits
    require_data("train" in splits, "A TFDS set must have a split train", f"{name} with {sorted(splits)}")
    validation, test = (next(filter(splits.__contains__, names), None) for names in (VALIDATION_NAMES, (TEST,)))
    return TextSplits(
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
