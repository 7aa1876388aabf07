"""The answers of sweeps and of the paper's tables to the questions in `groups`."""

import dataclasses
from collections.abc import Iterable, Sequence

from trainers.evidence.comparison import Comparison, compare
from trainers.evidence.findings import Terms, sweep_command
from trainers.evidence.groups import QUESTIONS, method_groups
from trainers.evidence.margins import Margin
from trainers.evidence.names import TASKS, sweep_title
from trainers.evidence.objectives import OBJECTIVES
from trainers.evidence.published import NAMES, published_comparison, published_terms
from trainers.reports.folders import CONFIG
from trainers.reports.paper import TABLES
from trainers.reports.reading import Sweep

PAPER = "the paper"


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of a sweep, or of one of the paper's tables, to a question.

    Args:
        question: One of `QUESTIONS`.
        task: Its task.
        data: Its data set, and its model where the task has several.
        title: The model and the data in words.
        source: The name of its folder; "the paper" for the paper's table.
        direction: "min" or "max": which value is better.
        comparison: The methods compared in pairs.
        terms: What they are judged by.
    """

    question: str
    task: str
    data: str
    title: str
    source: str
    direction: str
    comparison: Comparison
    terms: Terms

    @property
    def published(self) -> bool:
        return self.source == PAPER


def answers(sweeps: Iterable[Sweep], margins: Sequence[Margin] = ()) -> list[Answer]:
    """All answers of some sweeps, question by question; `margins` take precedence over the table of margins."""
    asked = [(sweep, terms_of(sweep, margins)) for sweep in sweeps]
    found = [answer for sweep, terms in asked for answer in _answers(sweep, terms)]
    return sorted(found, key=lambda answer: QUESTIONS.index(answer.question))


def published_answers() -> list[Answer]:
    """The answers of the paper's three tables."""
    return [
        Answer(
            QUESTIONS[0],
            task,
            NAMES[task],
            f"{TASKS[task]}, {NAMES[task]}",
            PAPER,
            OBJECTIVES[task].direction,
            published_comparison(task),
            published_terms(task),
        )
        for task in TABLES
    ]


def terms_of(sweep: Sweep, margins: Sequence[Margin]) -> Terms:
    """The terms of a sweep, with a path that works on a command line, where a page has only the name of a folder."""
    config = sweep.folder.path / CONFIG
    command = sweep_command(sweep.task, str(config)) if config.exists() and not sweep.kept else ""
    own = next((each for each in margins if each.fits(sweep.task, sweep.data)), sweep.terms.margin)
    return dataclasses.replace(sweep.terms, margin=own, command=command)


def _answers(sweep: Sweep, terms: Terms) -> Iterable[Answer]:
    table = sweep.table()
    for question, methods in method_groups(table):
        comparison = compare(table, terms.margin, methods)
        subject = sweep.subject, sweep_title(sweep)
        yield Answer(question, sweep.task, *subject, sweep.folder.name, table.direction, comparison, terms)
