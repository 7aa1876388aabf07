"""The claims about trained models: from sweeps, by the paired comparison of methods that every sweep ends with."""

from collections.abc import Iterable, Sequence

from trainers.figures.look import STYLES, VARIANTS
from trainers.reports.claims import Claim, Verdict, not_measured
from trainers.reports.paper import TABLES
from trainers.reports.reading import Sweep
from trainers.reports.tables import labelled
from trainers.reports.words import per_cent
from trainers.sweeps.cells import METHODS
from trainers.sweeps.comparison import Comparison, Overall, compare
from trainers.sweeps.findings import LEVEL, pair_text
from trainers.sweeps.formats import decimals, fixed, p_text, signed
from trainers.sweeps.table import Table

FIRST_STEPS = ("radam", *VARIANTS)
WARMUPS = tuple(name for name in STYLES if name != "none")
ROOM = 0.2
SAME = (
    "methods spread no farther than seeds; as many runs of each diverged; any difference that fits the seeds below "
    f"{per_cent(ROOM)} of the mean"
)
WORSE = f"without warmup worse than with each of them, p < {LEVEL} (Holm), or more runs diverged"
TITLES = {
    "image_classification": ("Image classification", "“indistinguishable” (ImageNet)"),
    "language_modeling": ("Language modelling", "“minimal impact” (WikiText-103)"),
    "machine_translation": ("Machine translation", "“no perceptible differences” (WMT16)"),
}


def sweep_claims(sweeps: Sequence[Sweep]) -> list[Claim]:
    """The paper's three tasks, whether swept or not, and any other; then the first steps, and no warmup at all."""
    claims = []
    for task in dict.fromkeys([*TABLES, *(sweep.task for sweep in sweeps)]):
        title, paper = TITLES.get(task, (task, "“substantively identical”"))
        text = f"{title}: untuned exponential, untuned linear and RAdam are indistinguishable."
        claims += _each(text, paper, [sweep for sweep in sweeps if sweep.task == task], METHODS, task in TABLES)
    first = "What RAdam does in its first four steps makes no difference."
    claims += _each(first, "“uniformly negligible”", sweeps, FIRST_STEPS, True)
    controls = [sweep for sweep in sweeps if "none" in sweep.table().methods and _of(sweep, WARMUPS)]
    return claims + ([control_claim(sweep) for sweep in controls] or [not_measured(*NEEDED, WORSE, NO_CONTROL)])


NEEDED = ("Adam needs warmup.", "“frequent need for learning rate warmup”")
NO_CONTROL = "no sweep with the method none beside a warmup"


def _each(text: str, paper: str, sweeps: Iterable[Sweep], methods: Sequence[str], needed: bool) -> list[Claim]:
    """A claim for each sweep that compares at least two of the methods."""
    fitting = [sweep for sweep in sweeps if len(_of(sweep, methods)) > 1]
    if not fitting and needed:
        return [not_measured(text, paper, SAME, "no sweep that compares them among the runs")]
    return [sameness_claim(text, paper, sweep, _of(sweep, methods)) for sweep in fitting]


def _of(sweep: Sweep, methods: Sequence[str]) -> list[str]:
    return [method for method in sweep.table().methods if method in methods]


def sameness_claim(text: str, paper: str, sweep: Sweep, methods: Sequence[str]) -> Claim:
    """Whether some methods of a sweep cannot be told apart."""
    table = labelled(sweep.table(methods))
    comparison = compare(table)
    measured = [f"{_scale(sweep)}: {_spread(comparison)}", *_pairs(comparison), *_ends(table), *_unfinished(sweep)]
    return Claim(text, paper, "; ".join(measured), SAME, _sameness(table, comparison))


def _sameness(table: Table, comparison: Comparison) -> Verdict:
    """By the spread, not by p values: runs of one seed share so much that a pair can differ by a hair, and surely."""
    spread = comparison.spread
    if spread is None or any(_is_untested(each) for each in comparison.overall):
        return Verdict.UNKNOWN
    if spread.methods > spread.seeds:
        return Verdict.NO if any(_significant(each) for each in comparison.overall) else Verdict.UNKNOWN
    unequal = len(set(_diverged(table).values())) > 1
    return Verdict.UNKNOWN if unequal or _room(comparison) > ROOM * _mean(table) else Verdict.YES


def _room(comparison: Comparison) -> float:
    """The largest difference that would fit the seeds."""
    tests = [each.difference.test for each in comparison.overall if each.difference.test]
    return max((max(abs(test.low), abs(test.high)) for test in tests), default=0.0)


def _mean(table: Table) -> float:
    means = [cell.mean for cell in table.cells.values() if cell.mean is not None]
    return sum(means) / len(means)


