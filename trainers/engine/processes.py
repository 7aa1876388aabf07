"""Processes that share what has been imported, and end with the one that started them."""

import contextlib
import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

POLL_SECONDS = 0.1


def fork(work: Callable[..., None], *arguments: Any) -> Any:
    """A process that runs `work` and ends with this one, even if this one is killed.

    TensorFlow may have been imported, but not been at work, in a process that forks.
    """

    def run(parent: int) -> None:
        threading.Thread(target=_end_without, args=(parent,), daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):  # the one who started it all says so
            work(*arguments)

    process = multiprocessing.get_context("fork").Process(target=run, args=(os.getpid(),))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jax, which Keras may have imported, warns of any fork
        process.start()
    return process


def _end_without(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)
