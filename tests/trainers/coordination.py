"""A chief with two runs to hand out, for the tests of which worker runs what."""

import threading

from trainers.sweeps.cells import Cell
from trainers.sweeps.coordinator import Coordinator
from trainers.sweeps.results import Result
from trainers.sweeps.sources import GridSource

CELLS = [Cell(1e-2, 0.9, "none", seed) for seed in (1, 2)]


def coordinator(timeout=0.2, cells=CELLS, known=(), **options):
    return Coordinator(GridSource(cells), {result.name: result for result in known}, "same", timeout, **options)


def result_of(cell, status="done"):
    return Result(cell.name, cell.values, status, 0.5 if status == "done" else None, {}, 1.0)


def finish(chief, job, **options):
    chief.finish(job.id, {"result": result_of(job.cell, **options).to_json()})


def in_thread(function, *arguments):
    """Runs a function in a thread; returns the thread and a list that receives its error."""
    errors = []

    def run():
        try:
            function(*arguments)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, errors


def ended(thread, seconds=20):
    thread.join(seconds)
    return not thread.is_alive()
