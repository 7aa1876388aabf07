"""What the workers of a run agree on: what it is, where it begins, how many steps come next, and whether to stop."""

import hashlib
import json
import signal
from typing import Any

import tensorflow as tf

from trainers.engine.cluster import Worker
from trainers.engine.config import Config
from trainers.engine.flags import ConfigError
from trainers.engine.step import Stepper


class Team:
    """All workers of a run. Every worker must call these methods in the same order; a single one need not wait."""

    def __init__(self, worker: Worker, stepper: Stepper) -> None:
        self.worker, self.stepper = worker, stepper

    @property
    def is_alone(self) -> bool:
        return self.worker.count == 1

    def wait(self) -> None:
        """Waits for all other workers."""
        self._sum([0.0])

    def agree_on_run(self, config: Config, data: str) -> None:
        """Raises a `ConfigError` on every worker unless all have the same flags and data."""
        told = json.dumps([config.identity(), data], sort_keys=True).encode()
        # 48 bits, which a float64 holds exactly.
        numbers = self._of_all(int.from_bytes(hashlib.blake2b(told, digest_size=6).digest()))
        others = [str(index) for index, number in enumerate(numbers) if number != numbers[0]]
        if others:
            raise ConfigError(
                "All workers must have the same data and the same flags, apart from those that change no result. "
                f"Received: others than those of worker 0, on worker {', '.join(others)}"
            )

    def agree_on_step(self, step: int) -> None:
        """Raises a `ConfigError` on every worker unless all begin at the same step."""
        steps = self._of_all(step)
        if len(set(steps)) > 1:
            raise ConfigError(
                "All workers must resume at the same step: --output_dir must be a folder that all of them see. "
                f"Received: steps {', '.join(map(str, steps))}"
            )

    def agreed_steps(self, steps: int) -> int:
        """The mean of the steps that the workers would take in one call."""
        return steps if self.is_alone else max(1, int(self._sum([float(steps)])[0] / self.worker.count))

    def agreed_signal(self, number: int | None) -> int | None:
        """The signal that any worker has received."""
        if self.is_alone:
            return number
        counts = self._sum([float(number == each) for each in (signal.SIGTERM, signal.SIGINT)])
        heard = [each for each, count in zip((signal.SIGTERM, signal.SIGINT), counts, strict=True) if count]
        return int(heard[0]) if heard else None

    def _of_all(self, number: int) -> list[int]:
        """The numbers of all workers, in order."""
        own = [float(number) if index == self.worker.index else 0.0 for index in range(self.worker.count)]
        return [int(value) for value in self._sum(own)]

    def _sum(self, values: list[float]) -> list[Any]:
        if self.is_alone:
            return list(values)
        total: list[Any] = self.stepper.sum_over_workers(tf.constant(values, tf.float64)).numpy().tolist()
        return total
