"""The page from top to bottom: the answer, the claims, and a section for everything that was measured."""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

from trainers.reports.analysis_sections import analysis_section, factors_section, simulation_section
from trainers.reports.answer import answer_section
from trainers.reports.blocks import Claims, Section, Text
from trainers.reports.claims import Claim
from trainers.reports.claims_sweeps import control_summary, sweep_claims
from trainers.reports.claims_updates import update_claims
from trainers.reports.claims_warmups import warmup_claims
from trainers.reports.differences_section import differences_section
from trainers.reports.run_sections import making_section, training_section
from trainers.reports.sweep_sections import in_order, sweep_section
from trainers.reports.tables import Shown, plain_table
from trainers.reports.words import without_places
from trainers.results import paper
from trainers.results.runs import DAMAGE, Runs, described


def all_claims(runs: Runs) -> list[Claim]:
    return [*warmup_claims(), *update_claims(runs.simulations, runs.analyses), *sweep_claims(runs.sweeps)]


def all_sections(runs: Runs) -> list[Section]:
    claims = all_claims(runs)
    return [
        answer_section(runs, claims),
        differences_section(runs.sweeps),
        *([problems_section(runs)] if runs.problems else []),
        claims_section(runs, claims),
        factors_section(),
        *(simulation_section(number, run) for number, run in enumerate(runs.simulations, 1)),
        *(analysis_section(number, run) for number, run in enumerate(runs.analyses, 1)),
        *(sweep_section(number, sweep) for number, sweep in enumerate(in_order(runs.sweeps), 1)),
        *(training_section(number, run) for number, run in enumerate(runs.trainings, 1)),
        making_section(runs),
    ]


def without_damaged(runs: Runs) -> Runs:
    """Returns the runs whose sections and claims can be made; the others are added to the problems."""
    problems = list(runs.problems)
    kept: dict[str, tuple[Any, ...]] = {}
    for kind, attempt in _ATTEMPTS.items():
        kept[kind] = tuple(run for run in getattr(runs, kind) if _can_be_shown(run, attempt, problems))
    return dataclasses.replace(runs, **kept, problems=tuple(problems))


_ATTEMPTS: dict[str, Callable[[Any], Any]] = {
    "simulations": lambda run: (simulation_section(1, run), update_claims([run], [])),
    "analyses": lambda run: (analysis_section(1, run), update_claims([], [run])),
    "sweeps": lambda run: (sweep_section(1, run), sweep_claims([run])),
    "trainings": lambda run: training_section(1, run),
}


def _can_be_shown(run: Any, attempt: Callable[[Any], Any], problems: list[str]) -> bool:
    try:
        attempt(run)
    except DAMAGE as error:
        problems.append(f"{run.folder.path} ({described(error)})")
        return False
    return True


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


def _claims_table(claims: list[Claim]) -> Shown:
    rows = [
        [each.claim, each.kind.value, each.paper, each.measured, each.criterion, each.verdict.word] for each in claims
    ]
    headings = ["claim", "decided by", "paper", "measured here", "criterion", "holds"]
    return plain_table("claims", "The paper's claims, and what was measured here", headings, rows)


def introduction() -> str:
    """What this page is, in one sentence."""
    return f"The figures, tables and claims of {paper.AUTHORS}, measured again at a small scale."
