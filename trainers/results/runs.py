"""Everything in folders of runs: simulations, analyses, sweeps and training runs."""

import dataclasses
import json
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pandas import DataFrame

from trainers.results.folders import SWEEP_OF, Folder, Series, find_folders, read_columns, read_records, read_series
from trainers.results.layout import CONFIG, RESULTS, RUN_RESULTS, SIMULATION_TABLE, TRIALS
from trainers.results.methods import FIELDS, TUNED_FLAGS, method_flags, method_label
from trainers.results.results_csv import LABEL, frame_of, parse_results, read_results
from trainers.results.table import METHOD, SEED, Row, Table, tabulate
from trainers.results.tasks import (
    MODELS,
    TASKS,
    Objective,
    Terms,
    data_name,
    data_title,
    margin_of,
    objective_named,
    sweep_command,
    task_title,
)
from trainers.results.trials import Grid, Result
from trainers.system.errors import ConfigError, require
from trainers.system.files import UnreadableError, read_object, read_text

SIMULATION, ANALYSIS, WARMUPS = "simulate", "gradient_analysis", "effective_warmup"  # not shown as training runs

# What reading and drawing raise for damaged data.
DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
# What a page and a figure need of a gradient analysis.
MEASURED = ("gradient_cv_median", "moment_correlation", "update_median")

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
        key, grid, runs = None if methods is None else frozenset(methods), self.grid, self.runs
        if key not in self._tables:
            if key is not None:
                runs = runs[runs[LABEL].isin(key)]
                grid = grid and {**grid, METHOD: [method for method in grid[METHOD] if method in key]}
            self._tables[key] = tabulate(runs, self.objective, grid)
        return self._tables[key]


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
        return _each(make, filter(wanted, folders), problems)

    simulations = read(
        lambda each: Measured(each, read_columns(each.path / SIMULATION_TABLE)), lambda each: each.task == SIMULATION
    )
    analyses = read(lambda each: read_analysis(each, problems), lambda each: each.task == ANALYSIS)
    sweeps = read(lambda each: read_sweep(each, problems), lambda each: each.is_sweep)
    trainings = read(lambda each: read_training(each, problems), _is_training)
    return Runs(
        tuple(folders),
        tuple(each for each in simulations if each.series),
        tuple(each for each in analyses if each.series),
        tuple(sweeps),
        tuple(each for each in trainings if each.records),
        tuple(problems),
    )


def read_sweeps(roots: Iterable[str]) -> tuple[list[Sweep], list[str]]:
    """The sweeps in or below some folders or in some files, each once, and what could not be read."""
    problems: list[str] = []
    sweeps: dict[pathlib.Path, Sweep] = {}
    for root in roots:
        path = pathlib.Path(root)
        require(path.exists(), "RUNS must be folders of sweeps, or results.csv files", root)
        if path.is_file() and not (path.parent / CONFIG).exists():
            found = [read_file(path)]
        else:
            below = str(path.parent if path.is_file() else path)
            folders = [folder for folder in find_folders([below], problems) if folder.is_sweep]
            require(folders, "RUNS must be folders with sweeps in or below them", below)
            found = _each(lambda folder: read_sweep(folder, problems, curves=False), folders, problems)
        for sweep in found:
            sweeps.setdefault(sweep.folder.path.resolve(), sweep)
    return list(sweeps.values()), problems


def read_file(path: pathlib.Path) -> Sweep:
    """The sweep of a results.csv alone, whose task follows from its objective."""
    try:
        results, metric = parse_results(read_text(path))
    except UnreadableError as error:
        raise ConfigError(f"A file of RUNS must be the results.csv of a sweep. Received: {path} ({error})") from error
    task = next((name for name, each in TASKS.items() if each.objective.metric == metric), metric)
    name = path.resolve().parent.name if path.name == RESULTS else path.stem
    objective = objective_named(task, metric, "min")
    return Sweep(Folder(path, name, f"{SWEEP_OF}{task}", {}), objective, frame_of(results, metric), None, ())


def read_analyses(roots: Iterable[str], problems: list[str]) -> list[Measured]:
    """The gradient analyses in or below some folders; what cannot be read is added to the problems."""
    places = [root for root in roots if pathlib.Path(root).is_dir()]
    folders = [folder for folder in find_folders(places) if folder.task == ANALYSIS] if places else []
    found = _each(lambda folder: read_analysis(folder, problems), folders, problems)
    return [each for each in found if each.series]


def read_analysis(folder: Folder, problems: list[str]) -> Measured:
    series = read_series(folder.path, problems)
    missing = [name for name in MEASURED if series and name not in series]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    return Measured(folder, series)


def _each(make: Callable[[Folder], Any], folders: Iterable[Folder], problems: list[str]) -> list[Any]:
    """What is made of each folder; damaged ones are left out and added to the problems."""
    made = []
    for folder in folders:
        try:
            made.append(make(folder))
        except DAMAGE as error:
            problems.append(f"{folder.path} ({described(error)})")
    return made


def described(error: Exception) -> str:
    """Says what is wrong with the data that raised an error."""
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _is_training(folder: Folder) -> bool:
    """Whether a folder holds a training run, including those of a user's own task."""
    return folder.task not in (SIMULATION, ANALYSIS, WARMUPS) and not folder.is_sweep


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
    sweep = Sweep(folder, objective, frame_of(results, objective.metric, grid), grid, shown, kept)
    sweep.table()  # what no table can hold is damaged, and left out by whoever reads many sweeps
    return sweep


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
    """The objective of a sweep; for a user's own task, what the sweep has recorded."""
    task = folder.task.removeprefix(SWEEP_OF)
    if task in TASKS:
        return TASKS[task].objective
    recorded = folder.resolved.get("objective")
    if isinstance(recorded, str):
        return objective_named(task, recorded, str(folder.resolved.get("direction")))
    return Objective("", "objective (assumed: lower is better)", "min")


def sweep_title(sweep: Sweep) -> str:
    """The model and the data of a sweep; the name of its folder if the data are not known."""
    config, task = sweep.folder.config, sweep.task
    model = str(config.get("model") or "")
    what = MODELS.get(model, model) or (task in TASKS and TASKS[task].model) or task_title(task)
    return f"{what}, {data_title(config) or sweep.folder.name}"
