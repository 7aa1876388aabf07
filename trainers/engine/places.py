"""Checks whether a program can write to a folder, before anything is loaded. Changes nothing."""

import os
import pathlib

from trainers.engine.flags import ConfigError

RULE = "--output_dir must be a folder, or a path where one can be created"


def check_folder(name: str) -> None:
    """Raises a `ConfigError` for a path that is not a folder and cannot become one."""
    _nearest_folder(name)


def check_writable(name: str) -> None:
    """Like `check_folder`, but also refuses a folder that is not writable or is on a full disk."""
    folder = _nearest_folder(name)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"--output_dir must be a folder that can be written to. Received: {name!r}, read-only")
    disk = os.statvfs(folder)
    if disk.f_blocks and not disk.f_bfree:
        raise ConfigError(f"--output_dir must be on a disk with space left. Received: {name!r} on a full one")


def refused(name: str | pathlib.Path, error: Exception) -> ConfigError:
    """The error for a folder that the system does not let us use."""
    reason = error.strerror if isinstance(error, OSError) else None
    return ConfigError(f"{RULE}. Received: {_shortened(str(name))!r} ({reason or error})")


def _nearest_folder(name: str) -> pathlib.Path:
    """The folder itself, or the existing one that it would be created in."""
    path = pathlib.Path(name)
    try:
        nearest = next(place for place in (path, *path.parents) if _exists(place))
    except (OSError, ValueError) as error:
        raise refused(name, error) from error
    if not nearest.is_dir():
        what = "is a file" if nearest == path else f"is below the file {nearest}"
        raise ConfigError(f"{RULE}. Received: {name!r}, which {what}")
    return nearest


def _exists(place: pathlib.Path) -> bool:
    """Whether a path exists. Broken links are errors."""
    try:
        os.stat(place)
    except FileNotFoundError:
        if os.path.islink(place):
            raise
        return False
    except NotADirectoryError:
        return False
    return True


def _shortened(name: str) -> str:
    return name if len(name) <= 200 else f"{name[:200]}... ({len(name)} characters)"
