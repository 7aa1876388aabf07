"""Finds the folders of runs, and reads what a run has recorded, also one that still runs. Needs no TensorFlow."""

import csv
import dataclasses
import itertools
import json
import os
import pathlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from trainers.results.layout import ANALYSIS_TABLE, BOARD, CHECKPOINTS, CONFIG, RECORDS, STATUS, TRIALS, TUNER
from trainers.system.errors import ConfigError, require
from trainers.system.files import UnreadableError, read_bytes, read_json, read_text

SWEEP_OF = "sweep of "
SHORTEST = 0.1  # seconds; the files in docs/results were copied together, so that their times say nothing about a run
# What else a config.json has; a value of another kind is not from this project.
RECORDED = {"versions": dict, "machine": dict, "git_revision": str, "started": str, "resolved": dict}
# Folders inside a run that hold no further runs: a sweep's trials belong to the sweep.
_INSIDE = (TRIALS, TUNER, CHECKPOINTS, BOARD)


@dataclasses.dataclass(frozen=True)
class Folder:
    """What every run records about itself. `name` is its path relative to the given root."""

    path: pathlib.Path
    name: str
    task: str
    config: Mapping[str, Any]
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    machine: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    git_revision: str | None = None
    started: str | None = None
    status: str = ""
    resolved: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def is_sweep(self) -> bool:
        return self.task.startswith(SWEEP_OF)

    @property
    def state(self) -> str:
        """How the run ended, in words; a killed run could not record its end."""
        if not self.status:
            return "not known"
        return "running, or killed before its end" if self.status == "running" else self.status

    @property
    def finished(self) -> bool:
        return self.status == "done"

    @property
    def date(self) -> str:
        """The day on which the run began."""
        return self.started[:10] if self.started else "not known"

    @property
    def seconds(self) -> float | None:
        """The time from the first file to the last, including pauses; None if unknown."""
        status = self.path / STATUS
        if not status.exists() or self.status == "running":
            return None
        seconds = status.stat().st_mtime - (self.path / CONFIG).stat().st_mtime
        return seconds if seconds >= SHORTEST else None


def find_folders(roots: Iterable[str], problems: list[str] | None = None) -> list[Folder]:
    """Finds the folders with runs at or below each root, each once, in the order of their names.

    Files that cannot be read are added to `problems`.
    """
    problems = [] if problems is None else problems
    roots = list(roots)
    require(roots, "RUNS must name at least one folder", "none")
    found: dict[pathlib.Path, Folder] = {}
    for root in roots:
        path = pathlib.Path(root)
        require(path.is_dir(), "RUNS must be folders of runs", root)
        below = list(_below(path, problems))
        if problems and not below:
            raise ConfigError(f"A config.json below RUNS must be readable JSON. Received: {problems[0]}")
        require(below, "RUNS must be folders with runs in or below them, each with its config.json", root)
        for folder in below:
            if folder.path.resolve() not in found:
                names = {other.name for other in found.values()}
                found[folder.path.resolve()] = dataclasses.replace(folder, name=_unused_name(folder.name, path, names))
    return list(found.values())


def _unused_name(name: str, root: pathlib.Path, taken: Collection[str]) -> str:
    """A name that no other folder has: two roots may contain folders of the same name."""
    longer = f"{root.resolve().name}/{name}"
    numbered = (f"{longer} ({number})" for number in itertools.count(2))
    return next(each for each in itertools.chain([name, longer], numbered) if each not in taken)


def _below(root: pathlib.Path, problems: list[str]) -> Iterator[Folder]:
    for place, names, files in os.walk(root):
        path = pathlib.Path(place)
        name = path.resolve().name if path == root else str(path.relative_to(root))
        folder = _folder(path, name, problems) if CONFIG in files else None
        names[:] = sorted(name for name in names if folder is None or name not in _INSIDE)
        if folder is not None:
            yield folder


def _folder(path: pathlib.Path, name: str, problems: list[str]) -> Folder | None:
    """Reads the files of a run; None if its config.json is not from this project."""
    config, status = path / CONFIG, path / STATUS
    try:
        document = read_json(config)
    except UnreadableError as error:
        problems.append(f"{config} ({error})")
        return None
    if not isinstance(document, dict) or not isinstance(document.get("config"), dict) or "task" not in document:
        return None
    found = {key: document[key] for key, kind in RECORDED.items() if isinstance(document.get(key), kind)}
    try:
        found["status"] = read_text(status).strip() if status.exists() else ""
    except UnreadableError as error:
        problems.append(f"{status} ({error})")
    return Folder(path, name, str(document["task"]), document["config"], **found)


def read_records(folder: pathlib.Path, problems: list[str] | None = None) -> list[dict[str, Any]]:
    """The records in metrics.jsonl, without a last line that is cut short.

    Damaged lines are left out too, and reported in `problems`.
    """
    path = folder / RECORDS
    lines = read_bytes(path).split(b"\n") if path.exists() else [b""]
    records = [_parsed_record(line) for line in lines]
    damaged = [number for number, record in enumerate(records[:-1], 1) if record is None]
    if damaged and problems is not None:
        problems.append(f"{path}: line {damaged[0]} is not a record ({len(damaged)} of {len(lines) - 1} lines)")
    return [record for record in records if record is not None]


def _parsed_record(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("step"), int) else None


# Columns of equal length: t, and the statistics at t.
Series = Mapping[str, Sequence[float]]


def read_series(folder: pathlib.Path, problems: list[str] | None = None) -> Series:
    """The measurements in the records of a gradient analysis; empty if there are none yet."""
    measured = [record for record in read_records(folder, problems) if "moment_correlation" in record]
    if not measured:
        kept = read_columns(folder / ANALYSIS_TABLE)  # to nine digits
        return {**kept, "t": [int(t) for t in kept["t"]]} if kept else {}
    names = [name for name in measured[0] if name in _measured_names()]
    return {"t": [record["updates"] for record in measured]} | {
        name: [float("nan") if record[name] is None else record[name] for record in measured] for name in names
    }


def _measured_names() -> list[str]:
    from tfwarmup.analysis.simulation import QUANTILES  # takes seconds, and is not needed to read other runs

    return [*(f"{name}_{place}" for name in ("gradient_cv", "update") for place in QUANTILES), "moment_correlation"]


def read_columns(path: pathlib.Path) -> Series:
    """The columns of a CSV of numbers; empty if the file is missing or has no rows."""
    rows = list(csv.DictReader(read_text(path).splitlines())) if path.exists() else []
    names = list(rows[0]) if rows else []
    return {name: [float(row[name] if row[name] != "" else "nan") for row in rows] for name in names}
