"""What every set of TensorFlow Datasets needs, whatever is in it: a network that answers, preparing, whole files."""

import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from trainers.engine.data import DataError

NETWORK_SECONDS = 5


def reachable(url: str) -> bool:
    """Whether the host of a URL answers at all. TFDS itself tries for 205 seconds before it gives up."""
    host = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(url))
    try:
        with urllib.request.urlopen(urllib.request.Request(host, method="HEAD"), timeout=NETWORK_SECONDS):
            return True
    except urllib.error.HTTPError:
        return True  # an answer, if not a friendly one
    except OSError:
        return False


def prepare(builder: Any, name: str, advice: str) -> None:
    """Downloads and prepares a set; whatever its script raises becomes a `DataError` with the advice."""
    try:
        builder.download_and_prepare()
    except DataError:
        raise
    # AssertionError, for one, if archives that one has to fetch by hand are missing.
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
