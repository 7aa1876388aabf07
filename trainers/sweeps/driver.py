"""Drives a sweep: hands out its runs and collects their results. Needs no TensorFlow."""

import functools
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from trainers.engine.quiet import quiet
from trainers.sweeps.cells import Cell
from trainers.sweeps.queue import BUSY_SECONDS, Job, Outcome, Queue
from trainers.sweeps.results import Result


class Workers(Protocol):
    """Whatever runs trials: this process, or actors of Ray."""

    @property
    def has_room(self) -> bool:
        """Whether one more run can start."""

    def check(self, cells: Sequence[Cell], results: Sequence[Result]) -> None:
        """Raises a `ConfigError` or `DataError` if there are cells that cannot be run. Writes nothing."""

    def start(self, job: Job) -> None: ...

    def finished(self) -> Iterable[tuple[Job, Outcome]]:
        """Waits a moment, and returns the runs that have ended."""


def runs(queue: Queue, workers: Workers) -> Iterator[Result]:
    """Runs what is in the queue, and yields the results as they come in."""
    while True:
        while workers.has_room and (job := queue.next()) is not None:
            workers.start(job)
        if queue.is_over:
            return
        for job, outcome in workers.finished():
            result = queue.settle(job, outcome)
            if result is not None:
                yield result


class ThisProcess:
    """The only worker of a sweep: this process, which runs one trial after the other."""

    def __init__(self, settings: Any) -> None:
        self._settings = settings
        self._job: Job | None = None

    @functools.cached_property
    def _trials(self) -> Any:
        with quiet():  # imports TensorFlow, which a sweep that is done does not need
            from trainers.sweeps.trial import Trials

            return Trials(self._settings)

    @property
    def has_room(self) -> bool:
        return self._job is None

    def check(self, cells: Sequence[Cell], results: Sequence[Result]) -> None:
        self._trials.check(cells, results)

    def start(self, job: Job) -> None:
        self._job = job

    def finished(self) -> list[tuple[Job, Outcome]]:
        if self._job is None:  # another process has what is left
            time.sleep(BUSY_SECONDS)
            return []
        job, self._job = self._job, None
        return [(job, self._trials.outcome(job))]
