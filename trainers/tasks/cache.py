"""Caches what was computed from large data, so that the next start need not compute it again."""

import contextlib
import hashlib
import logging
import os
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from trainers.system.files import atomic_file

FOLDER = ".tfwarmup"  # in the folder of the data
FORMAT = 3  # of the cache files; increment it whenever their content changes
WORTH_SECONDS = 2.0  # results that took less time to compute are not cached

Arrays = Mapping[str, np.ndarray]


class DataCache:
    """Named arrays, with one file per name. A damaged file counts as missing.

    Args:
        data: The folder of the data. The cache is a subfolder of it unless `folder` is given.
        folder: Another folder for the cache, `--cache_dir`.
    """

    def __init__(self, data: Path, folder: str | None = None) -> None:
        self.root = data
        self.folder = Path(folder).expanduser() if folder else data / FOLDER
        # A folder given by the user may serve several data sets.
        self._prefix = hashlib.blake2b(os.fsencode(data.resolve()), digest_size=6).hexdigest() + "-" if folder else ""

    def read(self, name: str) -> Arrays | None:
        try:
            with self._path(name).open("rb") as file, np.load(file, allow_pickle=False) as stored:
                return {key: stored[key] for key in stored.files}  # verifies the checksums of the archive
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            return None

    def write(self, name: str, arrays: Arrays) -> None:
        """Stores arrays, replacing older ones. Only logs a warning if they cannot be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic_file(self._path(name)) as file:
                np.savez(file, **dict(arrays))  # type: ignore[arg-type]
        except OSError as error:
            logging.warning("cannot cache the processed data; set --cache_dir to a writable folder (%s)", error)

    def remembered(self, name: str, key: str, make: Callable[[], Arrays]) -> Arrays:
        """Returns the result of `make`, from the cache if it was stored there with the same key."""
        stored = self.read(name)
        if stored is not None and stored["key"].tobytes() == key.encode():
            return {field: array for field, array in stored.items() if field != "key"}
        began = time.monotonic()
        made = make()
        if time.monotonic() - began >= WORTH_SECONDS:
            self.write(name, {**made, "key": np.frombuffer(key.encode(), np.uint8)})
        return made

    def _path(self, name: str) -> Path:
        return self.folder / f"{self._prefix}{name}-{FORMAT}.npz"


def options_key(*options: object) -> str:
    """A short hash of some options."""
    return hashlib.blake2b(repr(options).encode(), digest_size=4).hexdigest()


def files_key(files: Iterable[Path], *options: object) -> str:
    """A hash of the names, sizes and modification times of files, and of the options they are processed with."""
    total = hashlib.blake2b(repr(options).encode(), digest_size=16)
    for file in files:
        with contextlib.suppress(OSError):  # reading the file will report the error
            status = file.stat()
            total.update(os.fsencode(f"{file.name}\0{status.st_size}\0{status.st_mtime_ns}\0"))
    return total.hexdigest()
