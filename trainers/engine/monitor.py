"""What a run watches about itself: divergence, the time that steps take, and a profile."""

import math
import pathlib
import time
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfwarmup.compat import updates_made
from trainers.engine.config import Config
from trainers.engine.step import PATIENCE
from trainers.system.errors import DivergedError

TRY = "try a smaller --learning_rate, a longer warmup or --global_clipnorm"
TRY_HALF = "--precision=mixed_bfloat16 or float32, and look for infinities in the data"


def check_steps(config: Config, optimizer: Any, step: int, bad_in_a_row: int) -> None:
    """Raises a `DivergedError` after too many bad steps in a row, also across records."""
    if bad_in_a_row < PATIENCE[config.precision]:
        return
    if config.precision != "mixed_float16":
        raise DivergedError(f"the loss was not finite at step {step - bad_in_a_row + 1}; {TRY}")
    raise DivergedError(f"no update since step {step - bad_in_a_row} of {step}{_half(optimizer)}")


def check_result(config: Config, optimizer: Any, final: Mapping[str, Any]) -> None:
    """Raises a `DivergedError` at the end of a run without an update, or without a finite loss."""
    if updates_made(optimizer) == 0:
        raise DivergedError(f"no update in the whole run{_half(optimizer)}")
    loss = final.get("val_loss")
    if loss is not None and not math.isfinite(loss):
        raise DivergedError(f"the loss was not finite in the last validation; {TRY}")


def _half(optimizer: Any) -> str:
    """The part of a message about the loss scale; only float16 skips updates."""
    scale = float(optimizer.dynamic_scale.numpy())
    return f": losses or gradients are not finite, at a loss scale of {scale:g} now; {TRY}, {TRY_HALF}"


SECONDS = 1.0  # per call


class Pace:
    """Chooses the number of steps per call from the time that steps take."""

    def __init__(self) -> None:
        self._steps = 1  # nothing is known yet

    def steps(self, left: int) -> int:
        """The number of steps in the next call, at most `left`."""
        return min(self._steps, left)

    def took(self, steps: int, seconds: float) -> None:
        self._steps = max(1, int(steps * SECONDS / max(seconds, 1e-6)))


class Speed:
    """Examples per second between two records. The first step of a process, which compiles, is left out."""

    def __init__(self) -> None:
        self._first = True
        self.restart()

    def restart(self) -> None:
        self._weight, self._seconds = 0.0, 0.0

    def took(self, weight: float, seconds: float) -> None:
        if not self._first:
            self._weight, self._seconds = self._weight + weight, self._seconds + seconds
        self._first = False

    @property
    def per_second(self) -> float | None:
        """`None` if there was only a first step."""
        return self._weight / self._seconds if self._seconds else None


class Clock:
    """The wall time of a run, without pauses between its processes, and when the next checkpoint is due."""

    def __init__(self, checkpoint_minutes: float) -> None:
        self._interval = 60 * checkpoint_minutes
        self.restart(0.0)

    def restart(self, seconds: float) -> None:
        """Restarts the clock for a run that has already taken `seconds`."""
        self._began = self._saved = time.monotonic()
        self._before = seconds

    @property
    def seconds(self) -> float:
        return self._before + time.monotonic() - self._began

    def saved(self) -> None:
        self._saved = time.monotonic()

    @property
    def is_checkpoint_due(self) -> bool:
        return bool(self._interval) and time.monotonic() - self._saved >= self._interval


class Profiler:
    """Profiles a run between two steps; `at` must be called at least at these."""

    def __init__(self, folder: pathlib.Path, steps: tuple[int, ...], chief: bool) -> None:
        self.folder, self.steps = folder, steps if chief else ()
        self._running = False

    def at(self, step: int) -> None:
        if not self.steps:
            return
        first, last = self.steps
        if not self._running and first <= step < last:
            tf.profiler.experimental.start(str(self.folder))
            self._running = True
        elif self._running and step >= last:
            self.close()

    def close(self) -> None:
        """Writes the profile, also of a run that ends early."""
        if self._running:
            tf.profiler.experimental.stop()
            self._running = False
