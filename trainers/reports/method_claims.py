"""The claims about trained models, decided by the equivalence test at the end of every sweep."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from trainers.evidence.comparison import Comparison, Verdict
from trainers.evidence.differences import Difference
from trainers.evidence.findings import (
    CRITERION,
    advice_text,
    difference_text,
    margin_text,
    pair_text,
    rate_sentences,
    reasons,
)
from trainers.evidence.questions import FIRST_STEP_RULES, FIRST_STEPS, NO_WARMUP, WARMUPS, Answer, sweep_answers
from trainers.reports.claims import Claim, Holds
from trainers.results.formats import counted, listed
from trainers.results.methods import METHODS, VARIANTS, label_of
from trainers.results.paper import TABLES
from trainers.results.runs import Sweep
from trainers.results.tasks import IMAGES, LANGUAGE, TASKS, TRANSLATION, task_title

WORSE = (
    "yes if Adam without warmup is worse by more than the margin (90 % interval wholly outside) or diverges more often "
    "(Fisher's exact test, p < 0.05); no if it is better or inside the margin"
)
QUOTES = {
    IMAGES: "“indistinguishable” (ImageNet)",
    LANGUAGE: "“minimal impact” (WikiText-103)",
    TRANSLATION: "“no perceptible differences” (WMT16)",
}
NEEDED = ("Adam needs warmup.", "“frequent need for learning rate warmup”")
RULES = {style.label: style.label.removeprefix("RAdam (").removesuffix(" first)") for style in VARIANTS.values()}
HOLDS = {Verdict.EQUIVALENT: True, Verdict.DIFFERENT: False, Verdict.INCONCLUSIVE: None}


class JudgedSweep(NamedTuple):
    """A sweep, and its answers to the questions of the paper."""

    sweep: Sweep
    answers: Sequence[Answer]

    def to(self, question: str) -> list[Answer]:
        return [answer for answer in self.answers if answer.question == question]

    @property
    def scale(self) -> str:
        table = self.sweep.table()
        return f"{self.subject}, {counted(len(table.rows), 'cell')}, {counted(len(table.seeds), 'seed')}"

    @property
    def subject(self) -> str:
        return self.sweep.subject or self.sweep.folder.name


def judged(sweep: Sweep) -> JudgedSweep:
    return JudgedSweep(sweep, sweep_answers(sweep, sweep.terms))


def method_claims(sweeps: Sequence[JudgedSweep]) -> list[Claim]:
    """Claims about the paper's three tasks, swept or not, and any other; then about first steps and no warmup."""
    claims = []
    for task in dict.fromkeys([*TABLES, *(each.sweep.task for each in sweeps)]):
        title, paper = task_title(task), QUOTES.get(task, "“substantively identical”")
        subject = title.lower() if task in TASKS else task
        fitting = [each for each in sweeps if each.sweep.task == task]
        found = _sameness(f"{title}: {{}} do equally well.", paper, fitting, WARMUPS, subject)
        missing = _named(f"{title}: {{}} do equally well.", [label_of(method) for method in METHODS])
        claims += found or ([_compared_nowhere(missing, paper)] if task in TABLES else [])
    text, paper = "What RAdam does in its first four steps makes no difference ({}).", "“uniformly negligible”"
    missing = _named(text, [label_of(method) for method in FIRST_STEP_RULES])
    claims += _sameness(text, paper, sweeps, FIRST_STEPS) or [_compared_nowhere(missing, paper)]
    no_control = Claim(*NEEDED, measured="no sweep compares a warmup with no warmup", criterion=WORSE)
    return claims + ([control_claim(each) for each in sweeps if each.to(NO_WARMUP)] or [no_control])


def _compared_nowhere(text: str, paper: str) -> Claim:
    return Claim(text, paper, measured="no sweep compares them", criterion=CRITERION)


def _sameness(text: str, paper: str, sweeps: Iterable[JudgedSweep], question: str, subject: str = "") -> list[Claim]:
    """For each sweep that answers a question, whether the methods that ran are equivalent."""
    claims = []
    for each in sweeps:
        for answer in each.to(question):
            comparison = answer.comparison.labelled(label_of)
            measured = [
                f"{each.scale}: {comparison.verdict.value}",
                *reasons(comparison),
                *(_pair(comparison, difference) for difference in comparison.differences),
                *(sentence.removesuffix(".") for sentence in rate_sentences(comparison)),
                *filter(None, [advice_text(comparison).removesuffix(".")]),
            ]
            criterion = f"margin {margin_text(comparison)}: {CRITERION}" if comparison.margin else CRITERION
            claim = Claim(_named(text, comparison.methods), paper, question=question, on=subject)
            claims.append(claim.judged("; ".join(measured), criterion, HOLDS[comparison.verdict]))
    return claims


