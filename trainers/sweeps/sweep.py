"""A sweep from its first trial to its tables."""

import contextlib
from collections.abc import Iterator
from typing import Any

from trainers.engine.errors import IncompleteError
from trainers.engine.records import RunFolder
from trainers.evidence.findings import sweep_command
from trainers.evidence.objectives import OBJECTIVES, Objective, objective_named
from trainers.sweeps.cells import Cell
from trainers.sweeps.cluster import cluster_address, connected
from trainers.sweeps.driver import ThisProcess, Workers, runs
from trainers.sweeps.kept import known_results, write_known
from trainers.sweeps.progress import Progress
from trainers.sweeps.queue import GridSource, Queue, Source
from trainers.sweeps.results import read_results
from trainers.sweeps.space import WORKERS_AT_MOST, grid, trial_config
from trainers.sweeps.tables import Tables
from trainers.tasks import load_task

ERRORS_SHOWN = 3


def sweep(settings: Any) -> str:
    """Runs what is not done yet, writes results.csv, summary.csv and summary.md, and returns the table.

    Raises:
        ConfigError, DataError: before anything is written.
        IncompleteError: Runs have failed, or have no result. The tables hold what there is.
    """
    return _dry_run(settings) if settings.dry_run else Sweep(settings).run()


def _dry_run(settings: Any) -> str:
    """What all runs would cost, estimated from the first one; with further axes, others may cost more or less."""
    from trainers.engine.dry_run import describe_run  # not needed otherwise

    cells = grid(settings)
    return describe_run(load_task(settings.task), trial_config(settings, cells[0].values, "-"), len(cells))


def _objective(task: str) -> Objective:
    """What a task is judged by, without the imports of the tasks that this project has."""
    if task in OBJECTIVES:
        return OBJECTIVES[task]
    custom = load_task(task)
    return objective_named(task, f"val_{custom.objective}", custom.direction)


class Sweep:
    """A sweep: the planned runs and the results so far."""

    def __init__(self, settings: Any) -> None:
        self.settings, self.objective = settings, _objective(settings.task)
        self.is_grid = settings.search == "grid"
        self.cells = grid(settings)
        for cell in self.cells:
            trial_config(settings, cell.values, "-")  # refuses invalid values before the first run
        self.folder = RunFolder(settings, f"sweep of {settings.task}")
        self.results = {result.name: result for result in read_results(self.folder.path)}
        planned = {cell.name for cell in self.cells}
        self.known = [each for each in known_results(settings) if each.name in planned and self._is_open(each.name)]
        self.results |= {result.name: result for result in self.known}

    def run(self) -> str:
        """Runs everything that is not done."""
        left = [cell for cell in self.cells if self._is_open(cell.name)]
        source = self._source()
        with self._workers(left, source) as workers:
            if left:
                workers.check(left, list(self.results.values()))
            with self.folder.working():
                write_known(self.folder.path, self.known)
                queue = Queue(source, self.results, self.settings.worker_timeout)
                said = self._collect(queue, workers, done=len(self.cells) - len(left))
                return self._conclude(said, queue)

    def _collect(self, queue: Queue, workers: Workers, done: int) -> str:
        """Runs what is in the queue, writes the tables after every result, and returns the last one."""
        tables = Tables(self.folder, self.settings, self.objective, self.results)
        before = done if self.is_grid else 0
        with Progress(self.objective, queue.source.total, before, self.settings.progress) as progress:
            for result in runs(queue, workers):
                self.results[result.name] = result
                tables.add(result)
                progress.finished(result)
                tables.write_soon()
        return tables.write()

    @contextlib.contextmanager
    def _workers(self, left: list[Cell], source: Source) -> Iterator[Workers]:
        """This process, or actors of Ray. Only what runs trials imports TensorFlow, and only if there are any."""
        settings = self.settings
        wanted = settings.workers > 1 or cluster_address(settings) is not None
        if not wanted or (self.is_grid and not left):
            yield ThisProcess(settings)
            return
        with connected(settings) as room:
            from trainers.sweeps.workers import ray_workers  # imports Ray, which need not be installed otherwise

            count = len(left) if self.is_grid else source.total or WORKERS_AT_MOST
            with ray_workers(settings, room, count) as workers:
                yield workers

    def _source(self) -> Source:
        if self.is_grid:
            return GridSource(self.cells)
        from trainers.sweeps.search import SearchSource  # imports keras-tuner

        return SearchSource(self.settings, self.objective.metric, self.objective.direction)

    def _is_open(self, name: str) -> bool:
        result = self.results.get(name)
        return result is None or result.status == "failed"

    def _conclude(self, said: str, queue: Queue) -> str:
        """Returns the table if it is complete; otherwise raises an error that says what is missing."""
        planned = queue.source.planned
        failed = [self.results[name] for name in planned if name in self.results and self._is_open(name)]
        missing = [name for name in planned if name not in self.results]
        if not failed and not missing:
            return said
        reasons = [f"{result.trial}: {result.error}" for result in failed]
        reasons += [f"{name}: {queue.unwritten.get(name, 'not run')}" for name in missing]
        more = f"; and {len(reasons) - ERRORS_SHOWN} more" if len(reasons) > ERRORS_SHOWN else ""
        raise IncompleteError(
            f"{len(failed)} failed, {len(missing)} missing",
            said,
            f"{'; '.join(reasons[:ERRORS_SHOWN])}{more}. To try these again: {self._command()}",
        )

    def _command(self) -> str:
        return sweep_command(self.settings.task, str(self.folder.path / "config.json"))
