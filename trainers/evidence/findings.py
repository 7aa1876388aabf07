"""A comparison of methods in plain words: every difference with its intervals, the verdict, and what would decide."""

from collections.abc import Iterable, Sequence
from typing import Any

from trainers.evidence.comparison import LEAST_SEEDS, MOST, Comparison, Verdict, cell_differences, judge
from trainers.evidence.differences import LEVELS, Difference, Pair
from trainers.results.formats import NOTHING, counted, decimals, listed, p_text, ranges, signed, significant, value_text
from trainers.results.table import Table

CRITERION = (
    "equivalent if the 90 % interval of every difference lies inside the margin, different if one lies wholly outside, "
    "otherwise inconclusive"
)
NOTE = (
    "Differences are taken within each cell and seed and averaged over the cells; intervals are t intervals over "
    f"seeds. Verdict: {CRITERION}."
)


def findings(comparison: Comparison) -> list[str]:
    """The verdict, a sentence for each pair of methods, and what would decide if the verdict is inconclusive."""
    sentences = [verdict_text(comparison), *(pair_sentence(comparison, each) for each in comparison.differences)]
    sentences += rate_sentences(comparison)
    return sentences + ([advice] if (advice := advice_text(comparison)) else [])


def verdict_text(comparison: Comparison) -> str:
    """The verdict on the methods, with its reasons and the margin."""
    names = listed(comparison.methods)
    if comparison.margin is None:
        why = "no run is done" if comparison.terms.margin else reasons(comparison)[0]
        return f"Verdict on {names or 'the methods'}: inconclusive, as {why}."
    reason = "; ".join(reasons(comparison))
    return (
        f"Verdict on {names}: {comparison.verdict.value}{f', as {reason}' if reason else ''} "
        f"(margin {margin_text(comparison)})."
    )


def reasons(comparison: Comparison) -> list[str]:
    """The reasons for the verdict other than the intervals."""
    if comparison.terms.margin is None:
        return ["no margin is fixed for this task"]
    found = []
    if comparison.failed:
        runs = [[method, *(f"{name} {value_text(value)}" for name, value in at)] for method, at in comparison.failed]
        more = f" and {len(runs) - 3} more" if len(runs) > 3 else ""
        found.append(f"{counted(len(runs), 'run')} failed ({'; '.join(map(', '.join, runs[:3]))}{more})")
    if comparison.missing:
        have = "has" if comparison.missing == 1 else "have"
        found.append(f"{counted(comparison.missing, 'planned run')} {have} no result")
    differing = [each for each in comparison.rates if each.differ]
    if found or differing:
        rates = [f"{' and '.join(each.pair)} diverge at different rates ({p_text(each.p)})" for each in differing]
        return found or rates
    if not comparison.alike:
        found.append("the methods diverged in different cells or seeds")
    if comparison.differences and not comparison.enough_seeds:
        found.append(f"at least {LEAST_SEEDS} seeds are needed")
    return found


def margin_text(comparison: Comparison) -> str:
    """The margin as it was fixed, and the absolute size of a relative one; empty if none was."""
    fixed = comparison.terms.margin
    if fixed is None or not fixed.relative or comparison.margin is None:
        return fixed.text if fixed else ""
    return f"{fixed.text}, ±{comparison.margin:.{significant(comparison.margin, 2)}f}"


def pair_sentence(comparison: Comparison, difference: Difference) -> str:
    name = pair_text(difference.pair)
    if not difference.seeds:
        return f"{name}: nothing to compare: both methods are done in no common cell and seed."
    text = f"{name}: {difference_text(difference, comparison.margin, comparison.terms.unit, wide=True)}"
    basis = f"{counted(difference.seeds, 'seed')}, {counted(difference.cells, 'cell')}"
    return f"{text} ({basis}){_position(comparison, difference)}."


