"""The results of the runs of a sweep: one line of JSON in the folder of each run, and all of them as CSV."""

import csv
import dataclasses
import io
import json
import math
import numbers
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from trainers.results.methods import FIELDS, PERIOD
from trainers.system.errors import DataError
from trainers.system.files import UnreadableError, read_text

STATUSES = ("done", "diverged", "failed")
TRIALS, RESULT = "trials", "result.json"
AGAIN = "@"  # between trial and number in the name of a folder that another worker has taken over

# The hyperparameters of a sweep, each with its values in order.
Grid = Mapping[str, Sequence[Any]]


@dataclasses.dataclass(frozen=True)
class Result:
    """One run: its hyperparameters and its outcome.

    `objective` is a finite number if and only if `status` is "done". A metric that is not finite is None.

    Args:
        trial: The name of the run.
        values: Its hyperparameters, in order: learning_rate, beta_2, warmup, seed and any others.
        status: "done", "diverged" or "failed".
        objective: The value that the sweep compares.
        metrics: Other measured values.
        seconds: How long it took.
        error: Why it failed.
        environment: The versions, git_revision, machine and threads it was made with. Older results have none.
    """

    trial: str
    values: Mapping[str, Any]
    status: str
    objective: float | None
    metrics: Mapping[str, float | None]
    seconds: float
    error: str = ""
    environment: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"`status` must be one of {', '.join(STATUSES)}. Received: status={self.status!r}")
        if (self.status == "done") != (_finite_number(self.objective) is not None):
            raise ValueError(
                "`objective` must be a finite number for status 'done', and None for the others. Received: "
                f"objective={self.objective}, status={self.status!r}"
            )
        object.__setattr__(self, "objective", _finite_number(self.objective))
        object.__setattr__(self, "metrics", {name: _finite_number(value) for name, value in self.metrics.items()})

    @classmethod
    def measured(
        cls,
        trial: str,
        values: Mapping[str, Any],
        objective: float,
        metrics: Mapping[str, float],
        seconds: float,
        environment: Mapping[str, Any] | None = None,
    ) -> "Result":
        """A run that was completed: done, or diverged if its objective is not a finite number.

        >>> Result.measured("0001", {"seed": 1}, float("nan"), {}, 2.5).status
        'diverged'
        """
        finite = _finite_number(objective)
        status = "diverged" if finite is None else "done"
        return cls(trial, values, status, finite, metrics, seconds, environment=environment or {})

    @classmethod
    def from_json(cls, line: str) -> "Result":
        return cls(**json.loads(line))

    @property
    def name(self) -> str:
        """The name of its cell."""
        return self.trial.partition(AGAIN)[0]

    def to_json(self) -> str:
        """One line; every float comes back exactly."""
        return json.dumps(dataclasses.asdict(self), allow_nan=False)


def in_unit(result: Result, shown: Callable[[float], float]) -> Result:
    """The same run with its objective in the unit of the tables."""
    value = None if result.objective is None else shown(result.objective)
    return dataclasses.replace(result, objective=value)


def read_result(folder: pathlib.Path) -> Result:
    """The result of a trial that has ended; raises a `DataError` if its file is damaged."""
    path = folder / RESULT
    try:
        return Result.from_json(path.read_text())
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            f"A {RESULT} must be what a sweep has written: restore it, or remove it to run its trial again. "
            f"Received: {path} ({error})"
        ) from error


def read_results(folder: pathlib.Path) -> list[Result]:
    """The results of a sweep, one per trial, in the order of the folders' names."""
    return each_once(read_result(trial) for trial in finished_trials(folder))


def each_once(results: Iterable[Result]) -> list[Result]:
    """One result per trial: if one worker failed and another finished, the latter counts."""
    found: dict[str, Result] = {}
    for result in results:
        if result.name not in found or found[result.name].status == "failed":
            found[result.name] = result
    return list(found.values())


def finished_trials(folder: pathlib.Path) -> list[pathlib.Path]:
    """The folders of the trials that have a result."""
    return sorted(path.parent for path in (folder / TRIALS).glob(f"*/{RESULT}"))


def newest_folder(trials: pathlib.Path, name: str) -> pathlib.Path:
    """The folder where a trial is or will be. Older folders were taken over and are files now."""
    folder, number = trials / name, 2
    while (following := trials / f"{name}{AGAIN}{number}").exists():
        folder, number = following, number + 1
    return folder


