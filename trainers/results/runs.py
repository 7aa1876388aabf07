"""Everything in folders of runs: simulations, analyses, sweeps and training runs."""

import csv
import dataclasses
import json
import pathlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from pandas import DataFrame

from trainers.results.folders import SWEEP_OF, Folder, find_folders
from trainers.results.layout import CONFIG, RESULTS, RUN_RESULTS, SIMULATION_TABLE, SUMMARY, TRIALS
from trainers.results.methods import FIELDS, TUNED_FLAGS, method_flags, method_label
from trainers.results.records import Series, read_records, read_series
from trainers.results.results_csv import LABEL, frame_of, read_results
from trainers.results.table import METHOD, SEED, Row, Table, tabulate
from trainers.results.tasks import (
    MODELS,
    OBJECTIVES,
    OF_TASKS,
    TASKS,
    Objective,
    Terms,
    data_name,
    data_title,
    margin_of,
    objective_named,
    sweep_command,
)
from trainers.results.trials import Grid, Result
from trainers.system.errors import ConfigError
from trainers.system.files import UnreadableError, read_object, read_text

SIMULATION, ANALYSIS, WARMUPS = "simulate", "gradient_analysis", "effective_warmup"  # not shown as training runs

# What reading and drawing raise for damaged data.
DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

