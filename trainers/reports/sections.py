"""The page from top to bottom: the answer, the claims, and a section for everything that was measured."""

import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from trainers.evidence.differences_figure import differences_charts, shown_answers
from trainers.evidence.findings import CRITERION, margin_text, verdict_text
from trainers.evidence.questions import NO_WARMUP, WARMUPS, Answer, by_question, published_answers
from trainers.evidence.tables import evidence_columns
from trainers.reports.analysis_sections import analysis_section, factors_section, simulation_section
from trainers.reports.claims import Claim, Claims, Holds, update_claims, warmup_claims
from trainers.reports.method_claims import JudgedSweep, control_summary, judged, method_claims
from trainers.reports.page import Points, Section, Text, WideAndNarrow
from trainers.reports.run_sections import RunSummary, making_section, run_summary, runs_section, total
from trainers.reports.sweep_sections import in_order, sweep_section
from trainers.reports.tables import PageTable, safe_records
from trainers.results.formats import counted, listed, upper_first, without_places
from trainers.results.methods import label_of
from trainers.results.runs import DAMAGE, Measured, Runs, described

ADVICE = (
    "Use untuned linear warmup, over 2 / (1 − β₂) updates: the paper recommends it, it works with any Adam, and it has "
    "nothing to tune."
)
CAPTION = "Verdicts (the CSV file has every difference with its intervals)"
HEADINGS = ("comparison", "verdict", "margin", "seeds", "methods")


class Report(NamedTuple):
    """What a page shows."""

    runs: Runs  # without those whose data cannot be shown, which are among its problems
    answer: list[str]  # the four sentences on top
    sections: list[Section]  # all sections


def make_report(runs: Runs) -> Report:
    problems = list(runs.problems)
    answered = _made(lambda _, sweep: judged(sweep), runs.sweeps, problems)
    ordered = in_order(each.sweep for each in answered.values())
    simulations = _made(_decided(simulation_section, lambda run: update_claims([run], [])), runs.simulations, problems)
    analyses = _made(_decided(analysis_section, lambda run: update_claims([], [run])), runs.analyses, problems)
    sweeps = _made(lambda number, sweep: sweep_section(number, answered[id(sweep)]), ordered, problems)
    trainings = _made(lambda _, run: run_summary(run), runs.trainings, problems)
    kinds = {"simulations": simulations, "analyses": analyses, "sweeps": sweeps, "trainings": trainings}
    runs = dataclasses.replace(
        runs,
        **{kind: tuple(run for run in getattr(runs, kind) if id(run) in made) for kind, made in kinds.items()},
        problems=tuple(problems),
    )
    methods = [answered[id(sweep)] for sweep in runs.sweeps]
    claims = [*warmup_claims(), *update_claims(runs.simulations, runs.analyses), *method_claims(methods)]
    sentences = answer(runs, claims)
    return Report(
        runs,
        sentences,
        [
            Section("answer", "The answer", [Points(sentences)]),
            differences_section(methods),
            *([problems_section(runs)] if runs.problems else []),
            claims_section(claims),
            factors_section(),
            *simulations.values(),
            *analyses.values(),
            *sweeps.values(),
            *_runs_sections(trainings.values()),
            making_section(runs),
        ],
    )


def _decided(
    make: Callable[[int, Measured], Section], claims: Callable[[Measured], Any]
) -> Callable[[int, Measured], Section]:
    """Makes a section of runs that can also decide claims."""
    return lambda number, run: (claims(run), make(number, run))[1]


def _made(make: Callable[[int, Any], Any], runs: Iterable[Any], problems: list[str]) -> dict[int, Any]:
    """What is shown of each run, by the run's identity."""
    made = {}
    for number, run in enumerate(runs, 1):
        try:
            made[id(run)] = make(number, run)
        except DAMAGE as error:
            problems.append(f"{run.folder.path} ({described(error)})")
    return made


def _runs_sections(summaries: Iterable[RunSummary]) -> list[Section]:
    """A section for the runs of each task."""
    tasks: dict[str, list[RunSummary]] = {}
    for summary in summaries:
        tasks.setdefault(summary.folder.task, []).append(summary)
    return [runs_section(number, task, same) for number, (task, same) in enumerate(tasks.items(), 1)]


def problems_section(runs: Runs) -> Section:
    texts = [Text(f"Left out: {_last_places(problem)}.", warns=True) for problem in runs.problems]
    return Section("problems", "Files that cannot be used", texts)


def _last_places(problem: str) -> str:
    """A problem with only the last two parts of its path."""
    path, space, reason = problem.partition(" (")
    return f".../{'/'.join(pathlib.Path(path).parts[-2:])}{space}{without_places(reason)}"


def claims_section(claims: list[Claim]) -> Section:
    how = "Each claim with what was measured here. The criterion below a measurement alone decides the verdict."
    summary = control_summary(claims)
    return Section("claims", "The paper's claims", [Text(how), Claims(claims), *([Text(summary)] if summary else [])])


def answer(runs: Runs, claims: Sequence[Claim]) -> list[str]:
    """Returns the four sentences at the top: what was found."""
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
