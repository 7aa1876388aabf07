"""Locks a folder for one process at a time. The kernel releases the lock when the process ends, even if killed."""

import contextlib
import fcntl
import logging
import os
import pathlib
from collections.abc import Iterator

from trainers.engine.flags import ConfigError
from trainers.engine.places import refused

LOCK = ".lock"

_held: set[int] = set()


class InUseError(ConfigError):
    """Another process works in the folder."""


@contextlib.contextmanager
def locked(folder: pathlib.Path) -> Iterator[None]:
    """Creates the folder if needed and holds its lock. Raises an `InUseError` if another process has it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise refused(folder, error) from error
    try:
        _lock(file, folder)
        _held.add(file)
        yield
    finally:
        _held.discard(file)
        os.close(file)


def check_unlocked(folder: pathlib.Path) -> None:
    """Raises an `InUseError` if another process works in the folder; changes nothing."""
    try:
        file = os.open(folder / LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return
    except OSError as error:
        raise refused(folder / LOCK, error) from error
    try:
        _lock(file, folder)
    finally:
        os.close(file)


def _lock(file: int, folder: pathlib.Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InUseError(
            f"--output_dir must not be in use by another process. Received: {folder}, whose run is still active"
        ) from error
    except OSError as error:  # some network file systems have no locks
        logging.warning("%s cannot be locked (%s): do not start the same run twice", folder, error)


def _close_in_child() -> None:
    """Closes the lock files in a forked child, which would otherwise keep the locks of a parent that was killed."""
    for file in _held:
        os.close(file)
    _held.clear()


os.register_at_fork(after_in_child=_close_in_child)
