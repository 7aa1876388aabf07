"""Runs one trial in its folder: starts or resumes it, retries it or takes it over, and writes its result once."""

import errno
import json
import os
import pathlib
import time
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorboard.plugins.hparams import api as hparams

from trainers.engine.checkpoint import Checkpoints
from trainers.engine.config import Config
from trainers.engine.folder import board_tag
from trainers.engine.reuse import Setups
from trainers.engine.run import train
from trainers.engine.setup import intra_op_threads
from trainers.engine.task import Task
from trainers.results.layout import AGAIN, ATTEMPTS, BOARD, CHECKPOINTS, RESULT, TRIALS
from trainers.results.methods import Point
from trainers.results.trials import Result, newest_folder, read_result
from trainers.sweeps.preflight import check_cells
from trainers.sweeps.queue import Job, Outcome, Returned
from trainers.sweeps.space import trial_config
from trainers.system.access import LOCK, InUseError, check_unlocked
from trainers.system.environment import git_revision, this_machine, versions
from trainers.system.errors import DivergedError
from trainers.system.files import UnreadableError, atomic_file, read_object, remove_leftovers
from trainers.system.signals import StopRequested
from trainers.tasks import load_task

ATTEMPTS_AT_MOST = 3  # that ended with their process and got no further than the one before
# The errors of file systems without hard links.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)


class LostTrialError(Exception):
    """Another worker has taken the trial over."""


class Trials:
    """Runs the trials of a sweep, one after the other in one process."""

    def __init__(self, settings: Any) -> None:
        self.settings, self.task, self.setups = settings, load_task(settings.task), Setups()
        self.folder = pathlib.Path(settings.output_dir) / TRIALS

    def check(self, cells: Sequence[Point], results: Sequence[Result]) -> None:
        """Raises a `ConfigError` or `DataError` if there are cells that cannot be run."""
        check_cells(self.settings, self.task, cells, results, self.setups)

    def outcome(self, job: Job) -> Outcome:
        """Runs a trial and returns its result, or why there is none. Only a signal is an exception."""
        try:
            return self.run(job.cell.name, job.cell.values, job.take_over)
        except (InUseError, LostTrialError):
            return Returned.BUSY
        except Exception as error:  # such as a full disk; a worker that died of it would be started again and again
            return f"{type(error).__name__}: {error}"

    def run(self, name: str, values: dict[str, Any], take_over: bool = False) -> Result:
        """Returns the result of a trial, after running it if there is none. A trial that failed is tried again.

        With `take_over`, another worker had it, which may still come back: its folder gets another name, so that
        nothing that this worker still writes has an effect.

        Raises:
            InUseError: Another process is running it.
            LostTrialError: Another worker has taken it over in the meantime.
            OSError: The result cannot be written.
        """
        folder = newest_folder(self.folder, name)
        if (folder / RESULT).exists() and (known := read_result(folder)).status != "failed":
            return known
        if take_over:
            folder = _take_over(folder)
        check_unlocked(folder)
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder)
        (folder / RESULT).unlink(missing_ok=True)
        place = folder.stat().st_ino
        result = self._attempt(folder, values)
        if not folder.is_dir() or folder.stat().st_ino != place:
            raise LostTrialError(name)
        (folder / ATTEMPTS).unlink(missing_ok=True)
        return _write_once(folder, result)

    def _attempt(self, folder: pathlib.Path, values: dict[str, Any]) -> Result:
        """Runs the trial, or returns a failure if several attempts have ended their process."""
        progress = Checkpoints(folder / CHECKPOINTS).newest_header()
        step, before = progress.get("step", 0), progress.get("seconds", 0.0)
        count = _attempts(folder, step)
        if count >= ATTEMPTS_AT_MOST:
            error = f"ended its process {count} times"
            return Result(folder.name, values, "failed", None, {}, before, error, this_environment())
        with atomic_file(folder / ATTEMPTS) as file:
            file.write(json.dumps({"count": count + 1, "step": step}).encode())
        try:
            return run_cell(self.task, trial_config(self.settings, values, str(folder)), self.setups, values, before)
        except StopRequested:
            (folder / ATTEMPTS).unlink(missing_ok=True)  # not the fault of the trial
            raise


def this_environment() -> dict[str, Any]:
    """The environment of the trials that this process runs."""
    return {**versions(), **this_machine(), "git_revision": git_revision(), "threads": intra_op_threads()}


def _attempts(folder: pathlib.Path, step: int) -> int:
    """How many attempts from this step on have ended their process; 0 if unknown."""
    try:
        stored = read_object(folder / ATTEMPTS)
        return int(stored["count"]) if stored["step"] == step else 0
    except (UnreadableError, KeyError, TypeError, ValueError):
        return 0


def run_cell(task: Task, config: Config, setups: Setups, values: dict[str, Any], before: float = 0.0) -> Result:
    """Trains and returns the result, even of a failure. `before` are the seconds that earlier processes have taken."""
    began, results = time.perf_counter(), {}
    folder, objective = pathlib.Path(config.output_dir), f"val_{task.objective}"
    status, error = "done", ""
    try:
        results = train(task, config, make_setup=setups)
        _write_board(folder, values, objective)
    except InUseError:
        raise
    except DivergedError as diverged:
        status, error = "diverged", str(diverged)
    except Exception as failure:
        status, error = "failed", f"{type(failure).__name__}: {failure}"
    seconds, environment = before + time.perf_counter() - began, this_environment()
    if status != "done":
        return Result(folder.name, values, status, None, {}, seconds, error, environment)
    metrics = {name: value for name, value in results.items() if isinstance(value, float)}
    return Result.measured(folder.name, values, metrics[objective], metrics, seconds, environment)


def _take_over(folder: pathlib.Path) -> pathlib.Path:
    """Renames the folder of a trial, and leaves a file in its place so that nobody can create it again."""
    name, _, number = folder.name.partition(AGAIN)
    following = folder.with_name(f"{name}{AGAIN}{int(number or 1) + 1}")
    if folder.is_dir():
        folder.rename(following)
        (following / LOCK).unlink(missing_ok=True)  # a process that hangs holds it forever
    else:
        following.mkdir(parents=True)
    folder.touch()
    return following


def _write_once(folder: pathlib.Path, result: Result) -> Result:
    """Writes a result unless there already is one; returns the one on disk."""
    temporary = folder / f".{RESULT}.{os.getpid()}.tmp"
    try:
        with temporary.open("w") as file:
            file.write(result.to_json())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, folder / RESULT)
        except FileExistsError:
            return read_result(folder)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            os.replace(temporary, folder / RESULT)
    finally:
        temporary.unlink(missing_ok=True)
    return result


def _write_board(folder: pathlib.Path, values: dict[str, Any], objective: str) -> None:
    """Writes the hyperparameters and the objective of a trial for TensorBoard's HParams."""
    with tf.summary.create_file_writer(str(folder / BOARD)).as_default():
        metric = hparams.Metric(board_tag(objective), display_name=objective)
        hparams.hparams_config([hparams.HParam(name) for name in values], [metric])
        hparams.hparams(values, trial_id=folder.name)
