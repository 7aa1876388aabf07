"""Finds the folders of runs, of whatever kind."""

import dataclasses
import datetime
import itertools
import os
import pathlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from trainers.engine.files import UnreadableError, read_json, read_text
from trainers.engine.flags import ConfigError, require
from trainers.sweeps.results import TRIALS

CONFIG, STATUS = "config.json", "status"
SWEEP_OF = "sweep of "
SHORTEST = 0.1  # seconds; the files of docs/results were copied together and do not tell how long a run took
# What a run keeps beside its records; a sweep's trials belong to the sweep.
_INSIDE = (TRIALS, "tuner", "checkpoints", "tensorboard")


@dataclasses.dataclass(frozen=True)
class Folder:
    """What every run tells of itself. `name` is what to call it: where it lies below the folder that was named."""

    path: pathlib.Path
    name: str
    task: str
    config: Mapping[str, Any]
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    machine: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    git_revision: str | None = None
    started: str | None = None
    status: str = ""

    @property
    def state(self) -> str:
        """How it ended, in words; a run that was killed could not say so."""
        if not self.status:
            return "not known"
        return "running, or killed before its end" if self.status == "running" else self.status

    @property
    def finished(self) -> bool:
        return self.status == "done"

    @property
    def date(self) -> str:
        """The day on which it began; of older runs, whose config does not say, that of the file."""
        if self.started:
            return self.started[:10]
        moment = (self.path / CONFIG).stat().st_mtime
        return datetime.datetime.fromtimestamp(moment, datetime.UTC).date().isoformat()

    @property
    def seconds(self) -> float | None:
        """From the first file to the last, pauses included; None if that is not known."""
        status = self.path / STATUS
        if not status.exists() or self.status == "running":
            return None
        seconds = status.stat().st_mtime - (self.path / CONFIG).stat().st_mtime
        return seconds if seconds >= SHORTEST else None


def find_folders(roots: Iterable[str], problems: list[str] | None = None) -> list[Folder]:
    """The folders with runs, at or below each root, every one once, in the order of their names.

    `problems` is told of files that cannot be read.
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
        require(below, "RUNS must be folders with runs in or below them: a config.json that a program here wrote", root)
        for folder in below:
            if folder.path.resolve() not in found:
                names = {other.name for other in found.values()}
                found[folder.path.resolve()] = dataclasses.replace(folder, name=_free(folder.name, path, names))
    return list(found.values())


def _free(name: str, root: pathlib.Path, taken: Collection[str]) -> str:
    """A name that no other folder has: two roots may have a folder of the same name each."""
    longer = f"{root.resolve().name}/{name}"
    numbered = (f"{longer} ({number})" for number in itertools.count(2))
    return next(each for each in itertools.chain([name, longer], numbered) if each not in taken)


def _below(root: pathlib.Path, problems: list[str]) -> Iterator[Folder]:
    for place, names, files in os.walk(root):
        path = pathlib.Path(place)
        document = _document(path / CONFIG, problems) if CONFIG in files else None
        names[:] = sorted(name for name in names if document is None or name not in _INSIDE)
        if document is not None:
            name = path.resolve().name if path == root else str(path.relative_to(root))
            yield _folder(path, name, document, problems)


def _document(path: pathlib.Path, problems: list[str]) -> dict[str, Any] | None:
    """What a config.json says; None for one that no program here wrote."""
    try:
        document = read_json(path)
    except UnreadableError as error:
        problems.append(f"{path} ({error})")
        return None
    ours = isinstance(document, dict) and isinstance(document.get("config"), dict) and "task" in document
    return document if ours else None


def _folder(path: pathlib.Path, name: str, document: Mapping[str, Any], problems: list[str]) -> Folder:
    return Folder(
        path,
        name,
        task=str(document["task"]),
        config=document["config"],
        versions=_of_type(document.get("versions"), dict) or {},
        machine=_of_type(document.get("machine"), dict) or {},
        git_revision=_of_type(document.get("git_revision"), str),
        started=_of_type(document.get("started"), str),
        status=_status(path / STATUS, problems),
    )


def _of_type(value: Any, kind: type[Any]) -> Any:
    return value if isinstance(value, kind) else None


def _status(path: pathlib.Path, problems: list[str]) -> str:
    try:
        return read_text(path).strip() if path.exists() else ""
    except UnreadableError as error:
        problems.append(f"{path} ({error})")
        return ""
