"""Evaluates models on whole data sets, with the weights that a run keeps."""

import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from trainers.engine.checkpoint import load_weights, model_file
from trainers.engine.config import Config
from trainers.engine.data import Source
from trainers.engine.flags import read_config, stored_config
from trainers.engine.monitor import Pace
from trainers.engine.setup import Setup
from trainers.engine.task import Task
from trainers.results.layout import CONFIG
from trainers.system.errors import ConfigError
from trainers.system.private import averages_of


class Evaluator:
    """Evaluates the model of a setup, together with all other workers."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.stepper, self.task, self.team = setup, setup.stepper, setup.task, setup.team

    def validate(self) -> dict[str, float]:
        """The metrics of the validation data, including those that are not means over examples."""
        return self._means(self.setup.validation, self.setup.data.validation) | self.setup.extra_validation()

    def measure(self, source: Source) -> dict[str, float]:
        """The metrics of other data, only those that are means over examples."""
        return self._means(self.setup.evaluation(source), source)

    def _means(self, batches: Any, source: Source) -> dict[str, float]:
        iterator, left, sums = iter(batches), self.setup.evaluation_steps(source), np.zeros(1)
        pace = Pace()
        while left:
            count, began = self.team.agreed_steps(pace.steps(left)), time.perf_counter()
            for batch in self.stepper.evaluate(iterator, tf.constant(count)).numpy():
                sums = sums + batch  # batch by batch, so that the sum does not depend on where calls end
            pace.took(count, time.perf_counter() - began)
            left -= count
        values = dict(zip(self.stepper.measured, sums.tolist(), strict=True))
        return self.task.summarize(
            {name: value / values["weight"] for name, value in values.items() if name != "weight"}
        )


def evaluate(task: Task, config: Config) -> dict[str, float]:
    """The metrics of a saved model on the validation data and on the data of a run's final results. Writes nothing."""
    flag = "--evaluate_only without --init_from needs a model in --output_dir, which"
    place, flag = (config.output_dir, flag) if config.init_from is None else (config.init_from, "--init_from")
    path = model_file(place, flag)  # before anything is loaded
    if config.init_from is None:
        _check_flags(config)
    setup = Setup(config, task)
    load_weights(setup.model, path, flag)
    evaluator = Evaluator(setup)
    metrics = {f"val_{name}": value for name, value in evaluator.validate().items()}
    for prefix, source in task.final_sources(config, setup.data).items():
        metrics |= {f"{prefix}_{name}": value for name, value in evaluator.measure(source).items()}
    return metrics


def _check_flags(config: Config) -> None:
    """Raises a `ConfigError` if the data or the model differ from those of the run in --output_dir.

    The flags that all tasks share are about training, and do not change the metrics of a trained model.
    """
    path = pathlib.Path(config.output_dir) / CONFIG
    if not path.exists():
        return
    before, now = stored_config(type(config), read_config(path)).identity(), config.identity()
    general = {config.batch_flag, *(field.name for field in dataclasses.fields(Config))}
    for name in now:
        if name not in general and now[name] != before.get(name):
            raise ConfigError(
                f"--evaluate_only must have the data and model flags of the run in --output_dir: "
                f"--config={path} has them all, and --init_from takes a model with any flags. "
                f"Received: {name}={now[name]!r}, not {before.get(name)!r}"
            )


@contextlib.contextmanager
def averaged_weights(setup: Setup) -> Iterator[None]:
    """Inside, the model has the moving averages of its weights, if the run keeps them."""
    if setup.config.ema is None:
        yield
        return
    pairs = list(zip(setup.model.trainable_variables, averages_of(setup.optimizer), strict=True))
    kept = [variable.numpy() for variable, _ in pairs]
    try:
        for variable, average in pairs:
            variable.assign(average.numpy())
        yield
    finally:
        for (variable, _), value in zip(pairs, kept, strict=True):
            variable.assign(value)
