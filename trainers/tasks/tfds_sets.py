"""Helpers for any TensorFlow Datasets set: check the network, prepare the set, check that its files are complete."""

import pathlib
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import tensorflow_datasets as tfds

from trainers.system.errors import DataError

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


def require_prepared(builder: Any, name: str, download: bool) -> None:
    """Makes sure that the set is on disk. Downloads it, or unpacks archives fetched by hand, only if `download`."""
    if builder.info.splits:
        return
    manual = " ".join((builder.MANUAL_DOWNLOAD_INSTRUCTIONS or "").split())
    copy = f"or copy the prepared set to {builder.data_dir}"
    if not download:
        raise DataError(
            f"The TFDS set {name} must be on disk: pass --download, or run `tfds build {name} "
            f"--data_dir={builder.data_dir_root}`, {copy}. {manual and manual + ' '}Received: nothing there"
        )
    folder = pathlib.Path(builder.data_dir_root, "downloads/manual")
    advice = f"{f'{manual} Put them into {folder}' if manual else 'Try again'}, {copy}"
    urls = list(builder.url_infos or ())
    fetched_by_hand = manual and folder.exists() and any(folder.iterdir())
    if urls and not fetched_by_hand and not reachable(urls[0]):
        host = urllib.parse.urlsplit(urls[0]).netloc
        raise DataError(f"Downloading {name} needs a network. {advice}. Received: no answer from {host}")
    prepare(builder, name, advice)


def prepare(builder: Any, name: str, advice: str) -> None:
    """Downloads and prepares a set; whatever its script raises becomes a `DataError` with the advice."""
    try:
        builder.download_and_prepare()
    except DataError:
        raise
    # For example, an AssertionError if archives that must be fetched by hand are missing.
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}"
        raise DataError(f"{name} must be prepared once. {advice}. Received: {reason}") from error


def check_files(builder: Any, split: str) -> None:
    missing = [path for path in builder.info.splits[split].filepaths if not path.exists()]
    if missing:
        raise DataError(
            f"Every file of a TFDS set must be there; copy or prepare {builder.data_dir} again. "
            f"Received: no {missing[0]}, and {len(missing) - 1} more are missing"
        )
