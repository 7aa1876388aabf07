"""What a start has learned of large data, kept for the next one."""

import contextlib
import hashlib
import logging
import os
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from trainers.engine.files import atomic_file

FOLDER = ".tfwarmup"  # in the folder of the data
FORMAT = 1  # of all that is kept: one more whenever that changes
WORTH_SECONDS = 2.0  # of work: what took less is not kept

Arrays = Mapping[str, np.ndarray]


class DataCache:
    """Arrays by name, each in a file of its own. A file that is damaged counts as missing.

    Args:
        data: The folder of the data, which the files are kept in unless `folder` is given.
        folder: Another one, `--cache_dir`.
    """

    def __init__(self, data: Path, folder: str | None = None) -> None:
        self.root = data
        self.folder = Path(folder).expanduser() if folder else data / FOLDER
        # A folder of one's own may serve several sets of data.
        self._prefix = hashlib.blake2b(os.fsencode(data.resolve()), digest_size=6).hexdigest() + "-" if folder else ""

    def read(self, name: str) -> Arrays | None:
        try:
            with self._path(name).open("rb") as file, np.load(file, allow_pickle=False) as stored:
                return {key: stored[key] for key in stored.files}  # the checksums of the archive are compared here
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            return None

    def write(self, name: str, arrays: Arrays) -> None:
        """Keeps arrays in the place of older ones; where that cannot be, only a word is lost."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic_file(self._path(name)) as file:
                np.savez(file, **dict(arrays))  # type: ignore[arg-type]
        except OSError as error:
            logging.warning("the next start works on the data again; --cache_dir names a folder for it (%s)", error)

    def remembered(self, name: str, key: str, make: Callable[[], Arrays]) -> Arrays:
        """What `make` returns, from the cache if it was made there for the same key."""
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
    """A few letters that differ between options."""
    return hashlib.blake2b(repr(options).encode(), digest_size=4).hexdigest()


def files_key(files: Iterable[Path], *options: object) -> str:
    """A checksum of the names, sizes and times of change of files, and of what is made of them."""
    total = hashlib.blake2b(repr(options).encode(), digest_size=16)
    for file in files:
        with contextlib.suppress(OSError):  # whoever reads it will say what is wrong
            status = file.stat()
            total.update(os.fsencode(f"{file.name}\0{status.st_size}\0{status.st_mtime_ns}\0"))
    return total.hexdigest()
