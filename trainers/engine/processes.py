"""Forked processes, which share the imports of their parent and end with it."""

import multiprocessing
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

from trainers.engine import signals

POLL_SECONDS = 0.1


def fork(work: Callable[..., None], *arguments: Any) -> Any:
    """Starts a process that runs `work` and ends with this one, even if this one is killed.

    `terminate` makes it stop as `signals` describes, with everything saved. A process that forks may have imported
    TensorFlow, but not used it.
    """

    def run(parent: int) -> None:
        signals.listen_in_child()
        threading.Thread(target=_end_without, args=(parent,), daemon=True).start()
        try:
            work(*arguments)
        except signals.StopRequested as stop:  # the parent reports it
            sys.exit(stop.exit_code)

    process = multiprocessing.get_context("fork").Process(target=run, args=(os.getpid(),))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jax, which Keras may have imported, warns of any fork
        process.start()
    return process


def _end_without(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)