def _named(text: str, labels: Sequence[str]) -> str:
    """Inserts the names of the methods into a claim, in short form for RAdam's first-step rules.

    >>> _named("({})", ["RAdam", "RAdam (nothing first)"]), _named("{} do.", ["RAdam", "Untuned linear"])
    ('(momentum and nothing)', 'RAdam and Untuned linear do.')
    """
    if any(label in RULES for label in labels):
        labels = [RULES.get(label, "momentum") for label in labels]
    return text.format(listed(labels))


def _pair(comparison: Comparison, difference: Difference) -> str:
    if not difference.seeds:
        return f"{pair_text(difference.pair)}: nothing to compare"
    return f"{pair_text(difference.pair)} {difference_text(difference, comparison.margin, comparison.terms.unit)}"


def control_claim(judged: JudgedSweep) -> Claim:
    """Whether a sweep shows that Adam is worse without warmup."""
    found = judged.to(NO_WARMUP)
    named, needs = [answer.comparison.labelled(label_of) for answer in found], [_needs(answer) for answer in found]
    texts = ", ".join(_control_text(answer, need) for answer, need in zip(found, needs, strict=True))
    measured = [
        f"{judged.scale}: {texts}",
        *dict.fromkeys(reason for each in named for reason in reasons(each)),
        *(sentence.removesuffix(".") for each in named for sentence in rate_sentences(each)),
    ]
    margin = f"margin {margin_text(named[0])}: " if named[0].margin else ""
    # Warmup is needed if Adam without it is worse than with every warmup that ran.
    holds = True if all(needs) else False if all(need is False for need in needs) else None
    claim = Claim(f"{NEEDED[0]} On {judged.subject}.", NEEDED[1], question=NO_WARMUP, on=judged.subject)
    return claim.judged("; ".join(measured), margin + WORSE, holds)


def control_summary(claims: Iterable[Claim]) -> str:
    """Says on which data warmup is needed and on which it is not; empty for fewer than two sweeps."""
    found = [claim for claim in claims if claim.question == NO_WARMUP]
    if len(found) < 2:
        return ""
    words = {
        Holds.YES: "worse by more than the margin",
        Holds.NO: "not worse by more than the margin",
        Holds.UNKNOWN: "inconclusive",
    }
    subjects = {word: [claim.on for claim in found if claim.verdict is verdict] for verdict, word in words.items()}
    told = [f"{word} on {len(names)} of {len(found)} ({'; '.join(names)})" for word, names in subjects.items() if names]
    return f"Adam without warmup is {', '.join(told)}."


def _needs(answer: Answer) -> bool | None:
    """Whether Adam is worse without warmup than with one; None if it is inconclusive."""
    comparison = answer.comparison
    if comparison.verdict is Verdict.INCONCLUSIVE:
        return None
    if comparison.verdict is Verdict.EQUIVALENT:
        return False
    for rates in comparison.rates:
        if rates.differ:
            first, second = (diverged / runs for diverged, runs in zip(rates.diverged, rates.runs, strict=True))
            return rates.pair[0 if first > second else 1] == "none"
    return _is_worse(answer)


def _control_text(answer: Answer, needs: bool | None) -> str:
    comparison = answer.comparison.labelled(label_of)
    (difference,) = comparison.differences
    (other,) = (label_of(method) for method in answer.comparison.methods if method != "none")
    if not difference.seeds:
        return f"nothing to compare with {other}"
    how = "worse" if _is_worse(answer) else "better"
    shown = "" if needs else ": does not show that warmup is needed"
    return f"without warmup {how} than {other}, {_pair(comparison, difference)}{shown}"


def _is_worse(answer: Answer) -> bool:
    """Whether the mean without warmup is the worse one."""
    (difference,) = answer.comparison.differences
    larger = difference.pair[1] if difference.mean > 0 else difference.pair[0]
    return (larger == "none") == (answer.comparison.direction == "min")
