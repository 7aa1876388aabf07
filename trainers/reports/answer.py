"""The top of the page: what was found, in four sentences, and every difference between methods."""

from collections.abc import Sequence

from trainers.evidence.differences_figure import differences_charts, shown_answers
from trainers.evidence.findings import CRITERION, margin_text, verdict_text
from trainers.evidence.questions import Answer, by_question, published_answers
from trainers.evidence.tables import evidence_columns
from trainers.reports.claims import Claim, Holds
from trainers.reports.method_claims import NO_WARMUP, WARMUPS, JudgedSweep
from trainers.reports.page import Section, Text, WideAndNarrow
from trainers.reports.run_sections import total
from trainers.reports.tables import PageTable, safe_records
from trainers.results.formats import counted, listed, upper_first
from trainers.results.methods import label_of
from trainers.results.runs import Runs

ADVICE = (
    "Use untuned linear warmup, over 2 / (1 − β₂) updates: the paper recommends it, it works with any Adam, and it has "
    "nothing to tune."
)
CAPTION = "Verdicts (the CSV file has every difference with its intervals)"
HEADINGS = ("comparison", "verdict", "margin", "seeds", "methods")


def answer(runs: Runs, claims: Sequence[Claim]) -> list[str]:
    """Returns the four sentences."""
    return [ADVICE, _sameness(claims), _need(claims), _scale(runs)]


def _sameness(claims: Sequence[Claim]) -> str:
    """What the sweeps say about the three untuned methods."""
    subject = "Untuned linear warmup, untuned exponential warmup and RAdam"
    parts = []
    for verdict, words in (
        (Holds.YES, "do equally well in"),
        (Holds.NO, "differ in"),
        (Holds.UNKNOWN, "cannot be ranked or called equal with the runs of"),
    ):
        found = [claim.on for claim in claims if claim.question == WARMUPS and claim.verdict is verdict]
        if found:
            parts.append(f"{words} {listed(list(dict.fromkeys(found)))}")
    return f"{subject} {'; they '.join(parts)}." if parts else f"{subject} were not compared in these runs."


def _need(claims: Sequence[Claim]) -> str:
    """What the sweeps say about Adam without warmup."""
    judged = [claim.verdict for claim in claims if claim.question == NO_WARMUP]
    if not judged:
        return "Adam without warmup was not among these runs."
    words = {Holds.YES: "worse", Holds.NO: "not worse", Holds.UNKNOWN: "undecided"}
    counts = [f"{word} in {judged.count(verdict)}" for verdict, word in words.items() if verdict in judged]
    return f"Adam without warmup was {listed(counts)} of {counted(len(judged), 'sweep')}."


def _scale(runs: Runs) -> str:
    return (
        f"These results are from {total(runs)}; the paper trained on ImageNet, WikiText-103 and WMT16 with eight GPUs, "
        "and its results are shown for reference."
    )


def differences_section(sweeps: Sequence[JudgedSweep]) -> Section:
    found = [*by_question(answer for each in sweeps for answer in each.answers), *published_answers()]
    columns = evidence_columns(found)
    records = [list(columns), *zip(*columns.values(), strict=True)]
    table = PageTable("differences", CAPTION, HEADINGS, [_row(answer) for answer in found], safe_records(records))
    return Section(
        "differences",
        "Do the methods differ?",
        [
            WideAndNarrow(*differences_charts(found, _in_words(shown_answers(found)))),
            Text(
                "Each row is a difference between two methods, in units of the smallest difference that would matter, "
                f"the margin, which was fixed before the runs. A verdict is {CRITERION}. Hollow marks are the paper's "
                "numbers, not measured here."
            ),
            table,
        ],
    )


def _row(answer: Answer) -> list[str]:
    """A row of the table of verdicts."""
    comparison = answer.comparison
    margin = margin_text(comparison) if comparison.margin else "none fixed"
    methods = listed([label_of(method) for method in comparison.methods])
    return [_what(answer), comparison.verdict.value, margin, str(len(comparison.seeds)), methods]


def _what(answer: Answer) -> str:
    source = "the paper's table" if answer.published else answer.source
    return f"{upper_first(answer.title)} ({source})"


def _in_words(found: Sequence[Answer]) -> str:
    """Describes the picture, for readers who cannot see it."""
    told = [f"{_what(answer)}: {verdict_text(answer.comparison)}" for answer in found]
    return " ".join(["Differences between methods, with intervals and margins.", *told])
