"""Which run is next: with workers that die, runs that another process has, and results that are there."""

import time

import pytest

from tests.trainers.sweeps import CELLS, result_of
from trainers.sweeps.queue import BUSY_SECONDS, GridSource, Queue, Returned, runs

PATIENCE = 10.0


class Clock:
    """A clock that a test moves."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


def queue_of(cells=CELLS, known=()):
    return Queue(GridSource(cells), {result.name: result for result in known}, PATIENCE)


class Together:
    """Workers that run two trials at once; `outcomes` are those of each cell, one after the other."""

    def __init__(self, outcomes):
        self.outcomes = {name: iter(found) for name, found in outcomes.items()}
        self.jobs, self.started = [], []

    @property
    def has_room(self):
        return len(self.jobs) < 2

    def start(self, job):
        self.jobs.append(job)
        self.started.append(job)

    def finished(self):
        ended, self.jobs = self.jobs, []
        time.sleep(0.05)
        return [(job, next(self.outcomes[job.cell.name], None) or result_of(job.cell)) for job in ended]


def test_every_run_is_handed_out_once_and_it_is_over_when_all_have_ended():
    queue = queue_of()
    jobs = [queue.next() for _ in CELLS]
    assert [job.cell for job in jobs] == CELLS
    assert queue.next() is None
    assert not queue.is_over  # one of them may yet come back
    results = [queue.settle(jobs[0], result_of(CELLS[0])), queue.settle(jobs[1], result_of(CELLS[1], "diverged"))]
    assert [result.status for result in results] == ["done", "diverged"]
    assert queue.next() is None
    assert queue.is_over


def test_results_that_are_there_are_not_run_again_but_failures_are():
    queue = queue_of(known=[result_of(CELLS[0]), result_of(CELLS[1], status="failed")])
    job = queue.next()
    assert job.cell == CELLS[1]
    queue.settle(job, result_of(CELLS[1], status="failed"))
    assert queue.next() is None  # once for each start
    assert queue.is_over


def test_a_run_that_another_process_has_is_tried_again_and_taken_over_in_the_end(monkeypatch):
    """A worker of an earlier start may live on for a while, or hang."""
    clock, queue = Clock(monkeypatch), queue_of(CELLS[:1])
    job, tries = queue.next(), 0
    while not job.take_over:
        queue.settle(job, Returned.BUSY)
        assert queue.next() is None
        assert not queue.is_over
        clock.now += BUSY_SECONDS
        job, tries = queue.next(), tries + 1
    assert PATIENCE < clock.now < PATIENCE + 2
    assert tries == pytest.approx(PATIENCE / BUSY_SECONDS, abs=2)
    assert queue.settle(job, result_of(CELLS[0])).status == "done"


def test_the_driver_yields_every_result_once_whatever_happens_to_the_workers():
    first, second = (cell.name for cell in CELLS)
    workers = Together({first: [Returned.LOST, Returned.BUSY], second: ["OSError: full"]})
    queue = queue_of()
    assert [result.name for result in runs(queue, workers)] == [first]
    assert [job.cell.name for job in workers.started] == [first, second, first, first]
    assert [job.take_over for job in workers.started] == [False, False, True, True]
    assert queue.unwritten == {second: "OSError: full"}
    assert queue.is_over
