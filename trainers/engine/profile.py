"""A profile of a few steps, for TensorBoard's profiler."""

import pathlib

import tensorflow as tf


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
