"""Assigns trials to workers: each run has one worker at a time, and is handed out again if that worker is lost."""

import collections
import dataclasses
import itertools
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from trainers.sweeps.cells import Cell
from trainers.sweeps.results import Result

RUN, WAIT, STOP, REFUSED = "RUNNING", "IDLE", "STOPPED", "INVALID"  # keras-tuner's words for a trial's status
SEPARATOR = "|"  # in the name of a job: cell, worker, number


class Source(Protocol):
    """Where runs come from: a grid, or a search."""

    total: int | None  # total number of runs, if known

    def next(self) -> Cell | str | None:
        """A cell to run; WAIT if it depends on results that are still missing; None if there are no more cells."""

    def take(self, name: str) -> Cell | None:
        """Takes a cell by its name, before its turn."""

    def ended(self, cell: Cell, result: Result | None) -> None:
        """Records the result of a cell; None if it is not known."""


@dataclasses.dataclass
class Job:
    """A run that is assigned to a worker."""

    id: str
    cell: Cell
    worker: str
    heard: float  # when the worker last sent a heartbeat
    take_over: bool = False


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a worker should do next."""

    status: str
    job: Job | None = None


class Coordinator:
    """Hands out runs and collects their results.

    Args:
        source: Where runs come from.
        known: Results by the names of their cells. Those that failed are run again.
        fingerprint: Identifies the sweep; a worker with another one is refused.
        timeout: Seconds without a heartbeat after which a worker loses its run to another.
        expel: Kills a worker if possible, and returns whether it did.
    """

    def __init__(
        self,
        source: Source,
        known: dict[str, Result],
        fingerprint: str,
        timeout: float,
        expel: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.source, self.known, self.fingerprint, self.timeout, self.expel = (
            source,
            {name: result for name, result in known.items() if result.status != "failed"},
            fingerprint,
            timeout,
            expel,
        )
        self.unwritten: dict[str, str] = {}  # why runs have no result, by the names of their cells
        self.handed_out = 0
        self.workers: dict[str, bool] = {}  # whether each knows that the sweep is over
        self._jobs: dict[str, Job] = {}
        self._returned: collections.deque[tuple[Cell, bool]] = collections.deque()
        self._fresh: collections.deque[Result] = collections.deque()
        self._exhausted = False
        self._numbers = itertools.count()
        self._looked = time.monotonic()
        self._lock = threading.RLock()

    def ask(self, worker: str, fingerprint: str) -> Answer:
        """What a worker should do next. A worker that already had a run must have been restarted."""
        with self._lock:
            if fingerprint != self.fingerprint:
                return Answer(REFUSED)
            for job in [job for job in self._jobs.values() if job.worker == worker]:
                self._give_back(job, take_over=False)
            following = self._next()
            self.workers[worker] = following is None
            if following is None or isinstance(following, str):
                return Answer(following or STOP)
            cell, take_over = following
            # Unique across restarts of the chief.
            identifier = SEPARATOR.join([cell.name, worker, f"{os.getpid()}.{next(self._numbers)}"])
            job = Job(identifier, cell, worker, time.monotonic(), take_over)
            self._jobs[identifier] = job
            self.handed_out += 1
            return Answer(RUN, job)

    def beat(self, identifier: str) -> bool:
        """Records a heartbeat; False if the worker no longer has the run."""
        with self._lock:
            if identifier not in self._jobs:
                name, worker, *_ = f"{identifier}{SEPARATOR}".split(SEPARATOR)
                cell = self._take(name)  # a restarted chief meets workers that have runs
                if cell is None:
                    return False
                self._jobs[identifier] = Job(identifier, cell, worker, time.monotonic())
                self.workers[worker] = False
            self._jobs[identifier].heard = time.monotonic()
            return True

    def finish(self, identifier: str, content: dict[str, Any]) -> None:
        """Records the `result` of a run, or why there is none: `busy`, `lost`, `left`, or an `error`."""
        with self._lock:
            job, name = self._jobs.pop(identifier, None), identifier.partition(SEPARATOR)[0]
            if name in self.known:
                return
            if "result" in content:
                # Also from a worker that lost the run, or got it from an earlier chief: the result is on disk.
                self._end(job.cell if job else self._take(name), Result.from_json(content["result"]))
            elif job is not None and "error" in content:
                self.unwritten[name] = content["error"]
                self.source.ended(job.cell, None)
            elif job is not None:
                self._returned.append((job.cell, job.take_over))
                self.workers[job.worker] = "left" in content  # then it need not be notified

    def look(self) -> None:
        """Takes back the runs of silent workers and checks whether the sweep is over. To be called again and again."""
        with self._lock:
            if not (self._exhausted or self._jobs or self._returned):
                following = self._next()
                if isinstance(following, tuple):
                    self._returned.append(following)
            now = time.monotonic()
            paused, self._looked = now - self._looked > self.timeout / 2, now
            for job in list(self._jobs.values()):
                if paused:  # this process itself was unreachable
                    job.heard = now
                elif now - job.heard > self.timeout:
                    self._give_back(job, take_over=not self.expel(job.worker))

    def fresh(self) -> list[Result]:
        """The results that have arrived since the last call."""
        with self._lock:
            found = list(self._fresh)
            self._fresh.clear()
            return found

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to run and no worker has a run."""
        with self._lock:
            return self._exhausted and not self._jobs and not self._returned

    @property
    def all_told(self) -> bool:
        with self._lock:
            return all(self.workers.values())

    def _next(self) -> tuple[Cell, bool] | str | None:
        """A run and whether to take it over; WAIT while others may still come back; None when the sweep is over."""
        if self._returned:
            return self._returned.popleft()
        while not self._exhausted:
            cell = self.source.next()
            if cell is None:
                self._exhausted = True
            elif isinstance(cell, str):
                return WAIT
            elif cell.name in self.known:
                self.source.ended(cell, self.known[cell.name])
            else:
                return cell, False
        return WAIT if self._jobs else None

    def _take(self, name: str) -> Cell | None:
        for item in self._returned:
            if item[0].name == name:
                self._returned.remove(item)
                return item[0]
        return self.source.take(name)

    def _give_back(self, job: Job, take_over: bool) -> None:
        del self._jobs[job.id]
        self._returned.append((job.cell, take_over or job.take_over))

    def _end(self, cell: Cell | None, result: Result) -> None:
        self.known[result.name] = result
        self.unwritten.pop(result.name, None)
        self._fresh.append(result)
        for job in [job for job in self._jobs.values() if job.cell.name == result.name]:
            del self._jobs[job.id]  # given to another worker when the first seemed lost
            cell = cell or job.cell
        if cell is not None:
            self.source.ended(cell, result)
