"""Whether a warmup is long enough, compared with longer periods at the same rate and beta_2."""

import dataclasses
from collections.abc import Mapping

from tfwarmup.analysis.warmup_report import TOO_SHORT
from tfwarmup.factors import untuned_linear_period
from trainers.evidence.differences import LEVELS, Difference
from trainers.evidence.summary import cell_text
from trainers.evidence.tuned import make_duel
from trainers.results.formats import NOTHING, signed, value_text
from trainers.results.methods import PERIOD
from trainers.results.results_csv import LABEL
from trainers.results.table import METHOD
from trainers.study.failures import Place, Trained

RULE, TUNED, NO_WARMUP = "untuned_linear", "linear", "none"
LONG_ENOUGH, OPEN = "long enough", "open"
HEADINGS = (
    "rate",
    "beta_2",
    "period of the rule",
    "rule",
    "failed",
    "best longer periods",
    "gain",
    "failed",
    "verdict",
)


@dataclasses.dataclass(frozen=True)
class Judgement:
    """A warmup compared with longer periods at one place."""

    periods: tuple[float, ...]  # the longer periods that were chosen on each half of the seeds; empty if there are none
    gain: Difference | None  # how much better the chosen periods are than the warmup, in the unit of the objective
    failed: int  # number of failed runs of the warmup
    least_failed: int | None  # number of failed runs of the longer period with the fewest; None if there is none
    margin: float  # the smallest gain that matters

    @property
    def gains(self) -> bool:
        """Whether a longer period is better by more than the margin, or fails less, in these runs."""
        better = self.gain is not None and self.gain.seeds > 0 and self.gain.mean > self.margin
        return better or (self.least_failed is not None and self.failed > self.least_failed)

    @property
    def verdict(self) -> str:
        """The same with its uncertainty."""
        if self.least_failed is None:
            return OPEN
        low, high = self.gain.interval(LEVELS[0]) if self.gain and self.gain.seeds > 1 else (None, None)
        if (low is not None and low > self.margin) or self.failed > self.least_failed == 0:
            return TOO_SHORT
        if high is not None and high < self.margin and self.failed <= self.least_failed:
            return LONG_ENOUGH
        return OPEN


def can_judge(trained: Trained) -> bool:
    return RULE in trained.methods and len(_tuned(trained)) > 1 and trained.sweep.terms.margin is not None


def judge(trained: Trained, place: Place, method: str, period: float) -> Judgement:
    """Compares a method, which lasts for `period` updates, with longer linear warmups."""
    # 2 / (1 - 0.95) is 39.99999999999996: a period of 40 is not longer.
    longer = {other: label for other, label in _tuned(trained).items() if other > period * (1 + 1e-9)}
    duel = make_duel(trained.sweep.table(), place, (TUNED, method), longer) if longer else None
    margin = trained.sweep.terms.margin
    assert margin is not None
    mean, sign = trained.cell(method, place).mean, -1 if trained.sweep.objective.direction == "min" else 1
    return Judgement(
        duel.periods if duel else (),
        # With its sign changed so that a positive difference is an advantage.
        dataclasses.replace(duel.difference, mean=sign * duel.difference.mean) if duel else None,
        trained.failed(method, place) or 0,
        min((trained.failed(label, place) or 0 for label in longer.values()), default=None),
        margin.absolute(mean or 0.0),
    )


def periods_of(trained: Trained) -> Mapping[float, str]:
    """The periods of no warmup (0) and of the tuned warmup, in order, with their names in the table."""
    return {**({0.0: NO_WARMUP} if NO_WARMUP in trained.methods else {}), **_tuned(trained)}


def _tuned(trained: Trained) -> Mapping[float, str]:
    runs = trained.sweep.runs
    tuned = runs[(runs[METHOD] == TUNED) & runs[PERIOD].notna()] if PERIOD in runs else runs[:0]  # not with a share
    return dict(sorted(zip(tuned.get(PERIOD, ()), tuned[LABEL], strict=True)))


def period_table(trained: Trained) -> list[list[str]]:
    """Headings, then a row for every rate and beta_2, where the rule is judged."""
    return [list(HEADINGS), *(_row(trained, place, untuned_linear_period(place[1])) for place in trained.places)]


def _row(trained: Trained, place: Place, period: float) -> list[str]:
    judged, cell = judge(trained, place, RULE, period), trained.cell(RULE, place)
    return [
        *map(value_text, place),
        f"{period:.0f}",
        cell_text(cell, cell.n, 2),  # the next column has the runs that failed
        str(judged.failed),
        " and ".join(dict.fromkeys(f"{period:g}" for period in judged.periods)) or NOTHING,
        _gain_text(judged.gain),
        NOTHING if judged.least_failed is None else str(judged.least_failed),
        judged.verdict,
    ]


def _gain_text(gain: Difference | None) -> str:
    if gain is None or not gain.seeds:
        return NOTHING
    mean, low, high = (signed(value, 2) for value in (gain.mean, *gain.interval(LEVELS[0])))
    return f"{mean} [{low}, {high}]" if gain.seeds > 1 else mean
