"""What a run measures: metrics on whole data sets, its speed and wall time, divergence, a profile."""

import contextlib
import dataclasses
import math
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from tfwarmup.compat import updates_made
from trainers.engine.checkpoint import load_weights, model_file
from trainers.engine.config import Config
from trainers.engine.data import Source
from trainers.engine.flags import read_config, stored_config
from trainers.engine.setup import Setup
from trainers.engine.step import PATIENCE
from trainers.engine.task import Task
from trainers.engine.workers import Team
from trainers.results.layout import CONFIG
from trainers.system.errors import ConfigError, DivergedError
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
        iterator, left, pace = iter(batches), self.setup.evaluation_steps(source), Pace(self.team)
        rows: list[Any] = []
        while left:
            left -= pace.take(lambda count: rows.extend(self.stepper.evaluate(iterator, count).numpy()), left)[0]
        sums: Any = sum(rows)  # one by one, so that no bit depends on where calls end
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


TRY = "try a smaller --learning_rate, a longer warmup or --global_clipnorm"
TRY_HALF = "--precision=mixed_bfloat16 or float32, and look for infinities in the data"


def check_steps(config: Config, optimizer: Any, step: int, bad_in_a_row: int) -> None:
    """Raises a `DivergedError` after too many bad steps in a row, also across records."""
    if bad_in_a_row < PATIENCE[config.precision]:
        return
    if config.precision != "mixed_float16":
        raise DivergedError(f"the loss was not finite at step {step - bad_in_a_row + 1}; {TRY}")
    raise DivergedError(f"no update since step {step - bad_in_a_row} of {step}{_half(optimizer)}")


def check_result(config: Config, optimizer: Any, final: Mapping[str, Any]) -> None:
    """Raises a `DivergedError` at the end of a run without an update, or without a finite loss."""
    if updates_made(optimizer) == 0:
        raise DivergedError(f"no update in the whole run{_half(optimizer)}")
    loss = final.get("val_loss")
    if loss is not None and not math.isfinite(loss):
        raise DivergedError(f"the loss was not finite in the last validation; {TRY}")


def _half(optimizer: Any) -> str:
    """The part of a message about the loss scale; only float16 skips updates."""
    scale = float(optimizer.dynamic_scale.numpy())
    return f": losses or gradients are not finite, at a loss scale of {scale:g} now; {TRY}, {TRY_HALF}"


SECONDS = 1.0  # per call


class Pace:
    """Chooses the number of steps per call from the time that steps take."""

    def __init__(self, team: Team) -> None:
        self._team, self._steps = team, 1  # nothing is known yet

    def take(self, call: Callable[[Any], Any], left: int) -> tuple[int, float]:
        """Calls a function with a number of steps, at most `left`; returns the number, and the seconds that it took."""
        count, began = self._team.agreed_steps(min(self._steps, left)), time.perf_counter()
        call(tf.constant(count))
        seconds = time.perf_counter() - began
        self._steps = max(1, int(count * SECONDS / max(seconds, 1e-6)))
        return count, seconds


class Speed:
    """Examples per second between two records. The first step of a process, which compiles, is left out."""

    def __init__(self) -> None:
        self._first = True
        self.restart()

    def restart(self) -> None:
        self._weight, self._seconds = 0.0, 0.0

    def took(self, weight: float, seconds: float) -> None:
        if not self._first:
            self._weight, self._seconds = self._weight + weight, self._seconds + seconds
        self._first = False

    @property
    def per_second(self) -> float | None:
        """`None` if there was only a first step."""
        return self._weight / self._seconds if self._seconds else None


class Clock:
    """The wall time of a run, without pauses between its processes, and when the next checkpoint is due."""

    def __init__(self, checkpoint_minutes: float, seconds: float) -> None:
        """Starts the clock of a run that has already taken `seconds`."""
        self._interval, self._before = 60 * checkpoint_minutes, seconds
        self._began = self._saved = time.monotonic()

    @property
    def seconds(self) -> float:
        return self._before + time.monotonic() - self._began

    def saved(self) -> None:
        self._saved = time.monotonic()

    @property
    def is_checkpoint_due(self) -> bool:
        return bool(self._interval) and time.monotonic() - self._saved >= self._interval


class Profiler:
    """Profiles a run between two steps; `at` must be called at least at these."""

    def __init__(self, folder: pathlib.Path, steps: tuple[int, ...], chief: bool) -> None:
        self.folder, self.steps = folder, steps if chief else ()
        self._running = False

    def at(self, step: int) -> None:
        if not self.steps:
            return
        first, last = self.steps
        if not self._running and first <= step < last:
            tf.profiler.experimental.start(str(self.folder))
            self._running = True
        elif self._running and step >= last:
            self.close()

    def close(self) -> None:
        """Writes the profile, also of a run that ends early."""
        if self._running:
            tf.profiler.experimental.stop()
            self._running = False
