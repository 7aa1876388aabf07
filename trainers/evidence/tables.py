"""Every verdict in one table: to read, and as CSV."""

import os
import pathlib
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from trainers.evidence.comparison import Comparison, judge
from trainers.evidence.differences import LEVELS, Difference
from trainers.evidence.findings import advice_text, margin_text, pair_text, places_of, verdict_text
from trainers.evidence.questions import FIRST_STEP_RULES, FIRST_STEPS, WARMUPS, Answer, method_groups, terms_of
from trainers.evidence.summary import cell_lines, cell_text
from trainers.evidence.tuned import duels, tuned_findings
from trainers.results.formats import NOTHING, decimals, markdown_table, signed, value_text
from trainers.results.layout import SUMMARY
from trainers.results.methods import FIELDS, METHODS, method_title
from trainers.results.runs import Sweep, sweep_title
from trainers.results.table import Cell, Row, Table
from trainers.results.tasks import Margin

HEADINGS = ("question", "task", "data", "from", "difference", "mean", "90 % interval", "95 % interval", "margin")
MORE = ("seeds", "cells", "this pair", "all pairs")


def evidence_table(answers: Iterable[Answer]) -> list[list[str]]:
    """Headings, then a row for every pair, with the verdict on it and on all pairs of its question."""
    rows = [_row(answer, difference) for answer in answers for difference in answer.comparison.differences]
    return [[*HEADINGS, *MORE], *rows]


def _row(answer: Answer, difference: Difference) -> list[str]:
    comparison = answer.comparison
    return [
        *(answer.question, answer.task, answer.data or NOTHING, answer.source, pair_text(difference.pair)),
        *_numbers(comparison, difference),
        margin_text(comparison) or NOTHING,
        *(str(difference.seeds), str(difference.cells), _pair_verdict(answer, difference) or NOTHING),
        comparison.verdict.value,
    ]


def answer_text(answer: Answer) -> str:
    """The verdict on the methods, and what would decide if it is inconclusive."""
    where = place_text(answer.task, answer.data, answer.source)
    advice = "" if answer.published else advice_text(answer.comparison)
    return f"{where}: {verdict_text(answer.comparison)} {advice}".rstrip()


def place_text(task: str, data: str, source: str) -> str:
    """Where an answer comes from.

    >>> place_text("language_modeling", "pydoc", "runs"), place_text("language_modeling", "", "runs")
    ('language_modeling, pydoc (runs)', 'language_modeling, runs')
    """
    return f"{task}, {data} ({source})" if data else f"{task}, {source}"


def _numbers(comparison: Comparison, difference: Difference) -> list[str]:
    places = places_of(difference, comparison.margin) if difference.seeds else 0
    mean = f"{signed(difference.mean, places)} {comparison.terms.unit}".rstrip() if difference.seeds else NOTHING
    if difference.seeds < 2:
        return [mean, NOTHING, NOTHING]
    return [mean, *(" to ".join(signed(end, places) for end in difference.interval(level)) for level in LEVELS)]


def evidence_columns(answers: Iterable[Answer]) -> Mapping[str, list[Any]]:
    """The columns of the table as lists, with all digits."""
    rows = [_record(answer, difference) for answer in answers for difference in answer.comparison.differences]
    names = list(rows[0]) if rows else []
    return {name: [row[name] for row in rows] for name in names}


def _pair_verdict(answer: Answer, difference: Difference) -> str:
    """The verdict on one pair by its interval alone, whether or not runs failed or are missing."""
    margin = answer.comparison.margin
    return judge([difference], margin).value if margin and difference.seeds > 1 else ""


def _record(answer: Answer, difference: Difference) -> dict[str, Any]:
    comparison = answer.comparison
    tested = difference.seeds > 1
    (low, high), (lower, higher) = (difference.interval(level) if tested else (None, None) for level in LEVELS)
    return {
        "question": answer.question,
        "task": answer.task,
        "data": answer.data,
        "source": answer.source,
        "first": difference.pair[0],
        "second": difference.pair[1],
        "unit": comparison.terms.unit,
        "better": comparison.direction,
        "mean": difference.mean,
        "standard_error": difference.error,
        "degrees_of_freedom": difference.freedom,
        "low_90": low,
        "high_90": high,
        "low_95": lower,
        "high_95": higher,
        "margin": comparison.margin,
        "seeds": difference.seeds,
        "cells": difference.cells,
        "pair": _pair_verdict(answer, difference),
        "verdict": comparison.verdict.value,
        "failed": len(comparison.failed),
        "missing": comparison.missing,
        "seeds_needed": comparison.plan.seeds,
    }


