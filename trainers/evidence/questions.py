"""The questions of the paper, and the answers of sweeps and of the tables that it prints."""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence

from trainers.evidence.comparison import Comparison, compare
from trainers.evidence.differences import Difference
from trainers.results.layout import CONFIG
from trainers.results.methods import FIRST_STEPS_OF, METHODS, UNTUNED
from trainers.results.paper import TABLES, PaperTable
from trainers.results.runs import Sweep, sweep_title
from trainers.results.table import Table
from trainers.results.tasks import TASKS, Margin, Terms, margin_of, sweep_command

FIRST_STEP_RULES = ("radam", *FIRST_STEPS_OF)
ANY_WARMUP = tuple(name for name in UNTUNED if name != "none")
# Do the warmups differ? Do RAdam's first steps matter? Is warmup needed? Do any other methods differ?
WARMUPS, FIRST_STEPS, NO_WARMUP, OTHERS = QUESTIONS = ("warmups", "first steps", "no warmup", "methods")


def method_groups(table: Table) -> list[tuple[str, Sequence[str]]]:
    """The questions, each with the methods that answer it; no warmup is compared with each warmup in turn.

    If no question fits, all methods are compared.
    """
    asked: list[tuple[str, Sequence[str]]] = [(WARMUPS, METHODS), (FIRST_STEPS, FIRST_STEP_RULES)]
    asked += [(NO_WARMUP, ["none", warmup]) for warmup in table.ran(ANY_WARMUP) if table.ran(["none"])]
    groups = [(question, ran) for question, methods in asked if len(ran := table.ran(methods)) > 1]
    every = table.ran(table.methods)
    return [*groups] or ([(OTHERS, every)] if len(every) > 1 else [])


# The paper prints one decimal: a deviation of 0.1 may be up to 0.15, and 0.0 up to 0.05. These upper limits are used,
# so that no verdict comes from rounding. A mean is off by up to 0.05 either way; the variance of this uniform error is
# added.
HALF_DIGIT = 0.05


def published_comparison(task: str) -> Comparison:
    """The comparison of the paper's three methods, over the cells of its table for a task."""
    table, known = TABLES[task], TASKS[task]
    means = [mean for _, _, cells in table.rows for mean, _ in cells]
    margin = margin_of(task, known.paper_set)
    return Comparison(
        METHODS,
        tuple(published_difference(table, *pair) for pair in itertools.combinations(range(len(METHODS)), 2)),
        None if margin is None else margin.absolute(math.fsum(means) / len(means)),
        Terms(margin, known.objective.unit),
        known.objective.direction,
        seeds=tuple(range(1, table.seeds + 1)),
    )


def published_difference(table: PaperTable, first: int, second: int) -> Difference:
    """The difference, averaged over cells with their own variances; degrees of freedom by Welch and Satterthwaite."""
    cells = [(row[2][first], row[2][second]) for row in table.rows]
    mean = math.fsum(b[0] - a[0] for a, b in cells) / len(cells)
    parts = [(deviation + HALF_DIGIT) ** 2 / table.seeds for pair in cells for _, deviation in pair]
    sampling, rounding = math.fsum(parts), 2 * len(cells) * HALF_DIGIT**2 / 3
    freedom = (sampling + rounding) ** 2 / math.fsum(part**2 / (table.seeds - 1) for part in parts)
    error = math.sqrt(sampling + rounding) / len(cells)
    return Difference((METHODS[first], METHODS[second]), table.seeds, len(cells), mean, error, freedom)


PAPER = "the paper"


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of a sweep, or of one of the paper's tables, to a question."""

    question: str  # one of `QUESTIONS`
    task: str  # its task
    data: str  # its data set, and its model where the task has several
    title: str  # the model and the data in words
    source: str  # the name of its folder; "the paper" for the paper's table
    comparison: Comparison  # the methods compared in pairs

    @property
    def published(self) -> bool:
        return self.source == PAPER


def answers(sweeps: Iterable[Sweep], margins: Sequence[Margin] = ()) -> list[Answer]:
    """All answers of some sweeps, question by question; `margins` take precedence over the table of margins."""
    return by_question(answer for sweep in sweeps for answer in sweep_answers(sweep, terms_of(sweep, margins)))


def by_question(answers: Iterable[Answer]) -> list[Answer]:
    return sorted(answers, key=lambda answer: QUESTIONS.index(answer.question))


def published_answers() -> list[Answer]:
    """The answers of the paper's three tables."""
    known = {task: TASKS[task] for task in TABLES}
    return [
        Answer(WARMUPS, task, of.paper_data, f"{of.title}, {of.paper_data}", PAPER, published_comparison(task))
        for task, of in known.items()
    ]


def terms_of(sweep: Sweep, margins: Sequence[Margin]) -> Terms:
    """The terms of a sweep, with a path that works on a command line, where a page has only the name of a folder."""
    config = sweep.folder.path / CONFIG
    command = sweep_command(sweep.task, str(config)) if config.exists() and not sweep.kept else ""
    own = next((each for each in margins if each.fits(sweep.task, sweep.data)), sweep.terms.margin)
    return dataclasses.replace(sweep.terms, margin=own, command=command)


def sweep_answers(sweep: Sweep, terms: Terms) -> list[Answer]:
    """The answers of a sweep, one for each question that its methods answer."""
    table, where = sweep.table(), (sweep.task, sweep.subject, sweep_title(sweep), sweep.folder.name)
    return [Answer(question, *where, compare(table, terms, methods)) for question, methods in method_groups(table)]
