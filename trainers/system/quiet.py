"""Hides what TensorFlow's C++ libraries print about the machine when a program starts.

They write to standard error before TensorFlow reads TF_CPP_MIN_LOG_LEVEL, or report harmless facts as errors, such as a
missing GPU driver. Therefore the file descriptor itself is redirected while TensorFlow is imported and finds devices.
"""

import contextlib
import faulthandler
import os
import sys
from collections.abc import Iterator

from trainers import LOG_LEVEL, QUIET_LEVEL
from trainers.system import signals
from trainers.system.streams import DESCRIPTORS, Protected


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Inside, what C++ writes to standard error is held back, and shown if there is an exception.

    What Python writes stays visible. In a process that is not one of the programs, or with a TF_CPP_MIN_LOG_LEVEL below
    2, everything is visible. A signal takes effect at the end, so that it cannot leave the descriptor redirected.
    """
    stream = sys.stderr
    if not isinstance(stream, Protected) or not _is_standard_error(stream) or not _wanted():
        yield
        return
    with signals.postponed():
        kept = os.memfd_create("stderr") if hasattr(os, "memfd_create") else os.open(os.devnull, os.O_RDWR)
        try:
            with stream.diverted(kept) as visible, _showing_crashes(visible):
                yield
        except Exception:
            _show(kept)
            raise
        finally:
            os.close(kept)


def _is_standard_error(stream: Protected) -> bool:
    """Whether the stream is the descriptor itself: not replaced by a test or a notebook, nor redirected already."""
    try:
        return bool(stream.fileno() == DESCRIPTORS["stderr"])
    except (AttributeError, OSError, ValueError):
        return False


def _wanted() -> bool:
    level = os.environ.get(LOG_LEVEL, QUIET_LEVEL)
    return not (level.isdecimal() and int(level) < int(QUIET_LEVEL))


@contextlib.contextmanager
def _showing_crashes(visible: int) -> Iterator[None]:
    """Inside, a crash in C++ prints where it happened, since the output that is held back will be lost."""
    before = faulthandler.is_enabled()  # by absl's `app.run`, for the redirected descriptor
    faulthandler.enable(visible)
    try:
        yield
    finally:
        faulthandler.disable()
        if before:
            faulthandler.enable(DESCRIPTORS["stderr"])


def _show(kept: int) -> None:
    with contextlib.suppress(OSError):
        os.lseek(kept, 0, os.SEEK_SET)
        while text := os.read(kept, 65536):
            sys.stderr.write(text.decode(errors="backslashreplace"))
        sys.stderr.flush()
