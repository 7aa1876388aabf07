"""A comparison of warmups in plain words."""

from trainers.sweeps.comparison import Comparison, Overall, Pair
from trainers.sweeps.formats import NOTHING, counted, decimals, fixed, p_text, signed, significant, value_text
from trainers.sweeps.statistics import Difference, TTest
from trainers.sweeps.table import Table

LEVEL = 0.05
NOTE = (
    "Differences are paired by seed and have 95 % t intervals. Runs that diverged or failed are in no mean and in no "
    "difference."
)


def findings(table: Table, comparison: Comparison) -> list[str]:
    """The spread of methods beside that of seeds, then a sentence for every two methods."""
    return [_spreads(comparison), *(_verdict(table, comparison, each) for each in comparison.overall)]


def row_table(table: Table, comparison: Comparison) -> list[list[str]]:
    """The same row by row: headings, then for every row both spreads and the difference of every two methods."""
    pairs = [each.pair for each in comparison.overall]
    lines = [[*table.row_names, "between methods", "between seeds", *map(pair_text, pairs)]]
    for row in table.rows:
        spread = comparison.row_spreads[row]
        places = decimals(spread.seeds if spread else None)
        spreads = [fixed(spread.methods, places), fixed(spread.seeds, places)] if spread else [NOTHING, NOTHING]
        differences = [_row_difference(comparison.row_differences[row, pair], len(table.seeds)) for pair in pairs]
        lines.append([*map(value_text, row), *spreads, *differences])
    return lines


def row_tests(comparison: Comparison) -> str:
    """How many of the tests in single rows fall below 0.05, and how many would by chance."""
    p_values = [each.test.p for each in comparison.row_differences.values() if each.test]
    if not p_values:
        return "No test in any row: it takes two seeds, and differences that are not all the same."
    below = sum(p < LEVEL for p in p_values)
    return (
        f"Below p = {LEVEL}: {below} of the {len(p_values)} tests in single rows, which are not corrected for their "
        f"number; chance alone gives about {LEVEL * len(p_values):.1f}."
    )


def pair_text(pair: Pair) -> str:
    return f"{pair[1]} - {pair[0]}"


def _spreads(comparison: Comparison) -> str:
    spread = comparison.spread
    if spread is None:
        return "Spread of methods and seeds: not known, it takes two methods in a row, and two seeds."
    places = decimals(spread.seeds)
    rows = sum(each is not None for each in comparison.row_spreads.values())
    text = (
        f"Standard deviation between methods {fixed(spread.methods, places)}, between seeds "
        f"{fixed(spread.seeds, places)} (over {counted(rows, 'row')})"
    )
    if not spread.seeds:
        return f"{text}."
    return (
        f"{text}: a ratio of {spread.methods / spread.seeds:.2f}, where equal methods in independent runs give about "
        f"{spread.chance / spread.seeds:.2f}."
    )


def _verdict(table: Table, comparison: Comparison, overall: Overall) -> str:
    name, difference = pair_text(overall.pair), overall.difference
    basis = f"{counted(difference.n, 'seed')}, {overall.rows} of {counted(len(table.rows), 'row')}"
    if difference.n == 0:
        return f"{name}: nothing to compare, there is no row in which both have every seed."
    if difference.n == 1:
        return f"{name}: {_difference(difference)} ({basis}): too few seeds for a test."
    if difference.test is None or overall.adjusted_p is None:
        return f"{name}: {_difference(difference)} ({basis})."
    tests = sum(each.adjusted_p is not None for each in comparison.overall)
    correction = f", {p_text(overall.adjusted_p)} by Holm for {tests} pairs" if tests > 1 else ""
    meaning = _meaning(overall, difference.test, overall.adjusted_p, table.direction)
    return f"{name}: {_difference(difference)}{correction} ({basis}): {meaning}"


def _meaning(overall: Overall, test: TTest, adjusted_p: float, direction: str) -> str:
    places = decimals(test.reach)
    nearer, farther = (fixed(end, places) for end in sorted((abs(test.low), abs(test.high))))
    if adjusted_p < LEVEL:
        better = (overall.difference.mean < 0) == (direction == "min")
        return f"{overall.pair[1]} is {'better' if better else 'worse'}, by {nearer} to {farther}."
    room = f"one of up to {farther} would fit these seeds, a larger one not."
    if test.p < LEVEL:
        return f"no difference shown, as one p value of several may be that small by chance; {room}"
    return f"no difference shown; {room}"


def _row_difference(difference: Difference, seeds: int) -> str:
    if difference.n == 0:
        return NOTHING
    fewer = f" ({counted(difference.n, 'seed')})" if difference.n < seeds else ""
    return _difference(difference) + fewer


def _difference(difference: Difference) -> str:
    """The mean with its interval and p value; without a test, why there is none."""
    test = difference.test
    if test is not None:
        mean, low, high = (signed(value, decimals(test.reach)) for value in (difference.mean, test.low, test.high))
        return f"{mean} [{low}, {high}], {p_text(test.p)}"
    mean = signed(difference.mean, significant(difference.mean, 2))
    if difference.n == 1:
        return mean
    return f"{mean} for every seed alike, no p value" if difference.mean else "equal for every seed, no p value"
