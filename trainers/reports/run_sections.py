"""The sections of single runs, and the section on how the page was made."""

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

from trainers.reports.blocks import Block, Charts, Configs, Points, Section, TableBlock, Text
from trainers.reports.curves import training_charts
from trainers.reports.tables import plain_table
from trainers.reports.words import capitalised, duration, without_places
from trainers.results.folders import Folder
from trainers.results.runs import Runs, Training
from trainers.study.checks import warmup_lines
from trainers.system.environment import this_machine

# Settings that differ between any two runs and say nothing about them.
_PLACES = ("output_dir",)


def training_section(number: int, run: Training) -> Section:
    config, name = run.folder.config, f"run-{number}"
    warmup = config.get("warmup") or "the default warmup"
    what = ", ".join(str(config[key]) for key in ("dataset", "model") if config.get(key))
    last = run.records[-1]
    blocks: list[Block] = [
        Text(
            f"{run.folder.task}: {what or 'unknown data'}; {config.get('optimizer')} with {warmup}, learning rate "
            f"{config.get('learning_rate')}, β₂ = {config.get('beta_2')}, seed {config.get('seed')}; "
            f"{last.get('updates', last.get('step'))} updates."
        )
    ]
    if not run.folder.finished:
        blocks.append(Text(f"Incomplete. Status: {without_places(run.folder.state)}.", warns=True))
    blocks.append(Charts(name, training_charts(name, run)))
    lines = warmup_lines(run.records, config)
    if lines:
        blocks.append(Points([capitalised(line) + "." for line in lines]))
    if run.results:
        rows = [[key, value] for key, value in run.results.items() if isinstance(value, int | float | str)]
        blocks.append(TableBlock(plain_table(f"run_{number}", "Results of the run", ["result", "value"], rows)))
    return Section(name, f"Run: {run.folder.name}", blocks)


def making_section(runs: Runs) -> Section:
    """Machines, versions, and a row for each folder: its task, its status and the settings that set it apart."""
    seconds = {sweep.folder.path: sweep.seconds for sweep in runs.sweeps}
    rows = [
        [
            folder.name,
            folder.task,
            without_places(folder.state),
            folder.date,
            _rounded(seconds.get(folder.path, folder.seconds)),
            (folder.git_revision or "")[:12],
            ", ".join(f"{key}={value}" for key, value in own_settings(folder, runs.folders).items()),
        ]
        for folder in runs.folders
    ]
    headings = ["folder", "task", "status", "started", "time, s", "revision", "settings"]
    return Section(
        "making",
        "How this page was made",
        [
            Text(_machines(runs)),
            TableBlock(plain_table("folders", "The folders that this page was made from", headings, rows)),
            Text(
                "The time of a sweep is the sum over its runs; for other folders it is the time between the first and "
                "the last file, if known. The last column has the settings that differ between folders of one task."
            ),
            Configs({folder.name: config_text(folder) for folder in runs.folders}),
        ],
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def own_settings(folder: Folder, folders: Sequence[Folder]) -> dict[str, Any]:
    """The settings in which a folder differs from others of its task."""
    others = [other.config for other in folders if other.task == folder.task]
    shown = shown_config(folder.config)
    return {key: value for key, value in shown.items() if any(other.get(key) != folder.config[key] for other in others)}


def config_text(folder: Folder) -> str:
    document = {
        "task": folder.task,
        "config": shown_config(folder.config),
        "versions": dict(folder.versions),
        "machine": dict(folder.machine),
        "git_revision": folder.git_revision,
        "started": folder.started,
        "status": without_places(folder.status),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def shown_config(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: without_places(value) for key, value in config.items() if key not in _PLACES}


def total(runs: Runs) -> str:
    """How many runs there are, and how long they trained."""
    swept = sum(len(sweep.results) for sweep in runs.sweeps)
    seconds = sum(sweep.seconds for sweep in runs.sweeps)
    folders = [*(run.folder for run in runs.trainings), *(run.folder for run in runs.analyses)]
    known = [folder.seconds for folder in folders if folder.seconds is not None]
    least = "at least " if len(known) < len(folders) else ""
    count = swept + len(folders)
    return f"{count:,} training {'run' if count == 1 else 'runs'}, {least}{duration(seconds + sum(known))} in all"


def _machines(runs: Runs) -> str:
    machines = list(dict.fromkeys(_machine(folder.machine) for folder in runs.folders if folder.machine))
    versions = list(dict.fromkeys(_versions(folder.versions) for folder in runs.folders if folder.versions))
    days = sorted({folder.date for folder in runs.folders})
    when = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    where = "; ".join(machines) or f"not recorded; this page was made on {_machine(this_machine())}"
    return f"Runs of {when}. Machine: {where}. Page made on {today}. Versions: {'; '.join(versions) or 'not recorded'}."


def _machine(machine: Any) -> str:
    return f"{machine.get('cores')} cores of {machine.get('processor')}, Python {machine.get('python')}"


def _versions(versions: Any) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
