"""Compares methods by how many of their runs diverged, since a run that diverged has no value to compare."""

import dataclasses
import itertools

from scipy import stats
from statsmodels.stats.multitest import multipletests

from trainers.evidence.differences import Pair
from trainers.sweeps.table import Table

LEVEL = 0.05


@dataclasses.dataclass(frozen=True)
class Rates:
    """How many runs of two methods diverged, of how many; Fisher's exact p value, after Holm's correction."""

    pair: Pair
    diverged: tuple[int, int]
    runs: tuple[int, int]
    p: float

    @property
    def differ(self) -> bool:
        return self.p < LEVEL


def divergence_rates(table: Table, methods: tuple[str, ...]) -> tuple[Rates, ...]:
    """The rates of each pair of methods; empty if no run has diverged."""
    counts = {method: _counts(table, method) for method in methods}
    if not any(diverged for diverged, _ in counts.values()):
        return ()
    pairs = [pair for pair in itertools.combinations(methods, 2) if all(counts[method][1] for method in pair)]
    if not pairs:
        return ()
    p_values = [
        float(
            stats.fisher_exact([[counts[method][0], counts[method][1] - counts[method][0]] for method in pair]).pvalue
        )
        for pair in pairs
    ]
    adjusted = multipletests(p_values, method="holm")[1]
    return tuple(
        Rates(
            pair,
            (counts[pair[0]][0], counts[pair[1]][0]),
            (counts[pair[0]][1], counts[pair[1]][1]),
            float(p),
        )
        for pair, p in zip(pairs, adjusted, strict=True)
    )


def same_runs_diverged(table: Table, methods: tuple[str, ...]) -> bool:
    """Whether runs of the same cells and seeds diverged for each method: then the others compare fairly."""
    diverged = {
        method: {(row, seed) for row in table.rows for seed in _diverged(table, row, method)} for method in methods
    }
    return all(each == diverged[methods[0]] for each in diverged.values())


def _counts(table: Table, method: str) -> tuple[int, int]:
    """The number of runs that diverged, and of runs that diverged or are done."""
    cells = [table.cell(row, method) for row in table.rows]
    diverged = sum(cell.diverged for cell in cells)
    return diverged, diverged + sum(cell.n for cell in cells)


def _diverged(table: Table, row: tuple[object, ...], method: str) -> list[object]:
    return [seed for seed, status in table.cell(row, method).ends.items() if status == "diverged"]
