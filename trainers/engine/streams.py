"""A standard output or error that is closed, full or read by nobody does not end a run; the exit code tells of it."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

DESCRIPTORS = {"stdin": 0, "stdout": 1, "stderr": 2}

_broken: set[str] = set()
_visible_error = DESCRIPTORS["stderr"]


def protect_streams() -> None:
    """Puts streams in place that cannot fail. To be called by a program, before it opens anything.

    The number of a closed stream would be given to the next file that is opened, such as a checkpoint, and whatever
    TensorFlow and others write to standard error would go there.
    """
    for descriptor in DESCRIPTORS.values():
        if not _is_open(descriptor):
            _discard(descriptor)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed: Python has made none
            stream = open(DESCRIPTORS[name], "w", closefd=False)  # noqa: SIM115 - as long as the process lives
            setattr(sys, name, Protected(stream, name, lost=True))
        elif not isinstance(stream, Protected):
            with contextlib.suppress(AttributeError):  # what a test or a notebook has put there may be no text file
                stream.reconfigure(errors="backslashreplace")  # the name of a folder need not be text
            setattr(sys, name, Protected(stream, name))


def output_was_lost() -> bool:
    """Whether something could not be written to standard output or error."""
    return bool(_broken)


def visible_error() -> int:
    """The descriptor by which standard error is seen, also while `Protected.diverted` turns it away."""
    return _visible_error


class Protected:
    """A stream whose writing never fails. After the first failure, all goes nowhere."""

    def __init__(self, stream: Any, name: str, lost: bool = False) -> None:
        self._stream, self._name, self._lost = stream, name, lost

    def write(self, text: str) -> int:
        if self._lost:
            _broken.add(self._name)
        try:
            self._stream.write(text)
        except (OSError, ValueError):  # ValueError: somebody has closed it
            self._give_up()
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self._give_up()

    @contextlib.contextmanager
    def diverted(self, elsewhere: int) -> Iterator[int]:
        """For standard error: inside, what is written past Python goes elsewhere, what Python writes is seen.

        Yields the descriptor by which it is seen.
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
    """Everything that is written to a descriptor goes nowhere from here on."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != descriptor:
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
