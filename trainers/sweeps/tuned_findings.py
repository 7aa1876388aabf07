"""The comparison of tuned and untuned warmups in plain words."""

from collections.abc import Sequence

from trainers.evidence.comparison import LEAST_SEEDS, Verdict, judge, margin_in
from trainers.evidence.findings import Terms, difference_text, pair_text
from trainers.sweeps.formats import counted, value_text
from trainers.sweeps.table import Table
from trainers.sweeps.tuned import Duel, Outcome, outcomes

TITLE = "Tuned against untuned"
NOTE = (
    "Tuned - untuned, with a 90 % t interval over seeds. The period is the best on one half of the seeds, judged on "
    "the other half, and the other way round."
)


def tuned_findings(table: Table, found: Sequence[Duel], terms: Terms) -> list[str]:
    """A sentence for every tuned warmup and untuned rule."""
    return [_sentence(table, outcome, terms) for outcome in outcomes(found)]


def tuned_table(table: Table, found: Sequence[Duel]) -> list[list[str]]:
    """Headings, then for every row the chosen periods, the difference, and the number of runs."""
    lines = [[*table.row_names, "tuned", "best periods", "untuned", "tuned - untuned", "runs, tuned and untuned"]]
    for duel in found:
        periods = " and ".join(f"{period:g}" for period in duel.periods)
        runs = f"{duel.tuned_runs} and {duel.untuned_runs}"
        text = difference_text(duel.difference, None) if duel.difference.seeds else "nothing to compare"
        lines.append([*map(value_text, duel.row), duel.warmup, periods, duel.rule, text, runs])
    return lines


def _sentence(table: Table, outcome: Outcome, terms: Terms) -> str:
    difference = outcome.difference
    name = pair_text(difference.pair)
    cost = f"The tuning took {counted(outcome.tuned_runs, 'run')}, {outcome.rule} {outcome.untuned_runs}."
    if not difference.seeds:
        return f"{name}: nothing to compare, there is no row and seed in which both are done. {cost}"
    margin = margin_in(table, terms.margin)
    basis = f"{counted(difference.seeds, 'seed')}, {counted(difference.cells, 'row')}"
    text = difference_text(difference, margin, terms.unit, wide=True)
    return f"{name}: {text} ({basis}): {_meaning(table, outcome, margin)}. {cost}"


def _meaning(table: Table, outcome: Outcome, margin: float | None) -> str:
    """The verdict by the rule of every other comparison; without a margin, which of the two is better at all."""
    difference = outcome.difference
    if difference.seeds < LEAST_SEEDS:
        return "inconclusive"
    verdict = judge([difference], margin or 0.0)
    if verdict is Verdict.DIFFERENT:
        better = (difference.mean < 0) == (table.direction == "min")
        return f"{'the tuned' if better else 'the untuned'} one is better{' by more than the margin' if margin else ''}"
    if margin is None:
        return "no gain from tuning shown, nor a loss"
    return str(verdict.value)
