"""A table of the page: cells to read, and the numbers behind them for a CSV file."""

import contextlib
import csv
import dataclasses
import functools
import io
import math
import numbers
import re
import urllib.parse
from collections.abc import Iterable, Sequence
from typing import Any

from trainers.evidence.summary import cell_lines, summary_frame
from trainers.reports.page import Block
from trainers.results.formats import rounded, value_text
from trainers.results.methods import METHODS, label_of
from trainers.results.paper import PaperTable
from trainers.results.table import Table

# A spreadsheet treats a text that begins with one of these as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclasses.dataclass(frozen=True)
class PageTable(Block):
    """`rows` are shown on the page; `records` are downloaded as `name`.csv, and begin with the column names."""

    name: str
    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    records: Sequence[Sequence[Any]]
    labels: int = 1  # number of leading columns that name the row
    paper: bool = False  # the paper's numbers, not measured here
    folded: bool = False  # collapsed on a screen, open in print

    @functools.cached_property
    def numeric(self) -> list[bool]:
        """Whether each column holds numbers, which are aligned on the right."""
        columns = [[row[column] for row in self.rows if row[column]] for column in range(len(self.headings))]
        return [bool(texts) and all(is_number(text) for text in texts) for texts in columns]

    @property
    def download(self) -> str:
        """The CSV file as an address. It begins with the mark by which spreadsheets know UTF-8."""
        file = io.StringIO()
        csv.writer(file).writerows(self.records)
        return f"data:text/csv;charset=utf-8,%EF%BB%BF{urllib.parse.quote(file.getvalue(), safe=' ,;:/()+*=[]')}"


def plain_table(
    name: str,
    caption: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[Any]],
    labels: int = 1,
    folded: bool = False,
) -> PageTable:
    """A table whose CSV file has the same columns, at full precision."""
    rows = list(rows)
    shown = [[cell_text(value) for value in row] for row in rows]
    return PageTable(name, caption, headings, shown, safe_records([headings, *rows]), labels=labels, folded=folded)


def sweep_table(name: str, caption: str, table: Table) -> PageTable:
    """The table of a sweep; its CSV file has a row for each cell."""
    headings, *rows = cell_lines(labelled(table))
    frame = summary_frame(table)
    records = safe_records([list(frame), *frame.to_numpy().tolist()])
    return PageTable(name, caption, headings, rows, records, labels=len(table.row_names))


def paper_table(name: str, table: PaperTable) -> PageTable:
    """One of the paper's tables, in the same layout."""
    unit = f" {table.unit}" if table.unit else ""
    rows = [
        [value_text(rate), value_text(beta_2), *(f"{mean:.1f}{unit} ± {spread:.1f}" for mean, spread in cells)]
        for rate, beta_2, cells in table.rows
    ]
    records = [
        [rate, beta_2, method, *cell, table.seeds]
        for rate, beta_2, cells in table.rows
        for method, cell in zip(METHODS, cells, strict=True)
    ]
    names = ("learning_rate", "beta_2", "warmup", "mean", "std", "n")
    headings = [label_of(name) for name in (*names[:2], *METHODS)]
    return PageTable(name, table.title, headings, rows, [names, *records], labels=2, paper=True)


def seed_table(name: str, caption: str, table: Table) -> PageTable:
    """The value of every seed behind the cells of a sweep."""
    headings = [*map(label_of, table.row_names), "method", *(f"seed {seed}" for seed in table.seeds)]
    values = {method: table.values(method).tolist() for method in table.methods}
    rows = [
        [*map(value_text, row), label_of(method), *(None if math.isnan(each) else each for each in values[method][at])]
        for at, row in enumerate(table.rows)
        for method in table.methods
    ]
    return plain_table(name, caption, headings, rows, labels=len(table.row_names) + 1, folded=True)


def labelled(table: Table) -> Table:
    """The same table with readable names."""
    return dataclasses.replace(
        table,
        row_names=tuple(map(label_of, table.row_names)),
        methods=tuple(map(label_of, table.methods)),
        runs=table.runs.assign(method=table.runs.method.map(label_of)),
    )


def cell_text(value: Any) -> str:
    """The text of a cell, with numbers rounded for reading.

    >>> [cell_text(value) for value in (1033.3246, 0.01731244, 4, None, "done")]
    ['1,033', '0.01731', '4', '', 'done']
    """
    if value is None:
        return ""
    return rounded(value) if isinstance(value, int | float) else str(value)


def is_number(text: str) -> bool:
    """Whether a cell is read as a number, and so is aligned on the right.

    >>> [is_number(text) for text in ("1,033", "4.2 ± 0.3", "–", "+0.1 [-0.2, 0.4], p = 0.5", "1e-3", "done", "a4")]
    [True, True, True, True, True, False, False]
    """
    return re.match(r"[+-]?[\d.]+|–$", text) is not None


def safe_records(records: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Rows for a CSV file, in which no text can act as a formula and numbers that are not finite become None.

    >>> safe_records([["=1+1", "@a", "+a", "-a", "-0.5", "a", float("inf"), None, -1.5]])
    [["'=1+1", "'@a", "'+a", "'-a", '-0.5', 'a', None, None, -1.5]]
    """
    return [[_safe(value) for value in record] for record in records]


def _safe(value: Any) -> Any:
    if isinstance(value, numbers.Real):
        return value if math.isfinite(value) else None
    if value is None or not str(value).startswith(_FORMULA):
        return value
    with contextlib.suppress(ValueError):
        if math.isfinite(float(str(value))):
            return value
    return f"'{value}"
