"""The page from top to bottom: the answer, the claims, and a section for everything that was measured."""

import dataclasses
import pathlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from trainers.reports.analysis_sections import analysis_section, factors_section, simulation_section
from trainers.reports.answer import answer, differences_section
from trainers.reports.claims import Claim, Claims, update_claims, warmup_claims
from trainers.reports.method_claims import control_summary, judged, method_claims
from trainers.reports.page import Points, Section, Text
from trainers.reports.run_sections import RunSummary, making_section, run_summary, runs_section
from trainers.reports.sweep_sections import in_order, sweep_section
from trainers.results.formats import without_places
from trainers.results.runs import DAMAGE, Measured, Runs, described


class Report(NamedTuple):
    """What a page shows.

    Args:
        runs: The runs. Those whose data cannot be shown are among the problems.
        answer: The four sentences on top.
        sections: All sections.
    """

    runs: Runs
    answer: list[str]
    sections: list[Section]


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
