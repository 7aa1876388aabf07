"""No lines about the machine from TensorFlow's C++ libraries when a program starts.

They go to standard error before TensorFlow reads TF_CPP_MIN_LOG_LEVEL, or as errors that are none, such as a missing
GPU driver. Therefore the file descriptor itself is turned away while TensorFlow is imported and looks for devices.
"""

import contextlib
import faulthandler
import os
import sys
from collections.abc import Iterator

from trainers import LOG_LEVEL, QUIET_LEVEL
from trainers.engine import signals
from trainers.engine.streams import DESCRIPTORS, Protected


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Inside, what C++ writes to standard error is kept back, and shown if there is an exception.

    What Python writes is seen as always. In a process that is none of the programs, or with a TF_CPP_MIN_LOG_LEVEL
    below 2, everything is seen. A signal is heard at once and obeyed at the end, so that it cannot leave the descriptor
    turned away.
    """
    stream = sys.stderr
    if not isinstance(stream, Protected) or not _is_standard_error(stream) or not _wanted():
        yield
        return
    with signals.postponed():
        kept = os.memfd_create("stderr") if hasattr(os, "memfd_create") else os.open(os.devnull, os.O_RDWR)
        try:
            with stream.diverted(kept) as visible, _crashes_told(visible):
                yield
        except Exception:
            _show(kept)
            raise
        finally:
            os.close(kept)


def _is_standard_error(stream: Protected) -> bool:
    """Whether it is the descriptor itself, not what a test or a notebook has put there, nor turned away already."""
    try:
        return bool(stream.fileno() == DESCRIPTORS["stderr"])
    except (AttributeError, OSError, ValueError):
        return False


def _wanted() -> bool:
    level = os.environ.get(LOG_LEVEL, QUIET_LEVEL)
    return not (level.isdecimal() and int(level) < int(QUIET_LEVEL))


@contextlib.contextmanager
def _crashes_told(visible: int) -> Iterator[None]:
    """Inside, a crash in C++ shows where it happened: there will be nobody to show what was kept back."""
    before = faulthandler.is_enabled()  # absl's `app.run` has done so, for the descriptor that is turned away
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
