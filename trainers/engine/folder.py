"""The folder of a run: configuration, metrics, models, TensorBoard logs and status."""

import contextlib
import datetime
import hashlib
import logging
import pathlib
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trainers.engine.flags import Settings, stored_config
from trainers.results.folders import read_records
from trainers.results.layout import BOARD, CHECKPOINTS, CONFIG, FILES, FOLDERS, RECORDS, STATUS
from trainers.system.access import check_folder, check_unlocked, locked
from trainers.system.environment import git_revision, this_machine, versions
from trainers.system.errors import ConfigError, DataError
from trainers.system.files import UnreadableError, atomic_file, json_text, read_object, remove_leftovers

OPTIMIZER = ("learning_rate", "warmup_factor", "gradient_norm", "loss_scale", "skipped_updates")
# What the probes of a gradient analysis measure.
PROBED = ("update_", "moment_", "gradient_cv_")


def board_tag(name: str) -> str:
    """The tag of a value of the records.

    >>> [board_tag(name) for name in ("loss", "val_error", "learning_rate", "update_median")]
    ['train/loss', 'val/error', 'optimizer/learning_rate', 'optimizer/update_median']
    """
    if name.startswith("val_"):
        return f"val/{name.removeprefix('val_')}"
    group = "optimizer" if name in OPTIMIZER or name.startswith(PROBED) else "train"
    return f"{group}/{name}"


SHORT = 1000  # characters that fit into the existing status file without new disk space


