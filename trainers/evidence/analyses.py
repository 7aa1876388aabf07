"""What gradient analyses measured, beside the paper's numbers: for the terminal and for a page."""

from collections.abc import Sequence

from trainers.analysis.findings import EARLY, LATER, correlations, early_correlation, first_lasting, settling
from trainers.results.formats import NOTHING
from trainers.results.records import Series
from trainers.results.runs import Measured
from trainers.results.tasks import data_title

NEEDED = ("gradient_cv_median", "moment_correlation", "update_median")
QUANTITIES = (
    ("measured iterations", ""),
    ("median coefficient of variation of the gradients at iteration 1", "below 1"),
    ("it stays above 1 from iteration", "about 50"),
    (f"correlation of abs(m) and sqrt(v), mean to iteration {EARLY}", '"extremely correlated"'),
    (f"the same at iteration {LATER}", ""),
    ("the same at the end", ""),
    ("update magnitude settles after iteration", "about 100"),
    ("around, in units of alpha", "0.15"),
)


def analysis_table(analyses: Sequence[Measured]) -> list[list[str]]:
    """Headings, then a row for each quantity of the paper's figure 1 and a column for each analysis."""
    columns = [_numbers(each.series) for each in analyses]
    rows = [[what, paper, *found] for (what, paper), *found in zip(QUANTITIES, *columns, strict=True)]
    titles = [f"{data_title(each.folder.config)} ({each.folder.name})" for each in analyses]
    return [["quantity", "the paper, EMNIST", *titles], *rows]


def caption(analysis: Measured) -> str:
    """The words below the figure."""
    config, (measured, *_) = analysis.folder.config, _numbers(analysis.series)
    return f"One run on {data_title(config)}, seed {config.get('seed')}; {measured} iterations measured."


def _numbers(series: Series) -> list[str]:
    t, variation = series["t"], series["gradient_cv_median"]
    lasting = first_lasting(t, [value > 1 for value in variation])
    at = correlations(series, moments=(LATER,))
    settled, level = settling(t, series["update_median"])
    return [
        f"{len(t):,} of {t[-1]:,.0f}",
        f"{variation[0]:.2f}",
        NOTHING if lasting is None else f"{lasting:.0f}",
        f"{early_correlation(series):.2f}",
        f"{next(iter(at.values())):.2f}" if t[-1] >= LATER else NOTHING,
        f"{at[t[-1]]:.2f}",
        f"{settled:.0f}",
        f"{level:.2f}",
    ]
