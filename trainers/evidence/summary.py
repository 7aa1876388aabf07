"""The table of a sweep and its findings: as CSV, as Markdown, and for the terminal."""

import dataclasses
import functools
import logging
import statistics
import time
from typing import Any

from pandas import DataFrame

from trainers.engine.folder import RunFolder
from trainers.evidence.comparison import Comparison, compare
from trainers.evidence.findings import NOTE, cell_table, findings
from trainers.evidence.questions import method_groups
from trainers.evidence.tuned import TUNED_NOTE, TUNED_TITLE, Duel, duels, duels_csv, tuned_findings, tuned_table
from trainers.results.formats import NOTHING, aligned, counted, decimals, fixed, markdown_table, significant, value_text
from trainers.results.layout import CONFIG, RESULTS, SUMMARY, SUMMARY_TABLE, TUNED
from trainers.results.results_csv import ENVIRONMENT, LABEL, csv_text, frame_of
from trainers.results.table import METHOD, Cell, Table, tabulate
from trainers.results.tasks import Objective, Terms, data_name, margin_of, sweep_command
from trainers.results.trials import Result
from trainers.sweeps.space import base_values, table_grid

UNKNOWN = "not recorded"


def mixtures(runs: DataFrame) -> list[str]:
    """A sentence for everything that differs between the runs that are done.

    >>> environments = [{"threads": threads} for threads in (1, 2, 2)]
    >>> runs = [Result("a", {"warmup": "radam"}, "done", 1.0, {}, 1.0, "", each) for each in environments]
    >>> mixtures(frame_of(runs, "val_error"))
    ['Runs differ in threads: 1 (1 run), 2 (2 runs).']
    """
    sentences = []
    for name, column in zip(ENVIRONMENT, runs.columns[-len(ENVIRONMENT) :], strict=True):
        made_with = runs[column][runs.status == "done"].map(lambda value: UNKNOWN if value is None else str(value))
        counts = made_with.value_counts().sort_index()
        if len(counts) > 1:
            kinds = ", ".join(f"{value} ({counted(n, 'run')})" for value, n in counts.items())
            sentences.append(f"Runs differ in {name}: {kinds}.")
    return sentences


# The axes of the rows of the paper's tables, by their names in a sweep and on a page.
PAPERS = ("learning_rate", "beta_2", "learning rate", "β₂")
DEFAULT_TERMS = Terms()
ENDS = ("diverged", "failed", "missing")  # of runs that are not done
COLUMNS = ("mean", "std", "n", *ENDS, "objective")  # the numbers of a cell, and what they are of


def summary_csv(table: Table) -> str:
    return csv_text(summary_frame(table))


def summary_frame(table: Table) -> DataFrame:
    """A row for each cell: mean and standard deviation over seeds, and the number of runs of each kind.

    The numbers are those of the other tables, in the unit of the objective, with all digits.
    """
    rows = [[*row, method, *cell, table.objective] for (row, method), cell in table.cells.items()]
    return DataFrame(rows, columns=[*table.row_names, METHOD, *COLUMNS], dtype=object)


@dataclasses.dataclass(frozen=True)
class Summary:
    """What is told of a sweep: its table, its best cell, and its methods compared; every verdict is computed once."""

    table: Table  # the table of the sweep
    # The runs behind the table, for how they differ in versions, machines and so on, and for tuned warmups
    runs: DataFrame
    title: str = "Sweep"  # the title of the page
    terms: Terms = DEFAULT_TERMS  # what the methods are judged by

    @functools.cached_property
    def compared(self) -> list[Comparison]:
        return [compare(self.table, self.terms, methods) for _, methods in method_groups(self.table)]

    @functools.cached_property
    def duels(self) -> list[Duel]:
        return duels(self.table, self.runs)

    def markdown(self) -> str:
        """The page of a sweep: the table, the best cell, and the methods compared, over all cells and in each."""
        table = self.table
        parts = [f"# {self._heading()}", markdown_table(cell_lines(table)), *notes(table), *mixtures(self.runs)]
        if self.compared:
            parts.append("## The methods compared")
            for comparison in self.compared:
                verdict, *others = findings(comparison)
                parts += [verdict, "\n".join(f"- {sentence}" for sentence in others)]
            cells = markdown_table(cell_table(table, self.compared))
            parts += [NOTE, "In each cell, with 90 % intervals:", cells]
        if self.duels:
            said = "\n".join(f"- {sentence}" for sentence in tuned_findings(table, self.duels, self.terms))
            parts += [f"## {TUNED_TITLE}", said, TUNED_NOTE, markdown_table(tuned_table(table, self.duels))]
        return "\n\n".join(part for part in parts if part) + "\n"

    def text(self) -> str:
        """The same for a terminal, without the comparison in each cell."""
        said = [*notes(self.table), *mixtures(self.runs)]
        parts = [self._heading(), aligned(cell_lines(self.table)), "\n".join(said)]
        parts += ["\n".join(findings(comparison)) for comparison in self.compared]
        if self.duels:
            parts.append("\n".join([f"{TUNED_TITLE}:", *tuned_findings(self.table, self.duels, self.terms)]))
        return "\n\n".join(parts) + "\n"

    def _heading(self) -> str:
        better = "lower" if self.table.direction == "min" else "higher"
        return f"{self.title}: {self.table.objective}, {better} is better"


