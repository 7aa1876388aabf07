"""The section below the answer: every difference between methods, with its intervals and the margin."""

from collections.abc import Sequence

from trainers.evidence.differences_figure import differences_svg, narrow_differences_svg, shown_answers
from trainers.evidence.findings import CRITERION, margin_text, verdict_text
from trainers.evidence.questions import Answer, answers, published_answers
from trainers.evidence.tables import evidence_columns
from trainers.reports.blocks import Picture, Section, TableBlock, Text
from trainers.reports.tables import Shown, safe_records
from trainers.results.formats import listed, upper_first
from trainers.results.methods import style_of
from trainers.results.runs import Sweep

CAPTION = "Verdicts (the CSV file has every difference with its intervals)"
HEADINGS = ("comparison", "verdict", "margin", "seeds", "methods")


def differences_section(sweeps: Sequence[Sweep]) -> Section:
    found = [*answers(sweeps), *published_answers()]
    columns = evidence_columns(found)
    records = [list(columns), *zip(*columns.values(), strict=True)]
    table = Shown("differences", CAPTION, HEADINGS, [_row(answer) for answer in found], safe_records(records))
    return Section(
        "differences",
        "Do the methods differ?",
        [
            Picture(differences_svg(found), narrow_differences_svg(found), _in_words(shown_answers(found))),
            Text(
                "Each row is a difference between two methods, in units of the smallest difference that would matter, "
                f"the margin, which was fixed before the runs. A verdict is {CRITERION}. Hollow marks are the paper's "
                "numbers, not measured here."
            ),
            TableBlock(table),
        ],
    )


def _row(answer: Answer) -> list[str]:
    """A row of the table of verdicts."""
    comparison = answer.comparison
    margin = margin_text(comparison, answer.terms) if comparison.margin else "none fixed"
    methods = listed([style_of(method).label for method in comparison.methods])
    return [_what(answer), comparison.verdict.value, margin, str(len(comparison.seeds)), methods]


def _what(answer: Answer) -> str:
    source = "the paper's table" if answer.published else answer.source
    return f"{upper_first(answer.title)} ({source})"


def _in_words(found: Sequence[Answer]) -> str:
    """Describes the picture, for readers who cannot see it."""
    told = [f"{_what(answer)}: {verdict_text(answer.comparison, answer.terms)}" for answer in found]
    return " ".join(["Differences between methods, with intervals and margins.", *told])
