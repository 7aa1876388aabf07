"""The runs that are left: handed out in order, handed out again if they come back without a result."""

import collections
import dataclasses
import enum
import functools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from trainers.results.methods import Point
from trainers.results.trials import Result
from trainers.system.streams import quiet

if TYPE_CHECKING:
    from trainers.sweeps.search import SearchSource
    from trainers.sweeps.workers import RayWorkers

BUSY_SECONDS = 0.5  # until a run that another process has is tried again


class Returned(enum.Enum):
    """Why a run came back without a result."""

    BUSY = "another process is running it"
    LOST = "its worker has died or does not answer"


Outcome = Result | Returned | str  # of a run; the text says why its result could not be written
RunSource: TypeAlias = "GridSource | SearchSource"
Workers: TypeAlias = "ThisProcess | RayWorkers"


class GridSource:
    """Hands out cells in their order.

    keras-tuner's own grid derives the next cell from those that have ended: it forgets some after a kill, and hands out
    only one at a time, however many workers there are.
    """

    def __init__(self, cells: Iterable[Point]) -> None:
        self._waiting = collections.deque(cells)
        self.planned = {cell.name: cell for cell in self._waiting}  # the cells so far, by their names
        self.total: int | None = len(self._waiting)  # the number of runs; None if it is not known

    def next(self) -> Point | None:
        """A cell to run; None if there is none, or none before more results are known."""
        return self._waiting.popleft() if self._waiting else None

    def ended(self, cell: Point, result: Result | None) -> None:
        """Takes the result of a cell, None if it is not known. The cells of a grid do not depend on it."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A run to hand out."""

    cell: Point
    take_over: bool = False  # whether a worker that was given it before may still be alive and write
    not_before: float = 0.0  # when it may be handed out
    busy_since: float | None = None  # when it was first found to be in the hands of another process


class Queue:
    """The runs of a sweep that have no result yet.

    Args:
        source: Where runs come from.
        known: Results by the names of their cells. Those that failed are run again.
        patience: Seconds after which a run is taken from a process that does not finish it.
    """

    def __init__(self, source: "RunSource", known: Mapping[str, Result], patience: float) -> None:
        self.source, self.patience = source, patience
        self.unwritten: dict[str, str] = {}  # why runs have no result, by the names of their cells
        self._known = {name: result for name, result in known.items() if result.status != "failed"}
        self._returned: list[Job] = []
        self._running = 0
        self.is_over = False

    def next(self) -> Job | None:
        """The next run, or None if there is none at the moment."""
        job = self._returned_job() or self._new_job()
        if job is not None:
            self._running += 1
        elif not (self._running or self._returned):
            self.is_over = True
        return job

    def settle(self, job: Job, outcome: Outcome) -> Result | None:
        """Records how a run ended, and returns its result if it has one."""
        self._running -= 1
        name = job.cell.name
        if isinstance(outcome, Result):
            self.unwritten.pop(name, None)
            self.source.ended(job.cell, outcome)
            return outcome
        if isinstance(outcome, str):
            self.unwritten[name] = outcome
            self.source.ended(job.cell, None)
        elif outcome is Returned.LOST:
            self._returned.append(Job(job.cell, take_over=True))
        else:
            now = time.monotonic()
            since = now if job.busy_since is None else job.busy_since
            hangs = now - since > self.patience
            self._returned.append(Job(job.cell, job.take_over or hangs, now + BUSY_SECONDS, since))
        return None

    def _returned_job(self) -> Job | None:
        now = time.monotonic()
        job = next((job for job in self._returned if job.not_before <= now), None)
        if job is not None:
            self._returned.remove(job)
        return job

    def _new_job(self) -> Job | None:
        while (cell := self.source.next()) is not None:
            if cell.name not in self._known:
                return Job(cell)
            self.source.ended(cell, self._known[cell.name])
        return None


def runs(queue: Queue, workers: "Workers") -> Iterator[Result]:
    """Runs what is in the queue, and yields the results as they come in."""
    results: list[Result | None] = []
    while True:
        while workers.has_room and (job := queue.next()) is not None:
            workers.start(job)
        yield from (result for result in results if result is not None)  # now that the workers are busy again
        if queue.is_over:
            return
        results = [queue.settle(job, outcome) for job, outcome in workers.finished()]


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
        """Whether one more run can start."""
        return self._job is None

    def check(self, cells: Sequence[Point], results: Sequence[Result]) -> None:
        """Raises a `ConfigError` or `DataError` if there are cells that cannot be run. Writes nothing."""
        self._trials.check(cells, results)

    def start(self, job: Job) -> None:
        self._job = job

    def finished(self) -> list[tuple[Job, Outcome]]:
        """Waits a moment, and returns the runs that have ended."""
        if self._job is None:  # another process has what is left
            time.sleep(BUSY_SECONDS)
            return []
        job, self._job = self._job, None
        return [(job, self._trials.outcome(job))]
