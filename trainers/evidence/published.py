"""Judges the paper's tables by the rule of every other comparison, from the means and deviations that it prints.

Runs are not paired here, because the paper does not print single runs. Without pairs, what runs of one seed share does
not cancel, so that intervals are wider than they would have to be, and never narrower.
"""

import itertools
import math

from trainers.evidence.comparison import Comparison
from trainers.evidence.differences import Difference
from trainers.evidence.findings import Terms
from trainers.evidence.margins import margin_of
from trainers.evidence.objectives import OBJECTIVES
from trainers.reports.paper import TABLES, PaperTable
from trainers.sweeps.cells import METHODS

# The paper prints one decimal: a deviation of 0.1 may be up to 0.15, and 0.0 up to 0.05. These upper limits are used,
# so that no verdict comes from rounding. A mean is off by up to 0.05 either way; the variance of this uniform error is
# added.
HALF_DIGIT = 0.05
NAMES = {
    "image_classification": "ImageNet",
    "language_modeling": "WikiText-103",
    "machine_translation": "WMT16 English-German",
}
DATA = {
    "image_classification": "imagenet2012",
    "language_modeling": "wikitext103",
    "machine_translation": "wmt16_translate/de-en",
}


def published_terms(task: str) -> Terms:
    return Terms(margin_of(task, DATA[task]), OBJECTIVES[task].unit)


def published_comparison(task: str) -> Comparison:
    """The comparison of the paper's three methods, over the cells of its table for a task."""
    table, terms = TABLES[task], published_terms(task)
    means = [mean for _, _, cells in table.rows for mean, _ in cells]
    margin = terms.margin
    return Comparison(
        METHODS,
        tuple(published_difference(table, *pair) for pair in itertools.combinations(range(len(METHODS)), 2)),
        None if margin is None else margin.absolute(math.fsum(means) / len(means)),
        "" if margin is None else margin.text,
        seeds=tuple(range(1, table.seeds + 1)),
    )


def published_difference(table: PaperTable, first: int, second: int) -> Difference:
    """The difference, averaged over cells with their own variances; degrees of freedom by Welch and Satterthwaite."""
    cells = [(row[2][first], row[2][second]) for row in table.rows]
    mean = math.fsum(b[0] - a[0] for a, b in cells) / len(cells)
    parts = [(deviation + HALF_DIGIT) ** 2 / table.seeds for pair in cells for _, deviation in pair]
    sampling, rounding = math.fsum(parts), 2 * len(cells) * HALF_DIGIT**2 / 3
    freedom = (sampling + rounding) ** 2 / math.fsum(part**2 / (table.seeds - 1) for part in parts)
    error = math.sqrt(sampling + rounding) / len(cells)
    return Difference((METHODS[first], METHODS[second]), table.seeds, len(cells), mean, error, freedom)
