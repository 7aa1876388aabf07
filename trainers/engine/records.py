"""What a run leaves behind: configuration, metrics, models, TensorBoard logs, and how it ended."""

import contextlib
import datetime
import functools
import importlib.metadata
import json
import math
import pathlib
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from trainers.engine.config import ConfigError, Settings, stored_config
from trainers.engine.files import atomic_file, json_text, remove_leftovers
from trainers.engine.lock import check_unlocked, locked
from trainers.engine.machine import this_machine
from trainers.engine.reading import read_records

PACKAGES = ("tensorflow", "keras", "numpy", "tensorflow-datasets", "keras-hub", "keras-tuner")


class RunFolder:
    """The folder of one run. Only the chief writes."""

    def __init__(self, config: Settings, task: str, chief: bool = True) -> None:
        self.path = pathlib.Path(config.output_dir)
        self.config, self.task, self.chief = config, task, chief
        self._board: Any = None
        self._check_owner()
        if chief:
            check_unlocked(self.path)

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """All that a program needs that writes into its folder: `locked`, `open` and `telling_the_end`."""
        with self.locked():
            self.open()
            with self.telling_the_end():
                yield

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Inside, no other process writes here; a `ConfigError` if one does. Changes nothing that a run has written."""
        if not self.chief:
            yield
            return
        with locked(self.path):
            self._check_owner()  # again: the folder may have become that of another run
            yield

    def open(self, data: str | None = None, facts: Mapping[str, Any] | None = None) -> None:
        """Writes the configuration; from here on the run exists.

        Args:
            data: What tells the run's data from any other.
            facts: What follows from the configuration, `resolved` in config.json.
        """
        if not self.chief:
            return
        for folder in (self.path, self.path / "checkpoints"):
            remove_leftovers(folder)
        began = {
            "task": self.task,
            "versions": _versions(),
            "git_revision": _git_revision(),
            "machine": this_machine(),
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        # What may change from one start to the next is what the last one had.
        document = {**began, **self._document(), "config": self.config.plain()}
        document |= {name: value for name, value in (("data", data), ("resolved", facts)) if value is not None}
        text = json_text(document, indent=2) + "\n"
        path = self.path / "config.json"
        if not path.exists() or path.read_text() != text:
            self.write("config.json", text)
        self.status("running")

    def resolved(self) -> dict[str, Any]:
        """What config.json says that follows from the configuration; nothing before the run exists."""
        found: dict[str, Any] = self._document().get("resolved", {})
        return found

    def check_data(self, data: str) -> None:
        """Raises a `ConfigError` if the run in this folder had other data, wherever they are."""
        theirs = self._document().get("data", data)
        if theirs != data:
            raise ConfigError(
                "--output_dir must be new or hold this very run. Received: "
                f"{self.path}, whose run had other data than what is given now"
            )

    def status(self, text: str) -> None:
        self.write("status", text.replace("\n", " ") + "\n")
        if self._board is not None:
            self._board.flush()

    @contextlib.contextmanager
    def telling_the_end(self) -> Iterator[None]:
        """Whatever is done inside, the status says how it ended; an error may name a status of its own."""
        try:
            yield
        except KeyboardInterrupt:
            self.status("stopped")
            raise
        except BaseException as error:
            self.status(f"{getattr(error, 'status', f'failed: {type(error).__name__}')}: {error}")
            raise
        self.status("done")

    def record(self, values: Mapping[str, Any]) -> None:
        """Appends a line to metrics.jsonl, and the same numbers to TensorBoard."""
        if not self.chief:
            return
        with (self.path / "metrics.jsonl").open("a") as file:
            file.write(json_text(dict(values)) + "\n")
        self._show(values)

    def forget_after(self, step: int) -> None:
        """Drops the records of steps that a resumed run takes again, and a line that a kill cut short.

        TensorBoard's files are written anew from what is left: they can only grow, and would show such steps twice.
        """
        path = self.path / "metrics.jsonl"
        if not (self.chief and path.exists()):
            return
        kept = [values for values in read_records(self.path) if values.get("step", math.inf) <= step]
        self.write("metrics.jsonl", "".join(json_text(values) + "\n" for values in kept))
        for events in (self.path / "tensorboard").glob("events.out.tfevents.*"):
            events.unlink()
        for values in kept:
            self._show(values)

    def save_model(self, model: keras.Model, name: str) -> None:
        """Saves `name`.keras, whole or not at all: Keras' own save can be cut short."""
        if not self.chief:
            return
        temporary = self.path / f".{name}.tmp.keras"
        try:
            model.save(temporary)
            temporary.replace(self.path / f"{name}.keras")
        finally:
            temporary.unlink(missing_ok=True)

    def write_results(self, results: Mapping[str, Any]) -> None:
        """Writes results.json: what the whole run led to."""
        self.write("results.json", json_text(dict(results), indent=2) + "\n")

    def write(self, name: str, text: str) -> None:
        """Writes a file of the folder, whole or not at all."""
        if self.chief:
            with atomic_file(self.path / name) as file:
                file.write(text.encode())

    def _show(self, values: Mapping[str, Any]) -> None:
        if self._board is None:
            self._board = tf.summary.create_file_writer(str(self.path / "tensorboard"))
        with self._board.as_default(step=values["step"]):
            for name, value in values.items():
                if name not in ("step", "epoch") and value is not None:
                    tf.summary.scalar(name, value)

    def _document(self) -> dict[str, Any]:
        stored = self.path / "config.json"
        found: dict[str, Any] = json.loads(stored.read_text()) if stored.exists() else {}
        return found

    def _check_owner(self) -> None:
        document = self._document()
        if not document:
            return
        stored = stored_config(type(self.config), document["config"])
        # What is no identity for one may be one for the other: the length of a run, with another decay.
        names = {"task", *self.config.identity(), *stored.identity()}
        if "data" not in document:  # not known what they were, only where
            names |= set(self.config.data_places())
        before = {**stored.plain(), "task": document["task"]}
        now = {**self.config.plain(), "task": self.task}
        differing = sorted(name for name in names if before.get(name) != now.get(name))
        if differing:
            name = differing[0]
            reason = self.config.reason(name) or stored.reason(name)
            raise ConfigError(
                "--output_dir must be new or hold this very run. Received: "
                f"{self.path}, whose run has {name}={before.get(name)!r}, not {now.get(name)!r}"
                + (f": {reason}" if reason else "")
            )


@functools.cache
def _versions() -> dict[str, str]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


@functools.cache
def _git_revision() -> str | None:
    command = ["git", "-C", str(pathlib.Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
