"""The claims about trained models, decided by the equivalence test at the end of every sweep."""

from collections.abc import Iterable, Sequence

from trainers.evidence.comparison import Comparison, Verdict, compare
from trainers.evidence.differences import Difference
from trainers.evidence.findings import CRITERION, advice_text, difference_text, margin_text, pair_text, reasons
from trainers.evidence.findings import rate_sentence as rate_text
from trainers.evidence.questions import ANY_WARMUP, FIRST_STEP_RULES, ran
from trainers.reports.claims import Claim, Holds, not_measured
from trainers.reports.page_tables import labelled
from trainers.results.formats import counted, listed
from trainers.results.methods import METHODS, STYLES, VARIANTS
from trainers.results.paper import TABLES
from trainers.results.runs import Sweep
from trainers.results.table import Table
from trainers.results.tasks import Terms

WORSE = (
    "yes if Adam without warmup is worse by more than the margin (90 % interval wholly outside) or diverges more often "
    "(Fisher's exact test, p < 0.05); no if it is better or inside the margin"
)
TITLES = {
    "image_classification": ("Image classification", "“indistinguishable” (ImageNet)"),
    "language_modeling": ("Language modelling", "“minimal impact” (WikiText-103)"),
    "machine_translation": ("Machine translation", "“no perceptible differences” (WMT16)"),
}
NEEDED = ("Adam needs warmup.", "“frequent need for learning rate warmup”")
NO_CONTROL = "no sweep compares a warmup with no warmup"
RULES = {style.label: style.label.removeprefix("RAdam (").removesuffix(" first)") for style in VARIANTS.values()}
HOLDS = {
    Verdict.EQUIVALENT: Holds.YES,
    Verdict.DIFFERENT: Holds.NO,
    Verdict.INCONCLUSIVE: Holds.UNKNOWN,
}


def sweep_claims(sweeps: Sequence[Sweep]) -> list[Claim]:
    """Claims about the paper's three tasks, swept or not, and any other; then about first steps and no warmup."""
    claims = []
    for task in dict.fromkeys([*TABLES, *(sweep.task for sweep in sweeps)]):
        title, paper = TITLES.get(task, (task, "“substantively identical”"))
        fitting = [sweep for sweep in sweeps if sweep.task == task]
        claims += _each(f"{title}: {{}} do equally well.", paper, fitting, METHODS, task in TABLES)
    first = "What RAdam does in its first four steps makes no difference ({})."
    claims += _each(first, "“uniformly negligible”", sweeps, FIRST_STEP_RULES, True)
    return claims + (
        [control_claim(sweep) for sweep in _controls(sweeps)] or [not_measured(*NEEDED, WORSE, NO_CONTROL)]
    )


def _each(text: str, paper: str, sweeps: Iterable[Sweep], methods: Sequence[str], needed: bool) -> list[Claim]:
    """A claim for each sweep that compares at least two of the methods; it names those that ran."""
    fitting = [sweep for sweep in sweeps if len(_methods_run(sweep, methods)) > 1]
    if not fitting and needed:
        named = _named(text, [{**STYLES, **VARIANTS}[method].label for method in methods])
        return [not_measured(named, paper, CRITERION, "no sweep compares them")]
    return [sameness_claim(text, paper, sweep, _methods_run(sweep, methods)) for sweep in fitting]


def _controls(sweeps: Iterable[Sweep]) -> list[Sweep]:
    return [sweep for sweep in sweeps if _methods_run(sweep, ["none"]) and _methods_run(sweep, ANY_WARMUP)]


def _methods_run(sweep: Sweep, methods: Sequence[str]) -> list[str]:
    return ran(sweep.table(), methods)


def sameness_claim(text: str, paper: str, sweep: Sweep, methods: Sequence[str]) -> Claim:
    """Whether some methods of a sweep are equivalent."""
    table, terms = labelled(sweep.table(methods)), sweep.terms
    comparison = compare(table, terms.margin)
    measured = [
        f"{_scale(sweep)}: {comparison.verdict.value}",
        *_why(comparison, terms),
        *(_pair(each, comparison.margin, terms) for each in comparison.differences),
        *(rate_text(each).removesuffix(".") for each in comparison.rates if sum(each.diverged)),
        *filter(None, [advice_text(comparison, terms).removesuffix(".")]),
    ]
    criterion = f"margin {margin_text(comparison, terms)}: {CRITERION}" if comparison.margin else CRITERION
    claim = _named(text, comparison.methods)
    return Claim(claim, paper, "; ".join(measured), criterion, HOLDS[comparison.verdict])


