"""Stops a program cleanly on SIGTERM or Ctrl-C: the step is finished, the run saved, and the same command resumes it.

Python runs signal handlers between two of its own instructions, which can be minutes apart while TensorFlow computes.
Therefore a thread listens too: it confirms the first signal, and ends the process at a second one.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# A signal to a process and to its group arrives twice within this time; nobody presses Ctrl-C twice as fast.
SAME_SIGNAL_SECONDS = 0.3
HEARD = "\nstopping: this step is finished and saved first; a second signal stops immediately"

PARENT = "TFWARMUP_PARENT"  # the process without which a program ends, because nobody else could stop it
POLL_SECONDS = 0.1


class StopRequested(KeyboardInterrupt):
    """A signal asked this process to stop; `exit_code` is what a shell reports for the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number
        self.exit_code = 128 + number


_requested: int | None = None
_at_once = True  # whether the first signal raises at once, or leaves it to `raise_if_requested`
_handlers: dict[int, Any] = {}


def listen() -> None:
    """Makes this process stop as this module describes. Must be called in the main thread, by a program."""
    if os.environ.get(PARENT):
        threading.Thread(target=_end_without_parent, daemon=True).start()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    _handlers.update(dict.fromkeys(SIGNALS, _handle))
    keep_listening()
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reading,), daemon=True).start()


def keep_listening() -> None:
    """Installs the handlers again: TensorFlow's cluster service replaces the handler of SIGTERM."""
    for number, handler in _handlers.items():
        signal.signal(number, handler)


def request(number: int) -> None:
    """Makes a run in this process stop as if the signal had arrived. May be called in any thread."""
    global _requested
    _requested = number


def requested() -> int | None:
    """The signal that asked this process to stop, if one did."""
    return _requested


def raise_if_requested() -> None:
    if _requested is not None:
        raise StopRequested(_requested)


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Inside, a signal is only noted. Check `requested` where the program can stop."""
    with _raising(False):
        yield


@contextlib.contextmanager
def postponed() -> Iterator[None]:
    """Inside, a signal is only noted. If it would have raised `StopRequested` at once, it does so at the end."""
    would_raise = _at_once and _requested is None
    with deferred():
        yield
    if would_raise:
        raise_if_requested()


@contextlib.contextmanager
def immediate() -> Iterator[None]:
    """Inside, a signal raises `StopRequested` at once, also within `deferred`."""
    with _raising(True):
        raise_if_requested()
        yield


@contextlib.contextmanager
def _raising(at_once: bool) -> Iterator[None]:
    global _at_once
    before, _at_once = _at_once, at_once
    try:
        yield
    finally:
        _at_once = before


def _handle(number: int, _: FrameType | None) -> None:
    global _requested
    if _requested is None:
        _requested = number
        if _at_once:
            raise StopRequested(number)


def _watch(reading: int) -> None:
    numbers = (number for number in iter(lambda: os.read(reading, 1)[0], None) if number in SIGNALS)
    next(numbers)
    first = time.monotonic()
    print(HEARD, file=sys.stderr, flush=True)
    for number in numbers:
        if time.monotonic() - first > SAME_SIGNAL_SECONDS:
            os._exit(128 + number)


def _end_without_parent() -> None:
    parent = int(os.environ[PARENT])
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)