Records = Sequence[Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Measured:
    """A simulation or a gradient analysis: columns of values at each update t."""

    folder: Folder
    series: Series


@dataclasses.dataclass(frozen=True)
class Trial:
    """A run of a sweep, finished or not: its place in the table, and its records."""

    row: Row  # pairs of (name, value)
    method: str
    seed: Any
    status: str
    records: Records


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A sweep, finished or still running, or the results kept from one whose trials are gone."""

    folder: Folder
    objective: Objective
    runs: DataFrame  # as `frame_of` makes it
    grid: Grid | None
    trials: tuple[Trial, ...]
    kept: bool = False
    _tables: dict[frozenset[str] | None, Table] = dataclasses.field(
        init=False, default_factory=dict, compare=False, repr=False
    )

    @property
    def task(self) -> str:
        return self.folder.task.removeprefix(SWEEP_OF)

    @property
    def seconds(self) -> float:
        return float(sum(self.runs.seconds))

    @property
    def planned(self) -> int | None:
        """The planned number of runs; None for a search, where it is unknown."""
        return None if self.grid is None else self.table().planned

    @property
    def data(self) -> str:
        """The name of its data set."""
        return data_name(self.folder.config)

    @property
    def subject(self) -> str:
        """Its data set, and its model where the task has several."""
        return ", ".join(str(each) for each in (self.data, self.folder.config.get("model")) if each)

    @property
    def terms(self) -> Terms:
        """How its methods are judged. Kept results have no command: their data and folder are elsewhere."""
        command = "" if self.kept else sweep_command(self.task, f"{self.folder.name}/{CONFIG}")
        return Terms(margin_of(self.task, self.data), self.objective.unit, command)

    def table(self, methods: Iterable[str] | None = None) -> Table:
        """The table of all methods, or of some, in the units of the objective. A page asks for each of them often."""
        key = None if methods is None else frozenset(methods)
        if key not in self._tables:
            self._tables[key] = self._table(key)
        return self._tables[key]

    def _table(self, methods: Collection[str] | None) -> Table:
        grid, runs = self.grid, self.runs
        if methods is not None:
            runs = runs[runs[LABEL].isin(methods)]
            grid = grid and {**grid, METHOD: [method for method in grid[METHOD] if method in methods]}
        return tabulate(runs, self.objective, grid)


@dataclasses.dataclass(frozen=True)
class Training:
    """A single training run, not part of a sweep."""

    folder: Folder
    records: Records
    results: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Runs:
    """Everything that the page shows."""

    folders: tuple[Folder, ...] = ()
    simulations: tuple[Measured, ...] = ()
    analyses: tuple[Measured, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    trainings: tuple[Training, ...] = ()
    problems: tuple[str, ...] = ()  # files that cannot be read or have unexpected contents


def read_runs(roots: Iterable[str]) -> Runs:
    """Reads everything at or below some folders; whatever is missing or damaged is left out."""
    problems: list[str] = []
    folders = find_folders(roots, problems)

    def read(make: Callable[[Folder], Any], wanted: Callable[[Folder], bool]) -> list[Any]:
        made = [_unless_damaged(make, folder, problems) for folder in folders if wanted(folder)]
        return [each for each in made if each is not None]

    simulations = read(lambda each: Measured(each, read_columns(each.path)), lambda each: each.task == SIMULATION)
    analyses = read(lambda each: Measured(each, read_series(each.path, problems)), lambda each: each.task == ANALYSIS)
    sweeps = read(lambda each: read_sweep(each, problems), lambda each: each.task.startswith(SWEEP_OF))
    trainings = read(lambda each: read_training(each, problems), _is_training)
    return Runs(
        tuple(folders),
        tuple(each for each in simulations if each.series),
        tuple(each for each in analyses if each.series),
        tuple(sweeps),
        tuple(each for each in trainings if each.records),
        tuple(problems),
    )


def _unless_damaged(make: Callable[[Folder], Any], folder: Folder, problems: list[str]) -> Any:
    try:
        return make(folder)
    except DAMAGE as error:
        problems.append(f"{folder.path} ({described(error)})")
        return None


def described(error: Exception) -> str:
    """Says what is wrong with the data that raised an error."""
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _is_training(folder: Folder) -> bool:
    """Whether a folder holds a training run, including those of a user's own task."""
    return folder.task not in (SIMULATION, ANALYSIS, WARMUPS) and not folder.task.startswith(SWEEP_OF)


def read_columns(folder: pathlib.Path) -> Series:
    """Reads update_magnitudes.csv; empty if the file is missing or has no rows."""
    path = folder / SIMULATION_TABLE
    rows = list(csv.DictReader(read_text(path).splitlines())) if path.exists() else []
    try:
        return {name: [float(row[name]) for row in rows] for name in rows[0]} if rows else {}
    except (TypeError, ValueError) as error:
        raise ConfigError(f"A simulation's CSV must hold numbers. Received: {path} ({error})") from error


def read_training(folder: Folder, problems: list[str]) -> Training:
    path = folder.path / RUN_RESULTS
    try:
        results = read_object(path) if path.exists() else {}
    except UnreadableError as error:
        problems.append(f"{path} ({error})")
        results = {}
    return Training(folder, read_records(folder.path, problems), results)


def read_sweep(folder: Folder, problems: list[str], curves: bool = True) -> Sweep:
    """Reads the results of a sweep and, with `curves`, the records of its trials."""
    results = read_results(folder.path, problems)
    kept = not (folder.path / TRIALS).exists() and (folder.path / RESULTS).exists()
    config, grid = folder.config, None
    axes = _axes(config)
    base = {name: config.get(name) for name in axes}
    results = [dataclasses.replace(result, values={**base, **result.values}) for result in results]
    if config.get("search", "grid") == "grid":
        names = [*FIELDS, *(name for name in TUNED_FLAGS if config.get(f"{name}s"))]
        grid = {name: config.get(f"{name}s", []) for name in names} | axes
    begun = sorted((folder.path / TRIALS).glob(f"*/{CONFIG}")) if curves else []
    trials = [_trial(path, folder, results, problems) for path in begun]
    shown = tuple(each for each in trials if each and each.records)
    objective = objective_of(folder)
    return Sweep(folder, objective, frame_of(results, objective.metric, grid), grid, shown, kept)


def _axes(config: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The additional axes of a sweep, from its config: flags with their values."""
    parted = [text.partition("=") for text in config.get("sweep", [])]
    return {name: [_literal(value) for value in values.split(",")] for name, _, values in parted}


def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _trial(path: pathlib.Path, sweep: Folder, results: Iterable[Result], problems: list[str]) -> Trial | None:
    """Reads a trial; its hyperparameters come from its result or, before it has one, from its config."""
    result = next((each for each in results if each.trial == path.parent.name), None)
    try:
        values = dict(result.values) if result else _planned_values(path, sweep)
        records = read_records(path.parent, problems)
    except DAMAGE as error:
        problems.append(f"{path.parent} ({described(error)})")
        return None
    row = tuple((name, value) for name, value in values.items() if name not in (METHOD, SEED, *TUNED_FLAGS))
    status = result.status if result else "running"
    return Trial(row, method_label(values), values[SEED], status, records)


def _planned_values(path: pathlib.Path, sweep: Folder) -> dict[str, Any]:
    config = read_object(path)["config"]
    fitting = [name for name in sweep.config.get("warmups", []) if method_flags(name).items() <= config.items()]
    # `radam` also fits a run of `radam_nothing`, which has one more flag.
    method = max(fitting, key=lambda name: len(method_flags(name)), default=config.get(METHOD))
    return {name: config.get(name) for name in (*FIELDS, *TUNED_FLAGS, *_axes(sweep.config))} | {METHOD: method}


def objective_of(folder: Folder) -> Objective:
    """The objective of a sweep; for an unknown task, it is read from the sweep's own summary."""
    task = folder.task.removeprefix(SWEEP_OF)
    if task in OBJECTIVES:
        return OBJECTIVES[task]
    summary = folder.path / SUMMARY
    heading = summary.read_text().partition("\n")[0] if summary.exists() else ""
    said = re.search(r": (.+), (lower|higher) is better", heading)
    if said is None:
        return Objective("", "objective (assumed: lower is better)", "min")
    metric = said[1].replace("validation ", "val_")
    return objective_named(task, metric, "min" if said[2] == "lower" else "max")


def sweep_title(sweep: Sweep) -> str:
    """The model and the data of a sweep; the name of its folder if the data are not known."""
    config, task = sweep.folder.config, sweep.task
    model = str(config.get("model") or "")
    what = MODELS.get(model, model) or OF_TASKS.get(task) or TASKS.get(task, task)
    return f"{what}, {data_title(config) or sweep.folder.name}"
