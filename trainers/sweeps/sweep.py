"""A sweep from its first trial to its last."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from tqdm import tqdm

from trainers.engine.folder import RunFolder
from trainers.results.layout import CONFIG
from trainers.results.methods import Point
from trainers.results.results_csv import read_results
from trainers.results.tasks import OBJECTIVES, Objective, objective_named, sweep_command
from trainers.results.trials import Result
from trainers.sweeps.cluster import cluster_address, connected
from trainers.sweeps.queue import GridSource, Queue, RunSource, ThisProcess, Workers, runs
from trainers.sweeps.space import WORKERS_AT_MOST, grid, trial_config
from trainers.system.errors import IncompleteError
from trainers.tasks import load_task

ERRORS_SHOWN = 3


class TableWriter(Protocol):
    """Writes the files with the results of a sweep."""

    def write_soon(self) -> None:
        """Writes the files unless they were written a moment ago."""

    def write(self) -> str:
        """Writes the files and returns the summary for the terminal."""


# Makes a writer of a folder, the settings, the objective, and the results, to which more are added.
MakeTables = Callable[[RunFolder, Any, Objective, dict[str, Result]], TableWriter]


def run_sweep(settings: Any, make_tables: MakeTables) -> str:
    """Runs what is not done yet, writes the tables, and returns the summary; see `trainers.sweep.sweep`."""
    return _dry_run(settings) if settings.dry_run else SweepRun(settings, make_tables).run()


def _dry_run(settings: Any) -> str:
    """What the runs would take, measured with the first one; with further axes, others may take more or less."""
    from trainers.engine.description import describe_run  # not needed otherwise

    configs = [trial_config(settings, cell.values, "-") for cell in grid(settings)]  # refuses invalid values
    runs = {"grid": len(configs), "hyperband": 1}.get(settings.search, settings.trials * len(settings.seeds))
    return describe_run(load_task(settings.task), configs[0], functools.partial(print, flush=True), runs)


def _objective(task: str) -> Objective:
    """What a task is judged by, without the imports of the tasks that this project has."""
    if task in OBJECTIVES:
        return OBJECTIVES[task]
    custom = load_task(task)
    return objective_named(task, f"val_{custom.objective}", custom.direction)


class SweepRun:
    """A sweep: the planned runs and the results so far."""

    def __init__(self, settings: Any, make_tables: MakeTables) -> None:
        self.settings, self.objective = settings, _objective(settings.task)
        self._make_tables = make_tables
        self.is_grid = settings.search == "grid"
        self.cells = grid(settings)
        for cell in self.cells:
            trial_config(settings, cell.values, "-")  # refuses invalid values before the first run
        self.folder = RunFolder(settings, f"sweep of {settings.task}")
        planned = {cell.name: cell.values for cell in self.cells}  # the text of a table has no types
        self.results = {
            result.name: dataclasses.replace(result, values=planned.get(result.name, result.values))
            for result in read_results(self.folder.path)
        }

    def run(self) -> str:
        """Runs everything that is not done."""
        left = [cell for cell in self.cells if self._is_open(cell.name)]
        source = self._source()
        with self._workers(left, source) as workers:
            if left:
                workers.check(left, list(self.results.values()))
            with self.folder.working(self._facts()):
                queue = Queue(source, self.results, self.settings.worker_timeout)
                said = self._collect(queue, workers, done=len(self.cells) - len(left))
                return self._conclude(said, queue)

    def _facts(self) -> dict[str, str] | None:
        """What readers of the sweep of a user's own task must know of it."""
        known = {"objective": self.objective.metric, "direction": self.objective.direction}
        return None if self.settings.task in OBJECTIVES else known

    def _collect(self, queue: Queue, workers: Workers, done: int) -> str:
        """Runs what is in the queue, writes the tables after every result, and returns the last one."""
        tables = self._make_tables(self.folder, self.settings, self.objective, self.results)
        known, hidden = done if self.is_grid else 0, not self.settings.progress
        with tqdm(total=queue.source.total, initial=known, unit="trial", desc="sweep", disable=hidden) as bar:
            for result in runs(queue, workers):
                self.results[result.name] = result  # in the tables too
                bar.set_postfix_str(self._best())
                bar.update()
                tables.write_soon()
        return tables.write()

    def _best(self) -> str:
        values = [result.objective for result in self.results.values() if result.objective is not None]
        best = min if self.objective.direction == "min" else max
        return f"best {self.objective.label} {self.objective.shown(best(values)):.4g}" if values else ""

    @contextlib.contextmanager
    def _workers(self, left: list[Point], source: RunSource) -> Iterator[Workers]:
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

    def _source(self) -> RunSource:
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
        again = sweep_command(self.settings.task, str(self.folder.path / CONFIG))
        raise IncompleteError(
            f"{len(failed)} failed, {len(missing)} missing",
            said,
            f"{'; '.join(reasons[:ERRORS_SHOWN])}{more}. To try these again: {again}",
        )