def cell_lines(table: Table) -> list[list[str]]:
    """Headings, then the rows of the paper's table."""
    places, seeds = _places(table), len(table.seeds)
    lines = [[*table.row_names, *table.methods]]
    for row in table.rows:
        cells = [cell_text(table.cell(row, method), seeds, places) for method in table.methods]
        lines.append([*map(value_text, row), *cells])
    return lines


def cell_text(cell: Cell, seeds: int, places: int) -> str:
    """Mean and standard deviation; with the number of seeds if some are missing.

    >>> cell_text(Cell.of([19.4, 19.6], ["diverged"]), seeds=3, places=1)
    '19.5 ± 0.1 (2 of 3; 1 diverged)'
    """
    ends = {name: count for name, count in (("diverged", cell.diverged), ("failed", cell.failed)) if count}
    if cell.mean is None:
        said = ends if seeds == 1 else (f"{name} ({count} of {seeds})" for name, count in ends.items())
        return ", ".join(said) or NOTHING
    text = " ± ".join(fixed(number, places) for number in (cell.mean, cell.deviation) if number is not None)
    fewer = [f"{cell.n} of {seeds}", ", ".join(f"{count} {name}" for name, count in ends.items())]
    return text if cell.n == seeds else f"{text} ({'; '.join(filter(None, fewer))})"


def _places(table: Table) -> int:
    """The number of decimals of all cells: that of the typical spread, or four digits if there is none."""
    deviations = [cell.deviation for cell in table.cells.values() if cell.deviation]
    if deviations:
        return decimals(statistics.median(deviations))
    means = [abs(cell.mean) for cell in table.cells.values() if cell.mean]
    return significant(statistics.median(means), 4) if means else 1


def notes(table: Table) -> list[str]:
    """What the numbers are and which runs are missing, then the best cell."""
    seeds = len(table.seeds)
    meaning = f"Mean ± standard deviation over {seeds} seeds." if seeds > 1 else "One seed."
    return [" ".join([meaning, *_left_out(table)]), f"Best: {_best(table)}", *_best_of_axes(table)]


def _left_out(table: Table) -> list[str]:
    """A sentence for every method with runs that are not done."""
    sentences = []
    for method in table.methods:
        ends = table.runs.status[table.runs.method == method].value_counts()
        if left_out := ", ".join(f"{ends[name]} {name}" for name in ENDS if name in ends):
            sentences.append(f"{method}: {ends.sum()} runs planned, {left_out}.")
    return sentences


def _best_of_axes(table: Table) -> list[str]:
    """For every axis that the paper does not have, the best cell at each of its values."""
    lines = []
    for index, name in enumerate(table.row_names):
        values = dict.fromkeys(row[index] for row in table.rows)
        if name not in PAPERS and len(values) > 1:
            lines += [f"Best at {name} {value_text(value)}: {_best(table, **{name: value})}" for value in values]
    return lines


def _best(table: Table, **fixed: Any) -> str:
    at = table.best(**fixed)
    if at is None:
        return "none, no run is done."
    row, method = at
    values = "".join(f", {name} {value_text(value)}" for name, value in table.named(row).items() if name not in fixed)
    cell = table.cell(row, method)
    fewer = table.better_with_fewer_seeds(cell, **fixed)
    best = f"{cell_text(cell, len(table.seeds), _places(table))} with {method}{values}"
    if not fewer:
        return f"{best}."
    who = "1 cell has a better mean" if fewer == 1 else f"{fewer} cells have better means"
    return f"{best}, of the cells with the most seeds, {cell.n}; {who} over fewer seeds."


SHARE = 20  # writing the tables takes at most about one part in this many of the time


class Tables:
    """results.csv, summary.csv, summary.md and, where a warmup is tuned, tuned.csv of the results at that time."""

    def __init__(self, folder: RunFolder, settings: Any, objective: Objective, results: dict[str, Result]) -> None:
        self._folder, self._base, self._objective = folder, base_values(settings), objective
        self.title = f"Sweep of {settings.task}"
        margin = margin_of(settings.task, data_name(settings.plain()))
        self._terms = Terms(margin, objective.unit, sweep_command(settings.task, str(folder.path / CONFIG)))
        self._grid = table_grid(settings) if settings.search == "grid" else None
        self._results = results
        self._next = 0.0

    def write_soon(self) -> None:
        """Writes the files unless they were written a moment ago. A disk that is full for now does not end a sweep."""
        began = time.monotonic()
        if began < self._next:
            return
        try:
            self.write()
        except OSError as error:
            logging.warning("the tables cannot be written: %s", error)
        now = time.monotonic()
        self._next = now + SHARE * (now - began)

    def write(self) -> str:
        """Writes the files and returns the summary for the terminal."""
        results = [result for _, result in sorted(self._results.items())]
        if self._base:  # the values of axes that were added after a run
            results = [dataclasses.replace(each, values={**self._base, **each.values}) for each in results]
        runs = frame_of(results, self._objective.metric, self._grid)
        summary = Summary(tabulate(runs, self._objective, self._grid), runs, self.title, self._terms)
        self._folder.write(RESULTS, csv_text(runs.drop(columns=LABEL)))
        self._folder.write(SUMMARY_TABLE, summary_csv(summary.table))
        if summary.duels:
            self._folder.write(TUNED, duels_csv(summary.table, summary.duels))
        self._folder.write(SUMMARY, summary.markdown())
        return summary.text()
