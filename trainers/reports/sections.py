"""The page from top to bottom: what it is, the claims, and a section for everything that was measured."""

import datetime
from typing import Any

from trainers.engine.machine import this_machine
from trainers.reports import paper
from trainers.reports.analysis_sections import analysis_section, factors_section, simulation_section
from trainers.reports.blocks import Claims, Section, Text
from trainers.reports.claims import Claim
from trainers.reports.claims_sweeps import sweep_claims
from trainers.reports.claims_updates import update_claims
from trainers.reports.claims_warmups import warmup_claims
from trainers.reports.reading import Runs
from trainers.reports.run_sections import making_section, total, training_section
from trainers.reports.sweep_sections import in_order, sweep_section
from trainers.reports.tables import Shown, plain_table


def all_sections(runs: Runs) -> list[Section]:
    return [
        claims_section(runs),
        factors_section(),
        *(simulation_section(number, run) for number, run in enumerate(runs.simulations, 1)),
        *(analysis_section(number, run) for number, run in enumerate(runs.analyses, 1)),
        *(sweep_section(number, sweep) for number, sweep in enumerate(in_order(runs.sweeps), 1)),
        *(training_section(number, run) for number, run in enumerate(runs.trainings, 1)),
        making_section(runs),
    ]


def claims_section(runs: Runs) -> Section:
    claims = [*warmup_claims(), *update_claims(runs.simulations, runs.analyses), *sweep_claims(runs.sweeps)]
    return Section(
        "claims",
        "The paper's claims",
        [
            Text(
                "Each claim with what was measured here. Whether it holds is decided by the criterion that stands "
                "below the measurement, and by nothing else."
            ),
            Claims(claims, _claims_table(claims)),
        ],
    )


def _claims_table(claims: list[Claim]) -> Shown:
    rows = [[each.claim, each.paper, each.measured, each.criterion, each.verdict.word] for each in claims]
    headings = ["claim", "paper", "measured here", "criterion", "holds"]
    return plain_table("claims", "The paper's claims, and what was measured here", headings, rows)


def introduction(runs: Runs) -> list[str]:
    """What this is and how large, before anything else."""
    return [
        f"The figures, tables and claims of {paper.AUTHORS}, with numbers measured here: {total(runs)}. The paper "
        "trained models of ImageNet, WikiText-103 and WMT16 on eight GPUs. Its own tables stand beside, marked as the "
        "paper's; the size of everything run here is said with it.",
        _machines(runs),
    ]


def _machines(runs: Runs) -> str:
    machines = list(dict.fromkeys(_machine(folder.machine) for folder in runs.folders if folder.machine))
    versions = list(dict.fromkeys(_versions(folder.versions) for folder in runs.folders if folder.versions))
    days = sorted({folder.date for folder in runs.folders})
    when = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    where = "; ".join(machines) or f"not recorded; this page was made on {_machine(this_machine())}"
    return f"Runs of {when}. Machine: {where}. Versions: {'; '.join(versions) or 'not recorded'}. Page made on {today}."


def _machine(machine: Any) -> str:
    return f"{machine.get('cores')} cores of {machine.get('processor')}, Python {machine.get('python')}"


def _versions(versions: Any) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
