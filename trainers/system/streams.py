"""Lets a run continue if standard output or error is closed, full or unread; the exit code then reports it."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

DESCRIPTORS = {"stdin": 0, "stdout": 1, "stderr": 2}

_broken: set[str] = set()
_visible_error = DESCRIPTORS["stderr"]


def protect_streams() -> None:
    """Replaces the standard streams by ones that cannot fail. Must be called before a program opens any file.

    Otherwise the next file that is opened, such as a checkpoint, would get the descriptor of a closed stream, and what
    TensorFlow and others write to standard error would go there.
    """
    for descriptor in DESCRIPTORS.values():
        if not _is_open(descriptor):
            _discard(descriptor)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed: Python has not created it
            stream = open(DESCRIPTORS[name], "w", closefd=False)  # noqa: SIM115 - as long as the process lives
            setattr(sys, name, Protected(stream, name, lost=True))
        elif not isinstance(stream, Protected):
            with contextlib.suppress(AttributeError):  # in a test or a notebook it may not be a text file
                stream.reconfigure(errors="backslashreplace")  # the name of a folder may not be valid text
            setattr(sys, name, Protected(stream, name))


def output_was_lost() -> bool:
    """Whether something could not be written to standard output or error."""
    return bool(_broken)


def visible_error() -> int:
    """The descriptor of the visible standard error, also while `Protected.diverted` redirects it."""
    return _visible_error


class Protected:
    """A stream whose writes never fail. After the first failure, all output is discarded."""

    def __init__(self, stream: Any, name: str, lost: bool = False) -> None:
        self._stream, self._name, self._lost = stream, name, lost

    def write(self, text: str) -> int:
        if self._lost:
            _broken.add(self._name)
        try:
            self._stream.write(text)
        except (OSError, ValueError):  # ValueError: it has been closed
            self._give_up()
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self._give_up()

    @contextlib.contextmanager
    def diverted(self, elsewhere: int) -> Iterator[int]:
        """For standard error: inside, output of C++ libraries goes `elsewhere`, Python's own stays visible.

        Yields the visible descriptor.
        """
        global _visible_error
        number, before = DESCRIPTORS["stderr"], self._stream
        self.flush()
        visible = os.dup(number)
        try:
            self._stream = open(visible, "w", 1, before.encoding, "backslashreplace", closefd=False)  # noqa: SIM115
            _visible_error = visible
            os.dup2(elsewhere, number)
            yield visible
        finally:
            self.flush()
            os.dup2(visible, number)
            _visible_error, self._stream = number, before
            os.close(visible)

    def _give_up(self) -> None:
        _broken.add(self._name)
        with contextlib.suppress(OSError):
            _discard(DESCRIPTORS[self._name])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _discard(descriptor: int) -> None:
    """Discards everything that is written to a descriptor from now on."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != descriptor:
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
