"""The page from top to bottom: the answer, the claims, and a section for everything that was measured."""

import dataclasses
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

from trainers.reports.analysis_sections import analysis_section, factors_section, simulation_section
from trainers.reports.answer import answer_section, differences_section
from trainers.reports.claims import Claim
from trainers.reports.claims_sweeps import control_summary, sweep_claims
from trainers.reports.claims_updates import update_claims
from trainers.reports.claims_warmups import warmup_claims
from trainers.reports.content import Claims, Section, Text
from trainers.reports.page_tables import PageTable, plain_table
from trainers.reports.run_sections import RunSummary, making_section, run_summary, runs_section
from trainers.reports.sweep_sections import in_order, sweep_section
from trainers.reports.words import without_places
from trainers.results import paper
from trainers.results.runs import DAMAGE, Runs, described


def all_claims(runs: Runs) -> list[Claim]:
    return [*warmup_claims(), *update_claims(runs.simulations, runs.analyses), *sweep_claims(runs.sweeps)]


def all_sections(runs: Runs) -> tuple[Runs, list[Section]]:
    """Returns the sections, and the runs that they show: those whose data cannot be shown are among the problems."""
    problems = list(runs.problems)
    tables = _made(lambda _, sweep: sweep.table(), runs.sweeps, problems)
    ordered = in_order(sweep for sweep in runs.sweeps if id(sweep) in tables)
    simulations = _made(_decided(simulation_section, lambda run: update_claims([run], [])), runs.simulations, problems)
    analyses = _made(_decided(analysis_section, lambda run: update_claims([], [run])), runs.analyses, problems)
    sweeps = _made(_decided(sweep_section, lambda run: sweep_claims([run])), ordered, problems)
    trainings = _made(lambda _, run: run_summary(run), runs.trainings, problems)
    kinds = {"simulations": simulations, "analyses": analyses, "sweeps": sweeps, "trainings": trainings}
    runs = dataclasses.replace(
        runs,
        **{kind: tuple(run for run in getattr(runs, kind) if id(run) in made) for kind, made in kinds.items()},
        problems=tuple(problems),
    )
    claims = all_claims(runs)
    return runs, [
        answer_section(runs, claims),
        differences_section(runs.sweeps),
        *([problems_section(runs)] if runs.problems else []),
        claims_section(runs, claims),
        factors_section(),
        *simulations.values(),
        *analyses.values(),
        *sweeps.values(),
        *_runs_sections(trainings.values()),
        making_section(runs),
    ]


def _decided(make: Callable[[int, Any], Section], claims: Callable[[Any], Any]) -> Callable[[int, Any], Section]:
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


def claims_section(runs: Runs, claims: list[Claim]) -> Section:
    return Section(
        "claims",
        "The paper's claims",
        [
            Text(
                "Each claim with what was measured here. The criterion below a measurement alone decides the verdict."
            ),
            Claims(claims, _claims_table(claims)),
            *([Text(summary)] if (summary := control_summary(runs.sweeps)) else []),
        ],
    )


def _claims_table(claims: list[Claim]) -> PageTable:
    rows = [
        [each.claim, each.kind.value, each.paper, each.measured, each.criterion, each.verdict.word] for each in claims
    ]
    headings = ["claim", "decided by", "paper", "measured here", "criterion", "holds"]
    return plain_table("claims", "The paper's claims, and what was measured here", headings, rows)


def introduction() -> str:
    """What this page is, in one sentence."""
    return f"The figures, tables and claims of {paper.AUTHORS}, measured again at a small scale."
