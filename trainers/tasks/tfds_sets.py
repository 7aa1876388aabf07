"""TensorFlow Datasets sets of any task: prepare one, check that its files are complete, read its texts."""

import contextlib
import pathlib
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_datasets as tfds

from trainers.engine.data import serving
from trainers.system.errors import DataError
from trainers.tasks.files import require_data

NETWORK_SECONDS = 5


def reachable(url: str) -> bool:
    """Whether the host of a URL answers at all. TFDS itself tries for 205 seconds before it gives up."""
    host = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(url))
    try:
        with urllib.request.urlopen(urllib.request.Request(host, method="HEAD"), timeout=NETWORK_SECONDS):
            return True
    except urllib.error.HTTPError:
        return True  # an error status is an answer too
    except OSError:
        return False


def make_builder(name: str, data_dir: str | None, choices: str) -> Any:
    """The builder of the set called `name`; `choices` describes the valid names."""
    try:
        return tfds.builder(name, data_dir=data_dir)
    except ValueError as error:  # an unknown name or config, or an invalid name
        raise DataError(
            f"`dataset` must be {choices}. Received: dataset={name!r} ({str(error).splitlines()[0]})"
        ) from error


def require_prepared(builder: Any, name: str, download: bool, by_hand: str = "") -> None:
    """Makes sure that the set is on disk. Downloads it, or unpacks archives fetched by hand, only if `download`.

    `by_hand` is another way to get the set than TFDS' own program.
    """
    if builder.info.splits:
        return
    manual = " ".join((builder.MANUAL_DOWNLOAD_INSTRUCTIONS or "").split())
    copy = f"or copy the prepared set to {builder.data_dir}"
    if not download:
        build = by_hand or f"run `tfds build {name} --data_dir={builder.data_dir_root}`"
        raise DataError(
            f"The TFDS set {name} must be on disk: pass --download, or {build}, {copy}. "
            f"{manual and manual + ' '}Received: nothing there"
        )
    folder = pathlib.Path(builder.data_dir_root, "downloads/manual")
    advice = f"{manual} Put them into {folder}" if manual else ", or ".join(filter(None, ["Try again", by_hand]))
    urls = list(builder.url_infos or ())
    fetched_by_hand = manual and folder.exists() and any(folder.iterdir())
    if urls and not fetched_by_hand and not reachable(urls[0]):
        host = urllib.parse.urlsplit(urls[0]).netloc
        raise DataError(f"Downloading {name} needs a network. {advice}, {copy}. Received: no answer from {host}")
    prepare(builder, name, f"{advice}, {copy}")


def prepare(builder: Any, name: str, advice: str) -> None:
    """Downloads and prepares a set; whatever its script raises becomes a `DataError` with the advice."""
    try:
        builder.download_and_prepare()
    # For example, an AssertionError if archives that must be fetched by hand are missing.
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}"
        raise DataError(f"{name} must be prepared once. {advice}. Received: {reason}") from error


def check_files(builder: Any, split: str) -> None:
    missing = [path for path in builder.info.splits[split].filepaths if not path.exists()]
    rule = f"Every file of a TFDS set must be there; copy or prepare {builder.data_dir} again"
    require_data(not missing, rule, f"no {missing and missing[0]}, and {len(missing) - 1} more are missing")


@contextlib.contextmanager
def complete_files(builder: Any) -> Iterator[None]:
    """Says so in a `DataError` if a file of the set turns out to be damaged."""
    try:
        yield
    except tf.errors.OpError as error:
        rule = f"The files of a TFDS set must be complete; prepare {builder.data_dir} again"
        raise DataError(f"{rule}. Received: {error.message}") from error


def read_texts(builder: Any, split: str, keys: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The texts called `keys` of every example of a prepared split, in order."""
    check_files(builder, split)
    spec = {key: tf.io.FixedLenFeature((), tf.string) for key in keys}
    files = [str(path) for path in builder.info.splits[split].filepaths]
    # Parsing whole batches, which TFDS does not do, is several times as fast.
    batches = tf.data.TFRecordDataset(files).batch(4096).map(lambda records: tf.io.parse_example(records, spec))
    place, count = f"split {split} of {builder.data_dir}", 0
    with complete_files(builder):
        for batch in serving(batches, ahead=2).as_numpy_iterator():
            for row in zip(*(batch[key] for key in keys), strict=True):
                count += 1
                try:
                    yield tuple(text.decode() for text in row)
                except UnicodeDecodeError as error:
                    raise DataError(f"A text must be UTF-8. Received: {place}, {error.object!r}") from error
    expected = builder.info.splits[split].num_examples
    require_data(count == expected, f"The files of {place} must have {expected} examples", count)
