"""The sections of single runs, and of how everything was made."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trainers.reports.blocks import Block, Charts, Configs, Section, TableBlock, Text
from trainers.reports.curves import training_charts
from trainers.reports.folders import Folder
from trainers.reports.reading import Runs, Training
from trainers.reports.tables import plain_table
from trainers.reports.words import duration, without_places

# What differs between any two runs and says nothing about them.
_PLACES = ("output_dir",)


def training_section(number: int, run: Training) -> Section:
    config, name = run.folder.config, f"run-{number}"
    warmup = config.get("warmup") or "the default warmup"
    what = ", ".join(str(config[key]) for key in ("dataset", "model") if config.get(key))
    last = run.records[-1]
    blocks: list[Block] = [
        Text(
            f"{run.folder.task}: {what or 'data not known'}; {config.get('optimizer')} with {warmup}, learning rate "
            f"{config.get('learning_rate')}, β₂ = {config.get('beta_2')}, seed {config.get('seed')}; to update "
            f"{last.get('updates', last.get('step'))}."
        )
    ]
    if not run.folder.finished:
        blocks.append(Text(f"Not all of it: the run's status is: {run.folder.state}.", warns=True))
    blocks.append(Charts(name, training_charts(name, run)))
    if run.results:
        rows = [[key, value] for key, value in run.results.items() if isinstance(value, int | float | str)]
        blocks.append(TableBlock(plain_table(f"run_{number}", "What the run led to", ["result", "value"], rows)))
    return Section(name, f"Run: {run.folder.name}", blocks)


def making_section(runs: Runs) -> Section:
    """A row for each folder: what it is, how it ended, and what of its config is its own."""
    seconds = {sweep.folder.path: sweep.seconds for sweep in runs.sweeps}
    rows = [
        [
            folder.name,
            folder.task,
            folder.state,
            folder.date,
            _rounded(seconds.get(folder.path, folder.seconds)),
            (folder.git_revision or "")[:12],
            ", ".join(f"{key}={value}" for key, value in own_settings(folder, runs.folders).items()),
        ]
        for folder in runs.folders
    ]
    headings = ["folder", "task", "status", "begun", "seconds", "revision", "what differs"]
    return Section(
        "making",
        "How it was made",
        [
            TableBlock(plain_table("folders", "The folders that this page was made from", headings, rows)),
            Text(
                "Seconds are the sum over the runs of a sweep; of anything else, the time between its first and its "
                "last file. What differs is what other folders of the same task do not share."
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
        "status": folder.status,
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def shown_config(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: without_places(value) for key, value in config.items() if key not in _PLACES}


def total(runs: Runs) -> str:
    """How many runs there are, and how long they trained."""
    swept = sum(len(sweep.results) for sweep in runs.sweeps)
    seconds = sum(sweep.seconds for sweep in runs.sweeps)
    folders = [*(run.folder for run in runs.trainings), *(run.folder for run in runs.analyses)]
    seconds += sum(folder.seconds or 0.0 for folder in folders)
    count = swept + len(folders)
    return f"{count:,} training {'run' if count == 1 else 'runs'}, {duration(seconds)} in all"
