"""Runs the trials of a sweep, each in a folder of its own, and remembers their results."""

import os
import pathlib
import time
from collections.abc import Callable
from typing import Any

import keras_tuner
import tensorflow as tf
from keras_tuner.engine.base_tuner import BaseTuner
from keras_tuner.errors import FailedTrialError
from tensorboard.plugins.hparams import api as hparams

from trainers.engine.config import Config
from trainers.engine.errors import DivergedError
from trainers.engine.files import atomic_file
from trainers.engine.run import train
from trainers.engine.task import Task
from trainers.sweeps.cells import FIELDS, Cell
from trainers.sweeps.results import RESULT, TRIALS, Result, read_result
from trainers.sweeps.reuse import Benches
from trainers.sweeps.space import trial_config
from trainers.tasks import TASKS

EPOCHS = "tuner/epochs"  # where Hyperband says how long a trial may be


class SweepModel(keras_tuner.HyperModel):
    """What a trial is: its hyperparameters make a config, and the config is trained."""

    def __init__(self, settings: Any) -> None:
        super().__init__()
        self.settings, self.task = settings, TASKS[settings.task]
        self.folder = pathlib.Path(settings.output_dir) / TRIALS
        self.benches = Benches()

    def build(self, hp: keras_tuner.HyperParameters) -> Config:
        """The config of the run."""
        cell = Cell(*(hp.get(name) for name in FIELDS))
        epochs = {"epochs": hp.get(EPOCHS)} if EPOCHS in hp.values else {}
        name = "_".join([cell.name, *(f"epochs-{count}" for count in epochs.values())])
        return trial_config(self.settings, cell, str(self.folder / name), **epochs)

    def fit(self, hp: keras_tuner.HyperParameters, config: Config) -> Result:
        """The result of the run, which may have been there before."""
        folder = pathlib.Path(config.output_dir)
        if (folder / RESULT).exists():
            known = read_result(folder)
            if known.status != "failed" or not self.settings.retry_failed:
                return known
        values = {name: hp.get(name) for name in FIELDS}
        if EPOCHS in hp.values:
            values["epochs"] = config.epochs
        result = run_cell(self.task, config, self.benches, values)
        with atomic_file(folder / RESULT) as file:
            file.write(result.to_json().encode())
        return result


class SweepTuner(BaseTuner):
    """keras-tuner's loop around `SweepModel`.

    Its own files are written anew at every start: what has been done is known from the trials' results.
    """

    def __init__(
        self, settings: Any, oracle: keras_tuner.Oracle, finished: Callable[[Result], None] = lambda _: None
    ) -> None:
        self._finished = finished
        folder = pathlib.Path(settings.output_dir) / "tuner"
        name = os.environ.get("KERASTUNER_TUNER_ID", "alone")  # workers that share a folder must not share files
        super().__init__(oracle, SweepModel(settings), directory=str(folder), project_name=name, overwrite=True)
        self.oracle.verbose = 0

    def run_trial(self, trial: Any) -> dict[str, float]:
        hp = trial.hyperparameters
        result = self.hypermodel.fit(hp, self.hypermodel.build(hp))
        self._finished(result)
        if result.objective is None:
            raise FailedTrialError(f"{result.status}: {result.error}")
        return {self.oracle.objective.name: result.objective}


def run_cell(task: Task, config: Config, benches: Benches, values: dict[str, Any]) -> Result:
    """Trains, whatever comes of it; a run that was killed goes on where it was. `values` are its hyperparameters."""
    began = time.perf_counter()
    metrics: dict[str, Any] = {}
    status, error = "done", ""
    try:
        metrics = train(task, config, make_bench=benches)
    except DivergedError as diverged:
        status, error = "diverged", str(diverged)
    except Exception as failure:
        status, error = "failed", f"{type(failure).__name__}: {failure}"
    folder, seconds = pathlib.Path(config.output_dir), time.perf_counter() - began
    folder.mkdir(parents=True, exist_ok=True)  # a run that failed early may have none
    if status != "done":
        return Result(folder.name, values, status, None, {}, seconds, error)
    numbers = {name: value for name, value in metrics.items() if isinstance(value, float)}
    _write_board(folder, values)
    return Result.measured(folder.name, values, numbers[f"val_{task.objective}"], numbers, seconds)


def _write_board(folder: pathlib.Path, values: dict[str, Any]) -> None:
    """The trial's hyperparameters, for TensorBoard's HParams beside its curves."""
    with tf.summary.create_file_writer(str(folder / "tensorboard")).as_default():
        hparams.hparams(values, trial_id=folder.name)
