"""Errors that end a program early, each with what a user must change."""

import errno
from typing import Any


class DataError(ValueError):
    """Data that cannot be used, with a message that says what to do."""


class DivergedError(Exception):
    """The loss is no longer finite, or updates have stopped."""

    status = "diverged"


class IncompleteError(Exception):
    """Work that has ended without all that was planned. The message says what is missing.

    Args:
        lacking: What is missing, such as "1 failed, 2 missing".
        said: The results so far, for the user to read.
        advice: The reason, and how to continue.
    """

    status = "incomplete"

    def __init__(self, lacking: str, said: str = "", advice: str = "") -> None:
        super().__init__(lacking)
        self.said, self.advice = said, advice


class ConfigError(ValueError):
    """A value that no run can start with: the rule, then the value received."""


def require(holds: Any, rule: str, received: Any) -> None:
    """Raises `ConfigError` with the rule and the value received unless the rule holds."""
    if not holds:
        raise ConfigError(f"{rule}. Received: {received!r}")


# Other system errors are bugs of these programs.
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM)
DISK_RULE = "The disk must have space left; free some and run the same command again to resume"
# TensorFlow and HDF5 report a full disk only in the text of an error.
DISK_WORDS = ("No space left on device", "Disk quota exceeded")


def shortage(error: BaseException) -> str:
    """The message for an error that is due to the machine; empty for any other."""
    first = str(error).strip().partition("\n")[0]
    if isinstance(error, OSError) and error.errno in DISK:
        place = f" ({error.filename})" if error.filename else ""
        return f"{DISK_RULE}. Received: {error.strerror}{place}"
    if any(words in str(error) for words in DISK_WORDS):
        return f"{DISK_RULE}. Received: {first}"
    if isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError":
        return (
            "The run must fit into memory: try a smaller model, a smaller batch or a larger --accumulate. "
            f"Received: {first or 'out of memory'}"
        )
    return ""