def _position(comparison: Comparison, difference: Difference) -> str:
    """Where the 90 % interval lies."""
    if comparison.margin is None or difference.seeds < 2:
        return ""
    better = (difference.mean < 0) == (comparison.direction == "min")
    return {
        Verdict.EQUIVALENT: ": inside the margin",
        Verdict.DIFFERENT: f": outside the margin, {difference.pair[1]} is {'better' if better else 'worse'}",
        Verdict.INCONCLUSIVE: ": reaches across the margin",
    }[judge([difference], comparison.margin)]


def rate_sentences(comparison: Comparison) -> list[str]:
    """How many runs of each pair diverged, where any did."""
    return [
        f"Runs that diverged: {' and '.join(map('{} of {} of {}'.format, each.diverged, each.runs, each.pair))}, "
        f"{p_text(each.p)} (Fisher's exact test, Holm)."
        for each in comparison.rates
        if sum(each.diverged)
    ]


def advice_text(comparison: Comparison) -> str:
    """How many seeds would decide, and the command that adds them."""
    undecided = comparison.verdict is Verdict.INCONCLUSIVE and not comparison.incomplete and comparison.alike
    if not undecided or comparison.margin is None or not comparison.differences:
        return ""
    if not comparison.enough_seeds:
        return f"At least {LEAST_SEEDS} seeds are needed{_command(comparison, LEAST_SEEDS)}"
    plan = comparison.plan
    if plan.seeds is None:
        return f"More than {MOST:,} seeds would be needed to decide with a probability of 80 %."
    case = "if there is no difference" if plan.no_difference else "if the differences are those found here"
    return f"{plan.seeds} seeds would decide with a probability of 80 % {case}{_command(comparison, plan.seeds)}"


def _command(comparison: Comparison, seeds: int) -> str:
    command = comparison.terms.command
    return f": {command} --seeds={more_seeds(comparison.seeds, seeds)}" if command else "."


def more_seeds(seeds: Sequence[Any], needed: int) -> str:
    """The existing seeds and the next ones, in the form that --seeds takes.

    >>> more_seeds((1, 2, 3), 8), more_seeds((1, 2, 7), 4), more_seeds((), 3)
    ('1-8', '1-2,7-8', '1-3')
    """
    known = sorted(int(seed) for seed in seeds)
    following = max(known, default=0) + 1
    return ranges([*known, *range(following, following + needed - len(known))])


def pair_text(pair: Pair) -> str:
    return f"{pair[1]} - {pair[0]}"


def difference_text(difference: Difference, margin: float | None, unit: str = "", wide: bool = False) -> str:
    """The mean with its 90 % interval; with the 95 % interval too if `wide`.

    >>> difference_text(Difference(("a", "b"), 5, 1, 0.1, 0.05, 4), 0.2, "points")
    '+0.10 points [-0.01, +0.21]'
    """
    places = places_of(difference, margin)
    mean = signed(difference.mean, places) + (f" {unit}" if unit else "")
    if difference.seeds < 2:
        return mean
    intervals = [[signed(end, places) for end in difference.interval(level)] for level in LEVELS]
    if not wide:
        return f"{mean} [{', '.join(intervals[0])}]"
    texts = [
        f"{100 * level:.0f} % interval {low} to {high}" for level, (low, high) in zip(LEVELS, intervals, strict=True)
    ]
    return f"{mean}, {', '.join(texts)}"


def places_of(difference: Difference, margin: float | None) -> int:
    """The number of decimals: two digits of the margin; without one, by the width of the interval."""
    if margin:
        return significant(margin, 2)
    if difference.seeds < 2:
        return significant(difference.mean, 2)
    low, high = difference.interval()
    return decimals((high - low) / 2)


def cell_table(table: Table, comparisons: Iterable[Comparison]) -> list[list[str]]:
    """Headings, then for every cell the differences that were compared, with their 90 % intervals."""
    compared = {each.pair: comparison.margin for comparison in comparisons for each in comparison.differences}
    pairs = list(compared)
    lines = [[*table.row_names, *map(pair_text, pairs)]]
    for row in table.rows:
        cells = cell_differences(table, row, pairs)
        texts = [difference_text(each, compared[each.pair]) if each.seeds else NOTHING for each in cells]
        lines.append([*map(value_text, row), *texts])
    return lines
