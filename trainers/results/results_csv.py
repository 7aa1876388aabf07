"""All runs of a sweep as a data frame, and as results.csv, with every number to the last bit. Needs no TensorFlow.

The columns of the frame: the trial, its hyperparameters by the names of their flags, the label of its method, the
objective and the other metrics, how long it took, how it ended, and what it was made with. results.csv has all of them
but the label.
"""

import contextlib
import csv
import io
import json
import math
import numbers
import pathlib
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from pandas import DataFrame, read_csv

from trainers.results.layout import RESULTS
from trainers.results.methods import FIELDS, TUNED_FLAGS, method_label
from trainers.results.trials import Grid, Result, each_once, finished_trials, read_result
from trainers.system.environment import PACKAGES
from trainers.system.errors import DataError
from trainers.system.files import UnreadableError, read_text

LABEL = "warmup label"  # no flag has a space in its name
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


def read_frame(path: pathlib.Path) -> DataFrame:
    """A results.csv as a data frame with numbers as numbers. Versions, revisions and messages stay text."""
    frame = read_csv(path, dtype=str, keep_default_na=False)
    texts = {TRIAL, "status", "error", *ENVIRONMENT}.difference(COUNTS)
    return frame.assign(**{name: _column(frame[name].tolist()) for name in frame if name not in texts})


def _column(texts: Sequence[str]) -> list[Any]:
    """A column as integers, as floats with NaN where one is missing, as booleans, or as strings; to the last bit.

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


def frame_of(results: Iterable[Result], objective: str, grid: Grid | None = None) -> DataFrame:
    """A row for each run, in the order of the grid. Values keep their types; what a run does not have is None.

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
    columns = {
        TRIAL: [run.trial for run in runs],
        **{name: [run.values.get(name) for run in runs] for name in names},
        LABEL: [method_label(run.values) for run in runs],
        objective: [run.objective for run in runs],
        **{_heading(name, taken): [run.metrics.get(name) for run in runs] for name in metrics},
        "seconds": [run.seconds for run in runs],
        "status": [run.status for run in runs],
        # No longer than readers of CSV can take, and without what Python's writer does not quote.
        "error": [run.error[:LONGEST].replace("\r", "") for run in runs],
    }
    for name, column in zip(ENVIRONMENT, _environment_headings(names), strict=True):
        columns[column] = [run.environment.get(name) for run in runs]
    return DataFrame(columns, dtype=object)


def hyperparameters(frame: DataFrame) -> list[str]:
    """The names of the hyperparameters, in order."""
    return list(frame.columns[1 : list(frame.columns).index(LABEL)])


def csv_text(frame: DataFrame) -> str:
    """A frame as CSV; None is an empty field."""
    return str(frame.to_csv(index=False, lineterminator="\n"))


def _heading(metric: str, taken: Container[str]) -> str:
    return f"{METRIC}{metric}" if metric in taken else metric


def _environment_headings(names: Iterable[str]) -> list[str]:
    """The number of threads, which every row has, may also be an axis of a sweep."""
    return [f"run_{name}" if name in names else name for name in ENVIRONMENT]


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
    recorded = {name.removeprefix(METRIC) if name.removeprefix(METRIC) in row else name: row[name] for name in metrics}
    return Result(
        row[TRIAL],
        {name: _stored_value(name, row[name]) for name in names if row[name] or name in FIELDS},
        row["status"],
        _stored_number(row[metrics[0]]),
        {name: _stored_number(text) for name, text in recorded.items()},
        float(row["seconds"] or math.nan),
        row["error"],
        {name: int(text) if name in COUNTS else text for name, text in made_with.items() if text},
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