def results_csv(results: Iterable[Result], objective: str, grid: Grid | None = None) -> str:
    """A row for each run, in the order of the grid: hyperparameters, objective, other metrics, duration, status, error.

    Args:
        results: The runs, in any order.
        objective: The name of the objective.
        grid: The values of each hyperparameter in their order. Other values come after these, numbers by size and
            names in alphabetical order.
    """
    grid = grid or {}
    runs = list(results)
    names = _all_names([list(grid), *(run.values for run in runs)])
    runs.sort(key=lambda run: [place(run.values.get(name), grid.get(name, ())) for name in names] + [run.trial])
    metrics = [name for name in _all_names(run.metrics for run in runs) if name != objective]
    taken = {"trial", *names, objective, "seconds", "status", "error"}
    headings = [f"metric_{name}" if name in taken else name for name in metrics]
    rows: list[list[Any]] = [["trial", *names, objective, *headings, "seconds", "status", "error"]]
    for run in runs:
        values, measured = [run.values.get(name) for name in names], [run.metrics.get(name) for name in metrics]
        rows.append([run.trial, *values, run.objective, *measured, run.seconds, run.status, run.error])
    return csv_text(rows)


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV; None is an empty field."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def place(value: Any, listed: Sequence[Any] = ()) -> tuple[Any, ...]:
    """A key that sorts values as they are listed, then numbers by size, then names in alphabetical order.

    >>> sorted(["b", 2, 10, "a", "z"], key=lambda value: place(value, ["z"]))
    ['z', 2, 10, 'a', 'b']
    """
    if value in listed:
        return (0, list(listed).index(value), "")
    if isinstance(value, numbers.Real):
        return (1, float(value), "")
    return (2, 0, str(value))


def _all_names(groups: Iterable[Iterable[str]]) -> list[str]:
    """All names, in the order in which they first appear."""
    return list(dict.fromkeys(name for group in groups for name in group))


def _finite_number(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


BEFORE, AFTER = "trial", ("seconds", "status", "error")
TYPES = {"learning_rate": float, "beta_2": float, "seed": int, "warmup": str, PERIOD: float}


def parse_results(text: str) -> tuple[list[Result], str]:
    """The runs in a results.csv, and the name of their objective; raises an `UnreadableError` for anything else."""
    rows = list(csv.reader(text.splitlines()))
    headings = rows[0] if rows else []
    missing = [name for name in (BEFORE, *FIELDS, *AFTER) if name not in headings]
    if missing:
        raise UnreadableError(f"not the results.csv of a sweep: without {', '.join(missing)}")
    objective = next((name for name in headings if name.startswith("val_")), None)
    if objective is None:
        raise UnreadableError("not the results.csv of a sweep: without an objective, val_...")
    names = headings[1 : headings.index(objective)]
    metrics = headings[headings.index(objective) + 1 : headings.index(AFTER[0])]
    try:
        return [
            _stored_result(dict(zip(headings, row, strict=True)), names, objective, metrics) for row in rows[1:]
        ], objective
    except ValueError as error:
        raise UnreadableError(f"not the results.csv of a sweep: {error}") from error


def _stored_result(row: Mapping[str, str], names: Sequence[str], objective: str, metrics: Sequence[str]) -> Result:
    return Result(
        row[BEFORE],
        {name: _stored_value(name, row[name]) for name in names if row[name] or name in FIELDS},
        row["status"],
        _stored_number(row[objective]),
        {name: _stored_number(row[name]) for name in metrics},
        float(row["seconds"] or math.nan),
        row["error"],
    )


def _stored_value(name: str, text: str) -> Any:
    """
    >>> _stored_value("seed", "3"), _stored_value("weight_decay", "1e-4"), _stored_value("model", "mlp")
    (3, 0.0001, 'mlp')
    """
    if name in TYPES:
        return TYPES[name](text)
    try:
        return json.loads(text.lower() if text in ("True", "False") else text)
    except ValueError:
        return text


def _stored_number(text: str) -> float | None:
    """A metric that is not a number is None.

    >>> _stored_number("0.5"), _stored_number(""), _stored_number("by hand")
    (0.5, None, None)
    """
    try:
        return float(text) if text else None
    except ValueError:
        return None


CONFIG, RESULTS, ENVIRONMENTS = "config.json", "results.csv", "environments.json"


def environments_json(results: Iterable[Result]) -> str:
    """The environments that the runs were made with, each once, with the names of its runs."""
    groups: dict[str, list[str]] = {}
    for result in results:
        groups.setdefault(json.dumps(result.environment, sort_keys=True), []).append(result.trial)
    listed = [{"environment": json.loads(text), "trials": sorted(trials)} for text, trials in groups.items()]
    return json.dumps(sorted(listed, key=lambda each: each["trials"]), indent=1) + "\n"


def read_kept(folder: pathlib.Path) -> list[Result]:
    """The runs in results.csv, in its order; raises an `UnreadableError` if a file is damaged."""
    results, _ = parse_results(read_text(folder / RESULTS))
    made_with = _environments(folder / ENVIRONMENTS)
    return [dataclasses.replace(result, environment=made_with.get(result.trial, {})) for result in results]


def _environments(path: pathlib.Path) -> dict[str, Any]:
    """The environments by the names of the runs; empty if they were not kept."""
    listed = json.loads(read_text(path)) if path.exists() else []
    return {trial: group["environment"] for group in listed for trial in group["trials"]}
