"""Whether this process may use a folder: it can be written to, and no other process works in it."""

import contextlib
import fcntl
import logging
import os
import pathlib
import stat
from collections.abc import Iterator

from trainers.system.errors import ConfigError
from trainers.system.files import shown

RULE = "--output_dir must be a folder, or a path where one can be created"


def check_folder(name: str, to_write: bool = False) -> None:
    """Raises a `ConfigError` for a path that is not a folder and cannot become one.

    Args:
        name: The path.
        to_write: Whether to refuse a folder that is not writable or is on a full disk, too.
    """
    if os.fsencode(name) != name.encode(errors="replace"):
        raise ConfigError(f"--output_dir must have a name in UTF-8. Received: {shown(name)}")
    folder = _nearest_folder(name)
    if not to_write:
        return
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"--output_dir must be a folder that can be written to. Received: {name!r}, read-only")
    disk = os.statvfs(folder)
    if disk.f_blocks and not disk.f_bfree:
        raise ConfigError(f"--output_dir must be on a disk with space left. Received: {name!r} on a full one")


def refused(name: str | pathlib.Path, error: Exception) -> ConfigError:
    """The error for a folder that the system does not let us use."""
    reason = error.strerror if isinstance(error, OSError) else None
    text = str(name) if len(str(name)) <= 200 else f"{str(name)[:200]}... ({len(str(name))} characters)"
    return ConfigError(f"{RULE}. Received: {text!r} ({reason or error})")


def _nearest_folder(name: str) -> pathlib.Path:
    """The folder itself, or the existing one that it would be created in."""
    path = pathlib.Path(name)
    try:
        nearest = next(place for place in (path, *path.parents) if _exists(place))
        is_folder = stat.S_ISDIR(os.stat(nearest).st_mode)  # an error for a broken link
    except (OSError, ValueError) as error:
        raise refused(name, error) from error
    if not is_folder:
        what = "is a file" if nearest == path else f"is below the file {nearest}"
        raise ConfigError(f"{RULE}. Received: {name!r}, which {what}")
    return nearest


def _exists(place: pathlib.Path) -> bool:
    try:
        os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


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
