"""The table of a sweep and what it says: as CSV, as markdown, and for the terminal."""

import statistics
from collections.abc import Sequence

from trainers.sweeps.comparison import compare
from trainers.sweeps.findings import NOTE, findings, row_table, row_tests
from trainers.sweeps.formats import NOTHING, decimals, fixed, significant, value_text
from trainers.sweeps.results import csv_text
from trainers.sweeps.table import METHOD, Cell, Table


def summary_csv(table: Table) -> str:
    """A row for each cell: mean and standard deviation over seeds, and the number of runs of each kind."""
    rows: list[list[object]] = [[*table.row_names, METHOD, "mean", "std", "n", "diverged", "failed", "missing"]]
    for row in table.rows:
        for method in table.methods:
            cell = table.cell(row, method)
            missing = len(table.seeds) - cell.runs
            rows.append([*row, method, cell.mean, cell.deviation, cell.n, cell.diverged, cell.failed, missing])
    return csv_text(rows)


def summary_markdown(table: Table, title: str = "Sweep") -> str:
    """The page of a sweep: the table, the best cell, and the methods compared, over all rows and row by row."""
    parts = [f"# {title}: {_objective(table)}", _markdown(cell_lines(table)), *notes(table)]
    if len(table.methods) > 1:
        comparison = compare(table)
        spreads, *verdicts = findings(table, comparison)
        parts += ["## The methods compared", spreads, "\n".join(f"- {verdict}" for verdict in verdicts), NOTE]
        parts += [_markdown(row_table(table, comparison)), row_tests(comparison)]
    return "\n\n".join(parts) + "\n"


def summary_text(table: Table, title: str = "Sweep") -> str:
    """The same for a terminal, without the comparison row by row."""
    parts = [f"{title}: {_objective(table)}", _aligned(cell_lines(table)), "\n".join(notes(table))]
    if len(table.methods) > 1:
        parts.append("\n".join(findings(table, compare(table))))
    return "\n\n".join(parts) + "\n"


def _objective(table: Table) -> str:
    return f"{table.objective}, {'lower' if table.direction == 'min' else 'higher'} is better"


def cell_lines(table: Table) -> list[list[str]]:
    """Headings, then the rows of the paper's table."""
    places, seeds = _places(table), len(table.seeds)
    lines = [[*table.row_names, *table.methods]]
    for row in table.rows:
        cells = [cell_text(table.cell(row, method), seeds, places) for method in table.methods]
        lines.append([*map(value_text, row), *cells])
    return lines


def cell_text(cell: Cell, seeds: int, places: int) -> str:
    """Mean and standard deviation; the seeds behind them wherever these are not all.

    >>> cell_text(Cell({1: 19.4, 2: 19.6}, diverged=1), seeds=3, places=1)
    '19.5 ± 0.1 (2 of 3; 1 diverged)'
    """
    ends = {name: count for name, count in (("diverged", cell.diverged), ("failed", cell.failed)) if count}
    if cell.mean is None:
        if seeds == 1:
            return next(iter(ends), NOTHING)
        return ", ".join(f"{name} ({count} of {seeds})" for name, count in ends.items()) or NOTHING
    text = fixed(cell.mean, places)
    if cell.deviation is not None:
        text = f"{text} ± {fixed(cell.deviation, places)}"
    if cell.n == seeds:
        return text
    others = ", ".join(f"{count} {name}" for name, count in ends.items())
    return f"{text} ({cell.n} of {seeds}; {others})" if others else f"{text} ({cell.n} of {seeds})"


def _places(table: Table) -> int:
    """One number of decimals for all cells: that of the typical spread, or four digits where there is none."""
    deviations = [cell.deviation for cell in table.cells.values() if cell.deviation]
    if deviations:
        return decimals(statistics.median(deviations))
    means = [abs(cell.mean) for cell in table.cells.values() if cell.mean]
    return significant(statistics.median(means), 4) if means else 1


def notes(table: Table) -> list[str]:
    """What the numbers are and which runs they lack, then the best cell."""
    seeds = len(table.seeds)
    meaning = f"Mean ± standard deviation over {seeds} seeds." if seeds > 1 else "One seed."
    return [" ".join([meaning, *_left_out(table)]), _best(table)]


def _left_out(table: Table) -> list[str]:
    """A sentence for every method that has not all of its runs."""
    sentences = []
    for method in table.methods:
        cells = [table.cell(row, method) for row in table.rows]
        planned = len(cells) * len(table.seeds)
        counts = {
            "diverged": sum(cell.diverged for cell in cells),
            "failed": sum(cell.failed for cell in cells),
            "missing": planned - sum(cell.runs for cell in cells),
        }
        left_out = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        if left_out:
            sentences.append(f"{method}: {left_out} of {planned} runs.")
    return sentences


def _best(table: Table) -> str:
    at = table.best()
    if at is None:
        return "Best: none, no run is done."
    row, method = at
    values = ", ".join(f"{name} {value_text(value)}" for name, value in zip(table.row_names, row, strict=True))
    return f"Best: {cell_text(table.cell(row, method), len(table.seeds), _places(table))} with {method}, {values}."


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    headings, *rows = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([headings, f"|{' --- |' * len(lines[0])}", *rows])


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
