"""results.csv: all runs of a sweep, with every number to the last bit. Needs no TensorFlow."""

import contextlib
import csv
import io
import json
import math
import numbers
import pathlib
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainers.results.layout import RESULTS
from trainers.results.methods import FIELDS, TUNED_FLAGS
from trainers.results.trials import Grid, Result, each_once, finished_trials, read_result
from trainers.system.environment import PACKAGES
from trainers.system.errors import DataError
from trainers.system.files import UnreadableError, read_text

if TYPE_CHECKING:
    import pandas

TRIAL, AFTER = "trial", ("seconds", "status", "error")
COUNTS = ("cores", "threads")
ENVIRONMENT = (*PACKAGES, "cores", "processor", "python", "git_revision", "threads")
LONGEST = 10_000  # characters of a message; result.json has all of it
METRIC = "metric_"  # before the name of a metric that another column has
TYPES = {"learning_rate": float, "beta_2": float, "seed": int, "warmup": str, **dict.fromkeys(TUNED_FLAGS, float)}


def read_results(folder: pathlib.Path, problems: list[str] | None = None) -> list[Result]:
    """The runs of a sweep that have ended: those of its trials, and those in results.csv whose trials are gone.

    A sweep that is killed has trials that are not in the table yet, and a folder that was kept has only the table.

    Args:
        folder: The folder of the sweep.
        problems: If given, damaged files are left out and reported here. Otherwise they raise a `DataError`.
    """
    results: list[Result] = []
    for trial in finished_trials(folder):
        try:
            results.append(read_result(trial))
        except DataError as error:
            _report(error, problems)
    try:
        results += read_table(folder / RESULTS) if (folder / RESULTS).exists() else []
    except DataError as error:
        _report(error, problems)
    return each_once(results)


def _report(error: DataError, problems: list[str] | None) -> None:
    if problems is None:
        raise error
    problems.append(str(error).partition("Received: ")[2])


def read_table(path: pathlib.Path) -> list[Result]:
    """The runs in a results.csv, in its order; raises a `DataError` if it is damaged."""
    try:
        return parse_results(read_text(path))[0]
    except UnreadableError as error:
        raise DataError(
            f"A {RESULTS} must be what a sweep has written: restore it, or remove it, and runs whose trials are gone "
            f"are made again. Received: {path} ({error})"
        ) from error


def read_frame(path: pathlib.Path) -> "pandas.DataFrame":
    """A results.csv as a data frame. Versions, revisions and messages stay text."""
    import pandas  # takes longer than a sweep that has nothing to do

    with path.open(newline="") as file:
        headings, *rows = csv.reader(file)
    columns = zip(*rows, strict=True) if rows else [()] * len(headings)
    texts = {TRIAL, "status", "error", *ENVIRONMENT}.difference(COUNTS)
    named = zip(headings, columns, strict=True)
    return pandas.DataFrame({name: list(column) if name in texts else _column(column) for name, column in named})


def _column(texts: Sequence[str]) -> list[Any]:
    """A column as integers, as floats with NaN where one is missing, as booleans, or as strings.

    >>> _column(["1", "2"]), _column(["0.5", ""]), _column(["True", "False"]), _column(["none", ""])
    ([1, 2], [0.5, nan], [True, False], ['none', ''])
    """
    if texts and set(texts) <= {"True", "False"}:
        return [text == "True" for text in texts]
    for convert in (int, lambda text: float(text or "nan")):
        if any(texts):
            with contextlib.suppress(ValueError):
                return [convert(text) for text in texts]
    return list(texts)


def _rows(text: str) -> list[list[str]]:
    """The rows of a CSV, whose fields may have several lines."""
    try:
        return list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise UnreadableError(f"not CSV: {error}") from error


def results_csv(results: Iterable[Result], objective: str, grid: Grid | None = None) -> str:
    """A row for each run, in the order of the grid: hyperparameters, objective, other metrics, duration, status, error,
    and what it was made with.

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
    taken = {TRIAL, *names, objective, *AFTER, *ENVIRONMENT}
    headings = [f"{METRIC}{name}" if name in taken else name for name in metrics]
    rows: list[list[Any]] = [[TRIAL, *names, objective, *headings, *AFTER, *_environment_headings(names)]]
    for run in runs:
        values, measured = [run.values.get(name) for name in names], [run.metrics.get(name) for name in metrics]
        made_with = [run.environment.get(name) for name in ENVIRONMENT]
        rows.append([run.trial, *values, run.objective, *measured, run.seconds, run.status, _message(run), *made_with])
    return csv_text(rows)


def _environment_headings(names: Iterable[str]) -> list[str]:
    """The number of threads, which every row has, may also be an axis of a sweep."""
    return [f"run_{name}" if name in names else name for name in ENVIRONMENT]


def _message(run: Result) -> str:
    """The error of a run, no longer than readers of CSV can take, and without what Python's writer does not quote."""
    return run.error[:LONGEST].replace("\r", "")


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


def parse_results(text: str) -> tuple[list[Result], str]:
    """The runs in a results.csv, and the name of their objective; raises an `UnreadableError` for anything else."""
    headings, *rows = _rows(text) or [[]]
    missing = [name for name in (TRIAL, *FIELDS, *AFTER) if name not in headings]
    if missing:
        raise UnreadableError(f"not the results.csv of a sweep: without {', '.join(missing)}")
    objective = next((name for name in headings if name.startswith("val_")), None)
    if objective is None:
        raise UnreadableError("not the results.csv of a sweep: without an objective, val_...")
    names = headings[1 : headings.index(objective)]
    metrics = headings[headings.index(objective) : headings.index(AFTER[0])]
    try:
        found = [_stored_result(dict(zip(headings, row, strict=True)), names, metrics) for row in rows]
    except ValueError as error:
        raise UnreadableError(f"not the results.csv of a sweep: {error}") from error
    return found, objective


def _stored_result(row: Mapping[str, str], names: Sequence[str], metrics: Sequence[str]) -> Result:
    made_with = {name: row.get(column) for name, column in zip(ENVIRONMENT, _environment_headings(names), strict=True)}
    return Result(
        row[TRIAL],
        {name: _stored_value(name, row[name]) for name in names if row[name] or name in FIELDS},
        row["status"],
        _stored_number(row[metrics[0]]),
        {_metric(name, row): _stored_number(row[name]) for name in metrics},
        float(row["seconds"] or math.nan),
        row["error"],
        {name: int(text) if name in COUNTS else text for name, text in made_with.items() if text},
    )


def _metric(heading: str, headings: Container[str]) -> str:
    """The name of a metric."""
    name = heading.removeprefix(METRIC)
    return name if name in headings else heading


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
