"""Tables of means for a page: what each method reached over a whole sweep, and in its best and its default cell."""

import os
import pathlib
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from trainers.evidence.comparison import values_of
from trainers.evidence.groups import FIRST_STEPS, QUESTIONS, method_groups
from trainers.evidence.names import method_title, sweep_title
from trainers.evidence.questions import Answer
from trainers.reports.reading import Sweep
from trainers.sweeps.cells import FIELDS, METHODS
from trainers.sweeps.formats import NOTHING, decimals, fixed, markdown_table, value_text
from trainers.sweeps.summary import cell_lines
from trainers.sweeps.table import Row, Table

# The columns of the tables, by the question that a sweep answers.
COLUMNS = {QUESTIONS[0]: (*METHODS, "none"), QUESTIONS[1]: FIRST_STEPS}
HEADINGS = ("sweep", "model and data", "cells", "seeds", "metric")
SUMMARY = "summary.md"
RATE, BETA_2, *_ = FIELDS
DEFAULTS = {RATE: 1e-3, BETA_2: 0.999}  # of Adam


def overall_means(sweeps: Iterable[Sweep], answers: Iterable[Answer], page: pathlib.Path) -> str:
    """For each question, a row for every sweep that answers it: the mean over its cells, with the spread over seeds."""
    verdicts = {(answer.question, answer.source): answer.comparison.verdict.value for answer in answers}
    asked = [(sweep, sweep.folder.name) for sweep in sweeps]
    tables = []
    for question, methods in COLUMNS.items():
        rows = [
            [_link(sweep, page), *_overall_row(sweep, methods), verdicts[question, name]]
            for sweep, name in asked
            if (question, name) in verdicts
        ]
        if rows:
            tables.append(markdown_table([[*HEADINGS, *map(method_title, methods), "verdict"], *rows]))
    return "\n\n".join(tables)


def _overall_row(sweep: Sweep, methods: Sequence[str]) -> list[str]:
    table = sweep.table(methods)
    scores = [_seed_means(table, method) for method in methods]
    spreads = [float(each.std(ddof=1)) for each in scores if len(each) > 1]
    places = decimals(statistics.median(spreads) if spreads else None)
    means = [_mean_text(each, places) for each in scores]
    return [sweep_title(sweep), str(len(table.rows)), str(len(table.seeds)), table.objective, *means]


def _seed_means(table: Table, method: str) -> np.ndarray:
    """The mean over all cells, for each seed that has a value in all of them."""
    values = values_of(table, method)
    return values[:, ~np.isnan(values).any(axis=0)].mean(axis=0) if len(values) else np.zeros(0)


def _mean_text(scores: np.ndarray, places: int) -> str:
    if not len(scores):
        return NOTHING
    mean = fixed(float(scores.mean()), places)
    return f"{mean} ± {fixed(float(scores.std(ddof=1)), places)}" if len(scores) > 1 else mean


def _link(sweep: Sweep, page: pathlib.Path) -> str:
    """The name of a sweep, as a link to its tables if they are kept."""
    summary = sweep.folder.path / SUMMARY
    if not summary.exists():
        return sweep.folder.name
    return f"[{sweep.folder.name}]({pathlib.Path(os.path.relpath(summary, page.parent)).as_posix()})"


def chosen_cells(sweeps: Iterable[Sweep]) -> str:
    """The best cell of every sweep that compares the paper's methods, and the one with Adam's default beta_2."""
    methods = COLUMNS[QUESTIONS[0]]
    headings = ["experiment", "metric", "learning rate, beta_2", "seeds", *map(method_title, methods)]
    compared = [sweep for sweep in sweeps if QUESTIONS[0] in dict(method_groups(sweep.table()))]
    rows = [row for sweep in compared for row in _cell_rows(sweep, methods)]
    return markdown_table([headings, *rows]) if rows else ""


def _cell_rows(sweep: Sweep, methods: Sequence[str]) -> Iterable[list[str]]:
    table = sweep.table(methods)
    lines = dict(zip(table.rows, cell_lines(table)[1:], strict=True))
    for row, what in _chosen(table, sweep.table(METHODS)):
        cells = dict(zip(table.methods, lines[row][len(table.row_names) :], strict=True))
        place = ", ".join(_value(name, value) for name, value in zip(table.row_names, row, strict=True))
        title = f"{sweep_title(sweep)}{f', {what}' if what else ''}"
        found = [cells.get(method, NOTHING) for method in methods]
        yield [title, table.objective, place, str(len(table.seeds)), *found]


def _value(name: str, value: Any) -> str:
    return value_text(value) if name in DEFAULTS else f"{name} {value_text(value)}"


def _chosen(table: Table, of_methods: Table) -> Iterable[tuple[Row, str]]:
    """The best row, then that of Adam's default beta_2 if it is another one; of several, that of the default rate."""
    found = of_methods.best()
    if found is None:
        return
    best, several = found[0], len(table.rows) > 1
    yield best, "best cell" if several else ""
    by_name = [(row, dict(zip(table.row_names, row, strict=True))) for row in table.rows]
    at_default = [(row, values) for row, values in by_name if values.get(BETA_2) == DEFAULTS[BETA_2]]
    if len(at_default) > 1:
        at_default = [(row, values) for row, values in at_default if values.get(RATE) == DEFAULTS[RATE]]
    for row, _ in at_default[:1]:
        if row != best:
            yield row, "Adam's default beta_2"