def _named(text: str, labels: Sequence[str]) -> str:
    """Inserts the names of the methods into a claim, in short form for RAdam's first-step rules.

    >>> _named("({})", ["RAdam", "RAdam (nothing first)"]), _named("{} do.", ["RAdam", "Untuned linear"])
    ('(momentum and nothing)', 'RAdam and Untuned linear do.')
    """
    if any(label in RULES for label in labels):
        labels = [RULES.get(label, "momentum") for label in labels]
    return text.format(listed(labels))


def _why(comparison: Comparison, terms: Terms) -> list[str]:
    return ["no margin is fixed for this task"] if terms.margin is None else reasons(comparison)


def _pair(difference: Difference, margin: float | None, terms: Terms) -> str:
    if not difference.seeds:
        return f"{pair_text(difference.pair)}: nothing to compare"
    return f"{pair_text(difference.pair)} {difference_text(difference, margin, terms.unit)}"


def control_claim(sweep: Sweep) -> Claim:
    """Whether a sweep shows that Adam is worse without warmup."""
    none, terms = STYLES["none"].label, sweep.terms
    table = labelled(sweep.table(["none", *_methods_run(sweep, ANY_WARMUP)]))
    others = [method for method in table.methods if method != none]
    found = [compare(table, terms.margin, [none, other]) for other in others]
    measured = [
        f"{_scale(sweep)}: {', '.join(_control_text(table, each, none, terms) for each in found)}",
        *dict.fromkeys(reason for each in found for reason in _why(each, terms)),
        *(rate_text(rates).removesuffix(".") for each in found for rates in each.rates if sum(rates.diverged)),
    ]
    margin = f"margin {margin_text(found[0], terms)}: " if found[0].margin else ""
    holds = _control([_needs(table, each, none) for each in found])
    return Claim(f"{NEEDED[0]} On {_subject(sweep)}.", NEEDED[1], "; ".join(measured), margin + WORSE, holds)


def control_summary(sweeps: Sequence[Sweep]) -> str:
    """Says on which data warmup is needed and on which it is not; empty for fewer than two sweeps."""
    found = [(_subject(sweep), control_claim(sweep).verdict) for sweep in _controls(sweeps)]
    if len(found) < 2:
        return ""
    words = {
        Holds.YES: "worse by more than the margin",
        Holds.NO: "not worse by more than the margin",
        Holds.UNKNOWN: "inconclusive",
    }
    subjects = {word: [name for name, holds in found if holds is verdict] for verdict, word in words.items()}
    told = [f"{word} on {len(names)} of {len(found)} ({'; '.join(names)})" for word, names in subjects.items() if names]
    return f"Adam without warmup is {', '.join(told)}."


def _control(needs: Sequence[bool | None]) -> Holds:
    """Warmup is needed if Adam without it is worse than with every warmup that ran."""
    if all(needs):
        return Holds.YES
    return Holds.NO if all(each is False for each in needs) else Holds.UNKNOWN


def _needs(table: Table, comparison: Comparison, none: str) -> bool | None:
    """Whether Adam is worse without warmup than with one; None if it is inconclusive."""
    if comparison.verdict is Verdict.INCONCLUSIVE:
        return None
    if comparison.verdict is Verdict.EQUIVALENT:
        return False
    for rates in comparison.rates:
        if rates.differ:
            shares = dict(
                zip(rates.pair, (a / b for a, b in zip(rates.diverged, rates.runs, strict=True)), strict=True)
            )
            return max(shares, key=lambda method: shares[method]) == none
    return _is_worse(table, comparison.differences[0], none)


def _control_text(table: Table, comparison: Comparison, none: str, terms: Terms) -> str:
    (difference,) = comparison.differences
    other = next(method for method in difference.pair if method != none)
    if not difference.seeds:
        return f"nothing to compare with {other}"
    how = "worse" if _is_worse(table, difference, none) else "better"
    needs = _needs(table, comparison, none)
    shown = "" if needs else ": does not show that warmup is needed"
    return f"without warmup {how} than {other}, {_pair(difference, comparison.margin, terms)}{shown}"


def _is_worse(table: Table, difference: Difference, method: str) -> bool:
    """Whether the method's mean is the worse of a pair."""
    larger = difference.pair[1] if difference.mean > 0 else difference.pair[0]
    return (larger == method) == (table.direction == "min")


def _scale(sweep: Sweep) -> str:
    table = sweep.table()
    sizes = f"{counted(len(table.rows), 'cell')}, {counted(len(table.seeds), 'seed')}"
    return f"{_subject(sweep)}, {sizes}"


def _subject(sweep: Sweep) -> str:
    return sweep.subject or sweep.folder.name
