"""Pairs of sentences: from two files, from a folder as TFDS lays it out, or from a TFDS translation set by name."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_datasets as tfds

from trainers.engine.data import serving
from trainers.system.errors import DataError
from trainers.tasks.language.files import TEXT_SUFFIXES, existing_path, read_lines
from trainers.tasks.tfds_sets import check_files, make_builder, require_prepared

DATASETS = "numbers, text, folder, or the name of a TFDS translation set such as wmt16_translate/de-en"
TEST = "test"
VALIDATION_NAMES = ("validation", "valid", "val", "dev")  # possible names of the split, in order of preference

Pair = tuple[str, str]  # a sentence and its translation
Languages = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class TextSplits:
    """The pairs of a corpus, in order; a split that it does not have is None.

    A test split may have pairs with a blank side, so that its translations have the line numbers of its sentences.
    """

    train: list[Pair]
    validation: list[Pair] | None
    test: list[Pair] | None


def read_pairs(source: Path, target: Path, keep_blank: bool = False) -> list[Pair]:
    """Pairs of lines of two files; pairs with a blank side are left out unless `keep_blank` is true."""
    sources, targets = ([line.strip() for line in read_lines(path)] for path in (source, target))
    if len(sources) != len(targets):
        raise DataError(
            "The files of a parallel text must have the same number of lines. "
            f"Received: {len(sources)} in {source} and {len(targets)} in {target}"
        )
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
    return TextSplits(
        train, _split_pairs(folder, VALIDATION_NAMES, languages), _split_pairs(folder, (TEST,), languages)
    )


def _split_pairs(folder: Path, names: Sequence[str], languages: Languages) -> list[Pair] | None:
    for name in names:
        paths = [[folder / f"{language}.{name}{suffix}" for suffix in TEXT_SUFFIXES] for language in languages]
        found = [next(filter(Path.is_file, choices), None) for choices in paths]
        if found[0] and found[1]:
            return read_pairs(found[0], found[1], keep_blank=name == TEST)
        if found[0] or found[1]:
            missing = languages[0 if found[0] is None else 1]
            raise DataError(
                "A split must be there in both languages. "
                f"Received: {found[0] or found[1]} without {missing}.{name}.txt"
            )
    return None


def tfds_splits(name: str, data_dir: str | None, languages: Languages, download: bool) -> TextSplits:
    """The pairs of a TFDS set, which must be on disk unless `download` is true."""
    builder = prepared_builder(name, data_dir, languages, download)
    names = (("train",), VALIDATION_NAMES, (TEST,))
    found = [next((split for split in choices if split in builder.info.splits), None) for choices in names]
    train, validation, test = (None if split is None else _read_split(builder, split, languages) for split in found)
    if train is None:
        raise DataError(f"A TFDS set must have a split train. Received: {name} with {sorted(builder.info.splits)}")
    return TextSplits(train, validation, test)


def prepared_builder(name: str, data_dir: str | None, languages: Languages, download: bool) -> Any:
    builder = make_builder(name, data_dir, DATASETS)
    _check_languages(builder, languages)
    require_prepared(builder, name, download)
    return builder


def _check_languages(builder: Any, languages: Languages) -> None:
    features = dict(builder.info.features.items())
    if not all(type(features.get(language)) is tfds.features.Text for language in languages):
        raise DataError(
            f"A TFDS set must have a text in each of the languages {' and '.join(languages)}. "
            f"Received: {builder.info.full_name} with {features}"
        )


def _read_split(builder: Any, split: str, languages: Languages) -> list[Pair]:
    check_files(builder, split)
    place = f"{builder.data_dir}, split {split}"
    try:
        pairs = [(source.strip(), target.strip()) for source, target in _examples(builder, split, languages)]
    except tf.errors.OpError as error:
        raise DataError(
            f"The files of a TFDS set must be complete; prepare {builder.data_dir} again. Received: {error.message}"
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(f"A text must be UTF-8. Received: {place}, {error.object!r}") from error
    expected = builder.info.splits[split].num_examples
    if len(pairs) != expected:
        raise DataError(f"The files of {place} must have {expected} pairs. Received: {len(pairs)}")
    return _full_pairs(pairs, place)


def _examples(builder: Any, split: str, languages: Languages) -> Iterator[Pair]:
    spec = {language: tf.io.FixedLenFeature((), tf.string) for language in languages}
    files = [str(path) for path in builder.info.splits[split].filepaths]
    # Parsing whole batches, which TFDS does not do, is several times as fast.
    batches = tf.data.TFRecordDataset(files).batch(4096).map(lambda records: tf.io.parse_example(records, spec))
    for batch in serving(batches, ahead=2).as_numpy_iterator():
        sources, targets = (batch[language] for language in languages)
        yield from ((source.decode(), target.decode()) for source, target in zip(sources, targets, strict=True))


def _full_pairs(pairs: Iterable[Pair], place: str) -> list[Pair]:
    full = [pair for pair in pairs if all(pair)]
    if not full:
        raise DataError(f"A parallel text must have a pair of lines that are not blank. Received: none in {place}")
    return full
