"""The standard streams of a program: writing to one that is closed, full or unread does not end a run, but its exit
code; and what TensorFlow's C++ libraries print about the machine when they start is hidden.
"""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from trainers import LOG_LEVEL, QUIET_LEVEL
from trainers.system import signals

OUTPUT, ERROR = 1, 2

_lost = False  # whether something could not be written
_visible: int | None = None  # the standard error of Python in a program, also while that of C++ is hidden


class Protected:
    """A stream whose writes never fail."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._try(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def _try(self, call: Any, *arguments: str) -> None:
        global _lost
        try:
            call(*arguments)
        except (OSError, ValueError):  # ValueError: it has been closed
            _lost = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def protect_streams() -> None:
    """Replaces standard output and error by streams that cannot fail. Must be called before a program opens any file.

    Otherwise the next file that is opened, such as a checkpoint, would get the descriptor of a closed stream, and what
    TensorFlow and others write to standard error would go there.
    """
    global _visible
    while (opened := os.open(os.devnull, os.O_RDONLY)) <= ERROR:
        pass  # in the place of a closed stream; writing to it fails, as it should
    os.close(opened)
    if not isinstance(sys.stdout, Protected):
        sys.stdout = Protected(_open(OUTPUT) if sys.stdout is None else sys.stdout)  # type: ignore[assignment]
        with contextlib.suppress(AttributeError):  # in a test or a notebook it may not be a text file
            sys.stdout.reconfigure(errors="backslashreplace")  # the name of a folder may not be valid text
    if not isinstance(sys.stderr, Protected):
        if sys.stderr is None or _is_standard_error():
            _visible = os.dup(ERROR)
            sys.stderr = _open(_visible)
        sys.stderr = Protected(sys.stderr)  # type: ignore[assignment]


def output_was_lost() -> bool:
    """Whether something could not be written to standard output or error."""
    return _lost


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Inside, what C++ writes to standard error is held back, and shown if there is an exception.

    The libraries write before TensorFlow reads TF_CPP_MIN_LOG_LEVEL, or report harmless facts as errors, such as a
    missing GPU driver. What Python writes stays visible. In a process that is not one of the programs, or with a
    TF_CPP_MIN_LOG_LEVEL below 2, everything is. A signal takes effect at the end.
    """
    if _visible is None or os.environ.get(LOG_LEVEL, QUIET_LEVEL) in ("0", "1"):
        yield
        return
    with signals.postponed(), tempfile.TemporaryFile() as kept:
        before = os.dup(ERROR)
        os.dup2(kept.fileno(), ERROR)
        try:
            yield
        except Exception:
            kept.seek(0)
            sys.stderr.write(kept.read().decode(errors="backslashreplace"))
            raise
        finally:
            os.dup2(before, ERROR)
            os.close(before)


def _open(descriptor: int) -> Any:
    return open(descriptor, "w", 1, errors="backslashreplace", closefd=False)


def _is_standard_error() -> bool:
    """Whether Python's standard error is that of the process: not replaced by a test or a notebook."""
    try:
        return sys.stderr.fileno() == ERROR
    except (AttributeError, OSError, ValueError):
        return False
