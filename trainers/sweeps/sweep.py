"""A sweep from its first trial to its tables."""

import pathlib
from typing import Any

from trainers.engine.errors import IncompleteError
from trainers.engine.flags import ConfigError
from trainers.engine.records import RunFolder
from trainers.evidence.findings import sweep_command
from trainers.sweeps import workers
from trainers.sweeps.coordinator import Coordinator, Source
from trainers.sweeps.kept import known_results
from trainers.sweeps.preflight import check_cells, check_cells_apart
from trainers.sweeps.progress import Progress
from trainers.sweeps.results import read_results
from trainers.sweeps.search import SearchSource
from trainers.sweeps.service import ChiefClient, ChiefGoneError, serve
from trainers.sweeps.sources import GridSource
from trainers.sweeps.space import fingerprint, grid, trial_config
from trainers.sweeps.tables import Tables
from trainers.sweeps.trial import Trials, write_known
from trainers.sweeps.worker import OwnChief, work
from trainers.tasks import load_task

ERRORS_SHOWN = 3


def sweep(settings: Any) -> str:
    """Runs what is not done yet, writes results.csv, summary.csv and summary.md, and returns the table.

    Raises:
        ConfigError, DataError: before anything is written.
        IncompleteError: Runs have failed, or have no result. The tables hold what there is.
    """
    if settings.dry_run:
        return _dry_run(settings)
    name = workers.role()
    if name not in (None, workers.CHIEF):
        return _work_for_chief(settings, str(name), workers.chief_address())
    return Sweep(settings).run(name)


def _dry_run(settings: Any) -> str:
    """What all runs would cost, estimated from the first one; with further axes, others may cost more or less."""
    from trainers.engine.dry_run import describe_run  # not needed otherwise

    cells = grid(settings)
    return describe_run(load_task(settings.task), trial_config(settings, cells[0].values, "-"), len(cells))


def _work_for_chief(settings: Any, name: str, address: str, check: bool = True) -> str:
    """Runs as one of several workers; the chief may be started later."""
    folder = RunFolder(settings, f"sweep of {settings.task}", chief=False)
    trials = Trials(settings)
    if check:
        check_cells(settings, trials.task, grid(settings), read_results(folder.path), trials.setups)
    chief = ChiefClient(address, name, fingerprint(settings), settings.worker_timeout)
    try:
        work(chief, trials)
    except ConfigError as error:
        RunFolder(settings, folder.task, chief=False)  # its error names the flag that differs
        if not (isinstance(error, ChiefGoneError) and _is_over(folder.path)):
            raise
    return f"{name}: no more trials"


def _is_over(folder: pathlib.Path) -> bool:
    """Whether the chief has finished its work, and not only disappeared."""
    status = folder / "status"
    return status.exists() and status.read_text().startswith(("done", IncompleteError.status))


class Sweep:
    """A sweep: the planned runs and the results so far."""

    def __init__(self, settings: Any) -> None:
        self.settings, self.task = settings, load_task(settings.task)
        self.cells = grid(settings)
        for cell in self.cells:
            trial_config(settings, cell.values, "-")  # refuses invalid values before the first run
        self.folder = RunFolder(settings, f"sweep of {self.task.name}")
        self.results = {result.name: result for result in read_results(self.folder.path)}
        planned = {cell.name for cell in self.cells}
        self.known = [each for each in known_results(settings) if each.name in planned and self._is_open(each.name)]
        self.results |= {result.name: result for result in self.known}

    def run(self, role: str | None) -> str:
        """Runs everything that is not done, as the chief of other processes or alone."""
        alone = role is None and self.settings.workers == 1
        trials = Trials(self.settings) if alone else None
        self._check(trials, forks=role is None and not alone)
        with self.folder.working():
            write_known(self.folder.path, self.known)
            source = self._source()
            tables = Tables(self.folder, self.settings, self.task, self.results)
            shown = self.settings.progress and role is None
            with Progress(self.task, source.total, self._done(), shown) as progress:
                local = None
                if not alone and role is None:
                    local = workers.LocalWorkers(self.settings.workers, self._work_locally)
                coordinator = self._coordinator(source, local)

                def note() -> None:
                    for result in coordinator.fresh():
                        self.results[result.name] = result
                        tables.add(result)
                        progress.finished(result)
                        tables.write_soon()

                if trials is not None:
                    work(OwnChief(coordinator, note), trials)
                else:
                    self._serve(coordinator, local, note)
            return self._conclude(tables.write(), source, coordinator)

    def _check(self, trials: Trials | None, forks: bool) -> None:
        """Checks what every trial needs, unless there is nothing left to run."""
        left = [cell for cell in self.cells if self._is_open(cell.name)]
        if forks:
            check_cells_apart(self.settings, self.task, left, self.results.values())
        else:
            setups = trials.setups if trials else None
            check_cells(self.settings, self.task, left, self.results.values(), setups)

    def _source(self) -> Source:
        if self.settings.search == "grid":
            return GridSource(self.cells)
        return SearchSource(self.settings, f"val_{self.task.objective}", self.task.direction)

    def _coordinator(self, source: Source, local: workers.LocalWorkers | None) -> Coordinator:
        timeout = self.settings.worker_timeout
        expel = {"expel": local.expel} if local else {}
        return Coordinator(source, self.results, fingerprint(self.settings), timeout, **expel)

    def _serve(self, coordinator: Coordinator, local: workers.LocalWorkers | None, note: Any) -> None:
        def watch() -> None:
            note()
            if local:
                local.check(coordinator.handed_out)

        try:
            serve(coordinator, local.address if local else workers.chief_address(), watch)
            note()
        finally:
            if local:
                local.stop()

    def _work_locally(self, name: str, address: str) -> None:
        _work_for_chief(self.settings, name, address, check=False)

    def _done(self) -> int:
        return sum(not self._is_open(cell.name) for cell in self.cells) if self.settings.search == "grid" else 0

    def _is_open(self, name: str) -> bool:
        result = self.results.get(name)
        return result is None or result.status == "failed"

    def _conclude(self, said: str, source: Source, coordinator: Coordinator) -> str:
        """Returns the table if it is complete; otherwise raises an error that says what is missing."""
        planned = source.drawn if isinstance(source, SearchSource) else {cell.name: cell for cell in self.cells}
        failed = [self.results[name] for name in planned if name in self.results and self._is_open(name)]
        missing = [name for name in planned if name not in self.results]
        if not failed and not missing:
            return said
        reasons = [f"{result.trial}: {result.error}" for result in failed]
        reasons += [f"{name}: {coordinator.unwritten.get(name, 'not run')}" for name in missing]
        more = f"; and {len(reasons) - ERRORS_SHOWN} more" if len(reasons) > ERRORS_SHOWN else ""
        raise IncompleteError(
            f"{len(failed)} failed, {len(missing)} missing",
            said,
            f"{'; '.join(reasons[:ERRORS_SHOWN])}{more}. To try these again: {self._command()}",
        )

    def _command(self) -> str:
        return sweep_command(self.task.name, str(self.folder.path / "config.json"))
