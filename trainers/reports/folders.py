"""Finds the folders of runs, of whatever kind."""

import dataclasses
import datetime
import itertools
import json
import os
import pathlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from trainers.engine.config import ConfigError, require
from trainers.sweeps.results import TRIALS

CONFIG, STATUS = "config.json", "status"
SWEEP_OF = "sweep of "
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
        """From the first file to the last, pauses included; None while there is no end."""
        status = self.path / STATUS
        if not status.exists() or self.status == "running":
            return None
        return max(0.0, status.stat().st_mtime - (self.path / CONFIG).stat().st_mtime)


def find_folders(roots: Iterable[str]) -> list[Folder]:
    """The folders with runs, at or below each root, every one once, in the order of their names."""
    roots = list(roots)
    require(roots, "RUNS must name at least one folder", "none")
    found: dict[pathlib.Path, Folder] = {}
    for root in roots:
        path = pathlib.Path(root)
        require(path.is_dir(), "RUNS must be folders of runs", root)
        below = list(_below(path))
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


def _below(root: pathlib.Path) -> Iterator[Folder]:
    for place, names, files in os.walk(root):
        path = pathlib.Path(place)
        document = _document(path / CONFIG) if CONFIG in files else None
        names[:] = sorted(name for name in names if document is None or name not in _INSIDE)
        if document is not None:
            yield _folder(path, path.resolve().name if path == root else str(path.relative_to(root)), document)


def _document(path: pathlib.Path) -> dict[str, Any] | None:
    """What a config.json says; None for one that no program here wrote."""
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"A config.json below RUNS must be readable JSON. Received: {path} ({error})") from error
    ours = isinstance(document, dict) and isinstance(document.get("config"), dict) and "task" in document
    return document if ours else None


def _folder(path: pathlib.Path, name: str, document: Mapping[str, Any]) -> Folder:
    status = path / STATUS
    return Folder(
        path,
        name,
        task=str(document["task"]),
        config=document["config"],
        versions=document.get("versions") or {},
        machine=document.get("machine") or {},
        git_revision=document.get("git_revision"),
        started=document.get("started"),
        status=status.read_text().strip() if status.exists() else "",
    )