class RunFolder:
    """The folder of one run. Only the chief writes."""

    def __init__(self, config: Settings, task: str, chief: bool = True) -> None:
        self.path = pathlib.Path(config.output_dir)
        self.config, self.task, self.chief = config, task, chief
        self.recorded = (0, 0)  # the number of records, and a checksum of their steps and losses
        self._board: Any = None
        check_folder(config.output_dir, to_write=chief)
        self._check_run()
        if chief:
            self._check_kinds()
            check_unlocked(self.path)

    @property
    def run(self) -> str:
        """Identifies the run in its files: a text that depends on the task and on the flags with which it began."""
        began = json_text({"task": self.task, **self.config.identity()}).encode()
        found: str = self._document().get("run") or hashlib.blake2b(began, digest_size=8).hexdigest()
        return found

    @contextlib.contextmanager
    def working(self, facts: Mapping[str, Any] | None = None) -> Iterator[None]:
        """All that a program needs to write into its folder: `locked`, `open` and `recording_status`."""
        with self.locked():
            self.open(facts=facts)
            with self.recording_status():
                yield

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the lock of the folder; a `ConfigError` if another process does. Changes no file of a run."""
        if not self.chief:
            yield
            return
        with locked(self.path):
            self._check_run()  # again: the folder may have become that of another run
            yield

    def open(self, data: str | None = None, facts: Mapping[str, Any] | None = None) -> None:
        """Writes the configuration; from here on the run exists.

        Args:
            data: The fingerprint of the run's data.
            facts: Facts that follow from the configuration, `resolved` in config.json.
        """
        if not self.chief:
            return
        self._remove_leftovers()
        began = {
            "task": self.task,
            "run": self.run,
            "versions": versions(),
            "git_revision": git_revision(),
            "machine": this_machine(),
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        # Flags that may change from one start to the next have the values of the last start.
        document = {**began, **self._document(), "config": self.config.plain()}
        document |= {name: value for name, value in (("data", data), ("resolved", facts)) if value is not None}
        text = json_text(document, indent=2) + "\n"
        path = self.path / CONFIG
        if not path.exists() or path.read_text() != text:
            self.write(CONFIG, text)
        self.status("running")

    def resolved(self) -> dict[str, Any]:
        """`resolved` in config.json; empty before the run exists."""
        return dict(self._document().get("resolved", {}))

    def check_data(self, data: str) -> None:
        """Raises a `ConfigError` if the run in this folder used other data, wherever they are stored."""
        if self._document().get("data", data) != data:
            raise self._other_run("whose run used other data")

    def status(self, text: str) -> None:
        self.write(STATUS, _one_line(text))
        if self._board is not None:
            self._board.flush()

    @contextlib.contextmanager
    def recording_status(self, ended: Callable[[str], None] = lambda _: None) -> Iterator[None]:
        """Writes to the status file how the code inside ended; an exception may have its own `status`.

        Args:
            ended: Called with the status after an exception.
        """
        try:
            yield
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                status = "stopped"
            else:
                status = f"{getattr(error, 'status', f'failed: {type(error).__name__}')}: {error}"
            self._status_of_failure(status)
            ended(status)
            raise
        self.status("done")

    def _status_of_failure(self, text: str) -> None:
        """Writes a status even if the disk is full: half-written files go first, or the old status is overwritten."""
        if not self.chief:
            return
        self._remove_leftovers()
        try:
            self.write(STATUS, _one_line(text))
        except OSError:
            with contextlib.suppress(OSError), (self.path / STATUS).open("r+b") as file:
                file.write(_one_line(text)[:SHORT].encode())
                file.truncate()
        with contextlib.suppress(Exception):  # the numbers are in metrics.jsonl too, and must not hide the error
            if self._board is not None:
                self._board.flush()

    def _remove_leftovers(self) -> None:
        """Removes what killed writes have left; in a folder that is not yet a run's, only that of config.json."""
        if not (self.path / CONFIG).exists():
            remove_leftovers(self.path, [f".{CONFIG}.*.tmp"])
            return
        for folder in (self.path, self.path / CHECKPOINTS):
            remove_leftovers(folder)

    def record(self, values: Mapping[str, Any]) -> None:
        """Appends a line to metrics.jsonl, and the same numbers to TensorBoard."""
        if not self.chief:
            return
        with (self.path / RECORDS).open("a") as file:
            file.write(self._line(values))
        self._show(values)

    def _line(self, values: Mapping[str, Any]) -> str:
        """A line of metrics.jsonl, which is counted."""
        number, total = self.recorded
        same_every_time = json_text([values["step"], values.get("loss")])
        self.recorded = (number + 1, zlib.crc32(same_every_time.encode(), total))
        return json_text(dict(values)) + "\n"

    def forget_after(self, step: int, recorded: Sequence[int] | None) -> None:
        """Drops the records of steps that a resumed run repeats, and a line that a kill cut short.

        TensorBoard's files are rewritten from the remaining records: they can only grow, and would show such steps
        twice.

        Args:
            step: The last step whose records are kept.
            recorded: `recorded` when the run was at this step; a warning tells if the file has changed since.
        """
        if not self.chief:
            return
        kept = [values for values in read_records(self.path) if values["step"] <= step]
        text = "".join(map(self._line, kept))
        if (self.path / RECORDS).exists():  # also if no line is whole: the next would be appended to what is left
            self.write(RECORDS, text)
        if recorded is not None and tuple(recorded) != self.recorded:
            rule = f"{self.path / RECORDS} must have the run's own {recorded[0]} records up to step {step}"
            logging.warning("%s: what is missing does not come back. Received: others, or %d", rule, len(kept))
        for events in (self.path / BOARD).glob("events.out.tfevents.*"):
            events.unlink()
        for values in kept:
            self._show(values)

    def check_model(self, name: str) -> None:
        """Raises a `DataError` if `name`.keras was cut or overwritten since the run saved it."""
        path = self.path / f"{name}.keras"
        if path.exists() and not zipfile.is_zipfile(path):
            rule = "A run needs the best model that it has saved: restore it, or remove it to go on without it"
            raise DataError(f"{rule}. Received: {path}, which is damaged")

    def save_model(self, model: Any, name: str) -> None:
        """Saves `name`.keras, whole or not at all: Keras' own save can be interrupted."""
        if not self.chief:
            return
        temporary = self.path / f".{name}.tmp.keras"
        try:
            model.save(temporary)
            temporary.replace(self.path / f"{name}.keras")
        finally:
            temporary.unlink(missing_ok=True)

    def write(self, name: str, text: str) -> None:
        """Writes a file of the folder, whole or not at all."""
        if self.chief:
            with atomic_file(self.path / name) as file:
                file.write(text.encode())

    def _show(self, values: Mapping[str, Any]) -> None:
        import tensorflow as tf  # takes seconds, and is not needed to read a folder

        if self._board is None:
            self._board = tf.summary.create_file_writer(str(self.path / BOARD))
        with self._board.as_default(step=values["step"]):
            for name, value in values.items():
                if name not in ("step", "epoch") and value is not None:
                    tf.summary.scalar(board_tag(name), value)

    def _document(self) -> dict[str, Any]:
        """The content of config.json; empty before the run exists."""
        path = self.path / CONFIG
        if not path.exists():
            return {}
        try:
            found = read_object(path)
            if not (isinstance(found.get("config"), dict) and isinstance(found.get("task"), str)):
                raise UnreadableError("not the config.json of a run")
            return found
        except UnreadableError as error:
            raise _damaged(path, error) from error

    def _check_run(self) -> None:
        """Refuses a folder that holds another run, or files of which it is unknown whose they are."""
        document = self._document()
        if document:
            self._check_identity(document)
        elif self.chief and (
            found := sorted(path.name for name in (*FOLDERS, *FILES) for path in self.path.glob(name))
        ):
            raise ConfigError(
                f"--output_dir must be new or hold a run with its {CONFIG}: restore {self.path / CONFIG}, or name "
                f"another folder. Received: {self.path} without it, but with {', '.join(found[:3])}"
            )

    def _check_identity(self, document: dict[str, Any]) -> None:
        try:
            stored = stored_config(type(self.config), document["config"])
        except ConfigError as error:
            raise _damaged(self.path / CONFIG, error) from error
        # A flag may belong to the identity of only one of them: the length of a run, with another decay.
        names = {"task", *self.config.identity(), *stored.identity()}
        if "data" not in document:  # only the location of the data is known
            names |= set(self.config.data_places())
        before = {**stored.plain(), "task": document["task"]}
        now = {**self.config.plain(), "task": self.task}
        for name in sorted(names):
            if not _is_same(before.get(name), now.get(name)):
                reason = self.config.reason(name) or stored.reason(name)
                difference = f"whose run has {name}={before.get(name)!r}, not {now.get(name)!r}"
                raise self._other_run(f"{difference}: {reason}" if reason else difference)

    def _other_run(self, difference: str) -> ConfigError:
        return ConfigError(f"--output_dir must be new or hold this run. Received: {self.path}, {difference}")

    def _check_kinds(self) -> None:
        """Finds out before a run, not when it wants to write its results, that a folder has the name of a file."""
        wrong = [(path, "folder") for pattern in FILES for path in self.path.glob(pattern) if path.is_dir()]
        wrong += [(path, "file") for name in FOLDERS for path in self.path.glob(name) if not path.is_dir()]
        for path, kind in wrong:
            rule = "--output_dir must be new or hold a run as it was written"
            raise ConfigError(f"{rule}. Received: {path}, now a {kind}")


def _is_same(before: Any, now: Any) -> bool:
    """Whether a value is that of the run. In results that were kept, places of data may be shortened to `.../mnist`."""
    if isinstance(before, str) and before.startswith("...") and isinstance(now, str):
        return f"/{now}".rstrip("/").endswith(before[3:])
    return bool(before == now)


def _damaged(path: pathlib.Path, error: Exception) -> ConfigError:
    return ConfigError(
        f"The {CONFIG} of --output_dir must be that of a run: restore it, or name another folder. "
        f"Received: {path} ({error})"
    )


def _one_line(text: str) -> str:
    return text.replace("\n", " ") + "\n"