def _is_untested(overall: Overall) -> bool:
    """Too few seeds, or a difference that is the same for every seed: only equal runs need no test."""
    difference = overall.difference
    return difference.n < 2 or (difference.test is None and difference.mean != 0)


def control_claim(sweep: Sweep) -> Claim:
    """Whether a sweep shows that Adam is worse without warmup."""
    table = labelled(sweep.table(["none", *_of(sweep, WARMUPS)]))
    comparison, none = compare(table), STYLES["none"].label
    pairs = [each for each in comparison.overall if none in each.pair]
    measured = [f"{_scale(sweep)}: {_control_words(table, pairs, none)}", *_ends(table), *_unfinished(sweep)]
    return Claim(*NEEDED, "; ".join(measured), WORSE, _control(table, pairs, none))


def _control(table: Table, pairs: Sequence[Overall], none: str) -> Verdict:
    diverged = _diverged(table)
    if diverged[none] > max(count for method, count in diverged.items() if method != none):
        return Verdict.YES
    if all(_significant(each) and _is_worse(table, each, none) for each in pairs):
        return Verdict.YES
    better = any(_significant(each) and not _is_worse(table, each, none) for each in pairs)
    return Verdict.NO if better else Verdict.UNKNOWN


def _control_words(table: Table, pairs: Sequence[Overall], none: str) -> str:
    words = []
    for each in pairs:
        other = next(method for method in each.pair if method != none)
        if not each.difference.n:
            words.append(f"nothing to compare with {other}")
            continue
        size = fixed(abs(each.difference.mean), decimals(abs(each.difference.mean)))
        p = "too few seeds for a test" if each.adjusted_p is None else p_text(each.adjusted_p)
        how = "worse" if _is_worse(table, each, none) else "better"
        words.append(f"without warmup {size} {how} than {other} ({p})")
    shown = all(_significant(each) for each in pairs)
    return ", ".join(words) + ("" if shown else ": a need is not shown at this size")


def _is_worse(table: Table, overall: Overall, method: str) -> bool:
    """Whether the method's mean is the worse of a pair."""
    second_larger = overall.difference.mean > 0
    larger = overall.pair[1] if second_larger else overall.pair[0]
    return (larger == method) == (table.direction == "min")


def _significant(overall: Overall) -> bool:
    return overall.adjusted_p is not None and overall.adjusted_p < LEVEL


def _diverged(table: Table) -> dict[str, int]:
    return {method: sum(table.cell(row, method).diverged for row in table.rows) for method in table.methods}


def _ends(table: Table) -> list[str]:
    diverged = {method: count for method, count in _diverged(table).items() if count}
    return [f"diverged: {', '.join(f'{count} of {method}' for method, count in diverged.items())}"] if diverged else []


def _spread(comparison: Comparison) -> str:
    spread = comparison.spread
    if spread is None or not spread.seeds:
        return "the spreads of methods and seeds are not known"
    return (
        f"methods spread {spread.methods / spread.seeds:.2f} times as far as seeds "
        f"({spread.chance / spread.seeds:.2f} by chance)"
    )


def _pairs(comparison: Comparison) -> list[str]:
    """What differs; else the smallest p value, and the widest difference that these seeds leave room for."""
    differing = [each for each in comparison.overall if _significant(each)]
    if differing:
        return [f"{_difference(each)} ({p_text(each.adjusted_p or 0.0)})" for each in differing]
    tested = [each for each in comparison.overall if each.difference.test and each.adjusted_p is not None]
    if not tested:
        return ["too few seeds for a test" if any(e.difference.n < 2 for e in comparison.overall) else "no differences"]
    nearest = min(tested, key=lambda each: each.adjusted_p or 0.0)
    room = _room(comparison)
    return [
        f"smallest {p_text(nearest.adjusted_p or 0.0)} ({pair_text(nearest.pair)})",
        f"differences of more than {fixed(room, decimals(room))} would not fit these seeds",
    ]


def _difference(overall: Overall) -> str:
    mean = overall.difference.mean
    return f"{pair_text(overall.pair)}: {signed(mean, decimals(abs(mean)))}"


def _scale(sweep: Sweep) -> str:
    table, config = sweep.table(), sweep.folder.config
    what = " ".join(str(config[name]) for name in ("dataset", "model") if config.get(name))
    cells, seeds = len(table.rows), len(table.seeds)
    return f"{what or sweep.folder.name}, {cells} {'cell' if cells == 1 else 'cells'}, {seeds} seeds"


def _unfinished(sweep: Sweep) -> list[str]:
    planned = sweep.planned
    return [f"so far {len(sweep.results)} of {planned} runs"] if planned and len(sweep.results) < planned else []