# The columns of the tables, by the question that a sweep answers.
MEAN_COLUMNS = {WARMUPS: (*METHODS, "none"), FIRST_STEPS: FIRST_STEP_RULES}
MEAN_HEADINGS = ("sweep", "model and data", "cells", "seeds", "metric")
RATE, BETA_2, *_ = FIELDS
DEFAULTS = {RATE: 1e-3, BETA_2: 0.999}  # of Adam


def overall_means(sweeps: Iterable[Sweep], answers: Iterable[Answer], page: pathlib.Path) -> str:
    """For each question, a row for every sweep that answers it: the mean over its cells, with the spread over seeds."""
    verdicts = {(answer.question, answer.source): answer.comparison.verdict.value for answer in answers}
    asked = [(sweep, sweep.folder.name) for sweep in sweeps]
    tables = []
    for question, methods in MEAN_COLUMNS.items():
        rows = [
            [_link(sweep, page), *_overall_row(sweep, methods), verdicts[question, name]]
            for sweep, name in asked
            if (question, name) in verdicts
        ]
        if rows:
            tables.append(markdown_table([[*MEAN_HEADINGS, *map(method_title, methods), "verdict"], *rows]))
    return "\n\n".join(tables)


def _overall_row(sweep: Sweep, methods: Sequence[str]) -> list[str]:
    table = sweep.table(methods)
    means = [_over_cells(table, method) for method in methods]
    spreads = [cell.deviation for cell in means if cell.deviation is not None]
    places = decimals(statistics.median(spreads) if spreads else None)
    texts = [cell_text(cell, cell.n, places) for cell in means]
    return [sweep_title(sweep), str(len(table.rows)), str(len(table.seeds)), table.objective, *texts]


def _over_cells(table: Table, method: str) -> Cell:
    """The mean over all cells, for each seed that has a value in all of them."""
    values = table.values(method)
    whole = values[:, ~np.isnan(values).any(axis=0)] if len(values) else np.zeros((1, 0))
    return Cell.of(whole.mean(axis=0).tolist())


def _link(sweep: Sweep, page: pathlib.Path) -> str:
    """The name of a sweep, as a link to its tables if they are kept."""
    summary = sweep.folder.path / SUMMARY
    if not summary.exists():
        return sweep.folder.name
    return f"[{sweep.folder.name}]({pathlib.Path(os.path.relpath(summary, page.parent)).as_posix()})"


def chosen_cells(sweeps: Iterable[Sweep]) -> str:
    """The best cell of every sweep that compares the paper's methods, and the one with Adam's default beta_2."""
    methods = MEAN_COLUMNS[WARMUPS]
    headings = ["experiment", "metric", "learning rate, beta_2", "seeds", *map(method_title, methods)]
    compared = [sweep for sweep in sweeps if WARMUPS in dict(method_groups(sweep.table()))]
    rows = [row for sweep in compared for row in _cell_rows(sweep, methods)]
    return markdown_table([headings, *rows]) if rows else ""


def _cell_rows(sweep: Sweep, methods: Sequence[str]) -> Iterable[list[str]]:
    table = sweep.table(methods)
    lines = dict(zip(table.rows, cell_lines(table)[1:], strict=True))
    for row, what in _chosen(table, sweep.table(METHODS)):
        cells = dict(zip(table.methods, lines[row][len(table.row_names) :], strict=True))
        values = {name: value_text(value) for name, value in table.named(row).items()}
        place = ", ".join(text if name in DEFAULTS else f"{name} {text}" for name, text in values.items())
        title = f"{sweep_title(sweep)}{f', {what}' if what else ''}"
        found = [cells.get(method, NOTHING) for method in methods]
        yield [title, table.objective, place, str(len(table.seeds)), *found]


def _chosen(table: Table, of_methods: Table) -> Iterable[tuple[Row, str]]:
    """The best row, then that of Adam's default beta_2 if it is another one; of several, that of the default rate."""
    best = of_methods.best()
    if best is None:
        return
    yield best[0], "best cell" if len(table.rows) > 1 else ""
    defaults = [row for row in table.rows if table.named(row).get(BETA_2) == DEFAULTS[BETA_2]]
    if len(defaults) > 1:
        defaults = [row for row in defaults if table.named(row).get(RATE) == DEFAULTS[RATE]]
    if defaults and defaults[0] != best[0]:
        yield defaults[0], "Adam's default beta_2"


def tuned_texts(sweeps: Iterable[Sweep], margins: Sequence[Margin] = ()) -> list[str]:
    """A sentence for every sweep, tuned warmup and untuned rule."""
    return [
        f"{place_text(sweep.task, sweep.subject, sweep.folder.name)}: {finding}"
        for sweep in sweeps
        for finding in tuned_findings(sweep.table(), duels(sweep.table(), sweep.runs), terms_of(sweep, margins))
    ]
