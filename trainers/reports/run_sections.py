"""The sections of single runs, and the section on how the page was made."""

import datetime
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trainers.figures.curves import Points, run_charts, run_points
from trainers.reports.page import Block, Charts, Configs, Section, Text
from trainers.reports.tables import PageTable, plain_table
from trainers.results.folders import Folder
from trainers.results.formats import duration, upper_first, without_places
from trainers.results.runs import Runs, Training
from trainers.study.checks import warmup_lines
from trainers.system.environment import this_machine

# Settings that differ between any two runs and say nothing about them.
_PLACES = ("output_dir",)
SETTINGS = ("dataset", "model", "optimizer", "warmup", "learning_rate", "beta_2", "seed")
FEW, MANY = 4, 20  # runs, up to which each has a column of the table of results, and beyond which tables are folded


class RunSummary(NamedTuple):
    """What the page shows of a run."""

    folder: Folder
    points: Mapping[str, Points]
    results: Mapping[str, Any]
    warmup: Sequence[str]


def run_summary(run: Training) -> RunSummary:
    config, last = run.folder.config, run.records[-1]
    results = {name: config[name] for name in SETTINGS if config.get(name) is not None}
    results["updates"] = last.get("updates", last.get("step"))
    results |= {key: value for key, value in run.results.items() if isinstance(value, int | float | str)}
    return RunSummary(run.folder, run_points(run.records), results, warmup_lines(run.records, config))


def runs_section(number: int, task: str, runs: Sequence[RunSummary]) -> Section:
    """The runs of a task side by side: their curves, settings and results, and what their records say about warmup."""
    name = f"runs-{number}"
    blocks: list[Block] = [
        Text(f"{run.folder.name} is incomplete. Status: {without_places(run.folder.state)}.", warns=True)
        for run in runs
        if not run.folder.finished
    ]
    charts = run_charts(name, {run.folder.name: run.points for run in runs})
    blocks += [Charts(charts), _results_table(number, runs)]
    rows = [[run.folder.name, " ".join(f"{upper_first(line)}." for line in run.warmup)] for run in runs if run.warmup]
    if rows:
        caption = "What the records say about the warmup"
        blocks.append(plain_table(f"warmup_{number}", caption, ["run", "warmup"], rows, folded=len(runs) > MANY))
    title = f"{len(runs)} runs: {task}" if len(runs) > 1 else f"Run: {runs[0].folder.name} ({task})"
    return Section(name, title, blocks)


def _results_table(number: int, runs: Sequence[RunSummary]) -> PageTable:
    keys = list(dict.fromkeys(key for run in runs for key in run.results))
    table: list[list[Any]] = [["run", *keys], *([run.folder.name, *map(run.results.get, keys)] for run in runs)]
    if len(runs) <= FEW:
        table = [list(row) for row in zip(*table, strict=True)]
    headings, *rows = table
    caption = "Settings and results of the runs" if len(runs) > 1 else "Settings and results of the run"
    return plain_table(f"runs_{number}", caption, headings, rows, folded=len(runs) > MANY)


def making_section(runs: Runs) -> Section:
    """Machines, versions, and a row for each folder: its task, its status and the settings that set it apart."""
    swept = {sweep.folder.path: sweep.seconds for sweep in runs.sweeps}
    differing, rows = differing_settings(runs.folders), []
    for folder in runs.folders:
        seconds = swept.get(folder.path, folder.seconds)
        shown = shown_config(folder.config).items()
        settings = ", ".join(f"{key}={value}" for key, value in shown if key in differing[folder.task])
        when = folder.date, None if seconds is None else round(seconds, 1)
        revision = (folder.git_revision or "")[:12]
        rows.append([folder.name, folder.task, without_places(folder.state), *when, revision, settings])
    headings = ["folder", "task", "status", "started", "time, s", "revision", "settings"]
    return Section(
        "making",
        "How this page was made",
        [
            Text(_machines(runs)),
            plain_table("folders", "The folders that this page was made from", headings, rows),
            Text(
                "The time of a sweep is the sum over its runs; for other folders it is the time between the first and "
                "the last file, if known. The last column has the settings that differ between folders of one task."
            ),
            Configs({folder.name: config_text(folder) for folder in runs.folders}),
        ],
    )


def differing_settings(folders: Sequence[Folder]) -> dict[str, set[str]]:
    """The settings in which the folders of each task differ."""
    configs: dict[str, list[Mapping[str, Any]]] = {}
    for folder in folders:
        configs.setdefault(folder.task, []).append(folder.config)
    return {
        task: {key for key in {*itertools.chain(*same)} if any(each.get(key) != same[0].get(key) for each in same)}
        for task, same in configs.items()
    }


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
    swept = sum(len(sweep.runs) for sweep in runs.sweeps)
    seconds = sum(sweep.seconds for sweep in runs.sweeps)
    folders = [*(run.folder for run in runs.trainings), *(run.folder for run in runs.analyses)]
    known = [folder.seconds for folder in folders if folder.seconds is not None]
    least = "at least " if len(known) < len(folders) else ""
    count = swept + len(folders)
    return f"{count:,} training {'run' if count == 1 else 'runs'}, {least}{duration(seconds + sum(known))} in all"


def _machines(runs: Runs) -> str:
    machines = dict.fromkeys(_machine(folder.machine) for folder in runs.folders if folder.machine)
    packages = [", ".join(f"{name} {number}" for name, number in each.versions.items()) for each in runs.folders]
    days = sorted({folder.date for folder in runs.folders})
    when = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    where = "; ".join(machines) or f"not recorded; this page was made on {_machine(this_machine())}"
    versions = "; ".join(filter(None, dict.fromkeys(packages))) or "not recorded"
    return f"Runs of {when}. Machine: {where}. Page made on {today}. Versions: {versions}."


def _machine(machine: Mapping[str, Any]) -> str:
    return f"{machine.get('cores')} cores of {machine.get('processor')}, Python {machine.get('python')}"
