"""Reads the folders of runs into what a page shows: simulations, analyses, sweeps, training runs."""

import csv
import dataclasses
import json
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainers.analysis.findings import Series
from trainers.analysis.series import read_series
from trainers.engine.config import ConfigError
from trainers.engine.reading import read_records
from trainers.reports.folders import SWEEP_OF, Folder, find_folders
from trainers.reports.objectives import Objective, objective_of
from trainers.sweeps.cells import FIELDS, method_flags
from trainers.sweeps.results import TRIALS, Grid, Result, read_results
from trainers.sweeps.table import METHOD, SEED, Row, Table, tabulate

SIMULATION, ANALYSIS, WARMUPS = "simulate", "gradient_analysis", "effective_warmup"  # tasks that are no training

Records = Sequence[Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Measured:
    """A simulation or a gradient analysis: columns over the update t."""

    folder: Folder
    series: Series


@dataclasses.dataclass(frozen=True)
class Trial:
    """A run of a sweep, finished or not: where it stands in the table, and its records."""

    row: Row  # of (name, value)
    method: str
    seed: Any
    status: str
    records: Records


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A sweep, whole or still running."""

    folder: Folder
    objective: Objective
    results: tuple[Result, ...]
    grid: Grid | None
    trials: tuple[Trial, ...]

    @property
    def task(self) -> str:
        return self.folder.task.removeprefix(SWEEP_OF)

    @property
    def seconds(self) -> float:
        return sum(result.seconds for result in self.results)

    @property
    def planned(self) -> int | None:
        """How many runs there will be; None for a search, which does not know."""
        if self.grid is None:
            return None
        count = 1
        for values in self.grid.values():
            count *= len(values)
        return count

    def table(self, methods: Iterable[str] | None = None) -> Table:
        """The table of all methods, or of some, in the units of the objective."""
        grid, results = self.grid, list(self.results)
        if methods is not None:
            kept = set(methods)
            results = [result for result in results if result.values[METHOD] in kept]
            grid = grid and {**grid, METHOD: [method for method in grid[METHOD] if method in kept]}
        shown = [_in_units(result, self.objective) for result in results]
        return tabulate(shown, self.objective.label, self.objective.direction, grid)


@dataclasses.dataclass(frozen=True)
class Training:
    """A run of its own."""

    folder: Folder
    records: Records
    results: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Runs:
    """All that a page is about."""

    folders: tuple[Folder, ...] = ()
    simulations: tuple[Measured, ...] = ()
    analyses: tuple[Measured, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    trainings: tuple[Training, ...] = ()


def read_runs(roots: Iterable[str]) -> Runs:
    """Everything at or below some folders. What a run has not written yet is left out."""
    folders = find_folders(roots)
    simulations = [Measured(each, read_columns(each.path)) for each in folders if each.task == SIMULATION]
    analyses = [Measured(each, read_series(each.path)) for each in folders if each.task == ANALYSIS]
    trainings = [read_training(each) for each in folders if _is_training(each)]
    return Runs(
        tuple(folders),
        tuple(each for each in simulations if each.series),
        tuple(each for each in analyses if each.series),
        tuple(read_sweep(each) for each in folders if each.task.startswith(SWEEP_OF)),
        tuple(each for each in trainings if each.records),
    )


def _is_training(folder: Folder) -> bool:
    """Whatever else has records: also a task of one's own."""
    return folder.task not in (SIMULATION, ANALYSIS, WARMUPS) and not folder.task.startswith(SWEEP_OF)


def read_columns(folder: pathlib.Path) -> Series:
    """update_magnitudes.csv; nothing if it is not there, or has no rows."""
    path = folder / "update_magnitudes.csv"
    rows = list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []
    try:
        return {name: [float(row[name]) for row in rows] for name in rows[0]} if rows else {}
    except (TypeError, ValueError) as error:
        raise ConfigError(f"A simulation's CSV must hold numbers. Received: {path} ({error})") from error


def read_training(folder: Folder) -> Training:
    results = folder.path / "results.json"
    return Training(folder, read_records(folder.path), json.loads(results.read_text()) if results.exists() else {})


def read_sweep(folder: Folder) -> Sweep:
    """A sweep's finished trials, and the records of those under way."""
    try:
        results = read_results(folder.path)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"Each result.json of a sweep must be whole. Received: {folder.path} ({error})") from error
    config, grid = folder.config, None
    if config.get("search", "grid") == "grid":
        grid = {name: config.get(f"{name}s", []) for name in FIELDS}
    trials = [_trial(path, folder, results) for path in sorted((folder.path / TRIALS).glob("*/config.json"))]
    return Sweep(folder, objective_of(folder), tuple(results), grid, tuple(each for each in trials if each.records))


def _trial(path: pathlib.Path, sweep: Folder, results: Iterable[Result]) -> Trial:
    """Its hyperparameters stand in its result, or, before it has one, in its config."""
    result = next((each for each in results if each.trial == path.parent.name), None)
    values = dict(result.values) if result else _planned_values(path, sweep)
    row = tuple((name, value) for name, value in values.items() if name not in (METHOD, SEED))
    status = result.status if result else "running"
    return Trial(row, values[METHOD], values[SEED], status, read_records(path.parent))


def _planned_values(path: pathlib.Path, sweep: Folder) -> dict[str, Any]:
    config = json.loads(path.read_text())["config"]
    fitting = [name for name in sweep.config.get("warmups", []) if method_flags(name).items() <= config.items()]
    # `radam` fits a run of `radam_nothing` too, which has one flag more.
    method = max(fitting, key=lambda name: len(method_flags(name)), default=config.get(METHOD))
    return {name: config.get(name) for name in FIELDS} | {METHOD: method}


def _in_units(result: Result, objective: Objective) -> Result:
    value = None if result.objective is None else objective.shown(result.objective)
    return dataclasses.replace(result, objective=value)
