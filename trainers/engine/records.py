"""What a run leaves behind: configuration, metrics, models, TensorBoard logs, and how it ended."""

import contextlib
import datetime
import functools
import importlib.metadata
import json
import pathlib
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from trainers.engine.checkpoint import atomic_file
from trainers.engine.config import ConfigError, Settings
from trainers.engine.machine import this_machine

PACKAGES = ("tensorflow", "keras", "numpy", "tensorflow-datasets", "keras-hub", "keras-tuner")


class RunFolder:
    """The folder of one run. Only the chief writes."""

    def __init__(self, config: Settings, task: str, chief: bool = True) -> None:
        self.path = pathlib.Path(config.output_dir)
        self.config, self.task, self.chief = config, task, chief
        self._board: Any = None
        self._check_owner()

    def open(self) -> None:
        """Writes the configuration; from here on the run exists."""
        if not self.chief:
            return
        self.path.mkdir(parents=True, exist_ok=True)
        document = {
            "task": self.task,
            "config": {**self.config.identity(), "output_dir": self.config.output_dir},
            "versions": _versions(),
            "git_revision": _git_revision(),
            "machine": this_machine(),
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        if not (self.path / "config.json").exists():
            self.write("config.json", json.dumps(document, indent=2) + "\n")
        self.status("running")

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
            file.write(json.dumps(values) + "\n")
        if self._board is None:
            self._board = tf.summary.create_file_writer(str(self.path / "tensorboard"))
        with self._board.as_default(step=values["step"]):
            for name, value in values.items():
                if name not in ("step", "epoch") and value is not None:
                    tf.summary.scalar(name, value)

    def forget_after(self, step: int) -> None:
        """Drops the records of steps that a resumed run takes again, and a line that a kill cut short."""
        path = self.path / "metrics.jsonl"
        if not (self.chief and path.exists()):
            return
        kept = []
        for line in path.read_text().splitlines():
            try:
                if json.loads(line)["step"] <= step:
                    kept.append(line + "\n")
            except (ValueError, KeyError):
                break
        self.write("metrics.jsonl", "".join(kept))

    def save_model(self, model: keras.Model, name: str) -> None:
        """Saves `name`.keras, whole or not at all: Keras' own save can be cut short."""
        if not self.chief:
            return
        temporary = self.path / f".{name}.tmp.keras"
        model.save(temporary)
        temporary.replace(self.path / f"{name}.keras")

    def write_results(self, results: Mapping[str, Any]) -> None:
        """Writes results.json: what the whole run led to."""
        self.write("results.json", json.dumps(results, indent=2) + "\n")

    def write(self, name: str, text: str) -> None:
        """Writes a file of the folder, whole or not at all."""
        if self.chief:
            with atomic_file(self.path / name) as file:
                file.write(text.encode())

    def _check_owner(self) -> None:
        stored = self.path / "config.json"
        if not stored.exists():
            return
        document = json.loads(stored.read_text())
        theirs, ours = {**document["config"], "task": document["task"]}, {**self.config.identity(), "task": self.task}
        differing = sorted(name for name in ours if theirs.get(name) != ours[name])
        if differing:
            name = differing[0]
            raise ConfigError(
                "--output_dir must be new or hold this very run. Received: "
                f"{self.path}, whose run has {name}={theirs.get(name)!r}, not {ours[name]!r}"
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
