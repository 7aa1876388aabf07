"""A run from its first step to its last, or from wherever it was stopped."""

import bisect
import dataclasses
import functools
import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf
from tqdm import tqdm

from tfwarmup.applied import applied_rate
from trainers.engine.checkpoint import Checkpoints
from trainers.engine.config import Config, ConfigError, require
from trainers.engine.data import Feed, Source
from trainers.engine.devices import check_divisible, make_strategy, prepare_devices, worker_of
from trainers.engine.optimizers import make_optimizer
from trainers.engine.records import RunFolder
from trainers.engine.step import PATIENCE, Stepper
from trainers.engine.task import Task


class DivergedError(Exception):
    """The loss is not a number any more."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """How long a run is."""

    steps_per_epoch: int
    total_steps: int

    @classmethod
    def of(cls, config: Config, source: Source, feed: Feed) -> "Plan":
        steps = source.steps_per_epoch(feed)
        if steps == 0:
            raise ConfigError(
                f"--{config.batch_flag} must not exceed what there is to train on, {source.size} examples. "
                f"Received: {config.global_batch}"
            )
        return cls(steps, config.steps or steps * config.epochs)

    def segments(self, start: int, log_every: int, stops: Sequence[int] = ()) -> Iterator[tuple[int, int]]:
        """(first, last) steps between two records: at multiples of `log_every`, ends of epochs, and further stops."""
        while start < self.total_steps:
            end = min((start // log_every + 1) * log_every, self.total_steps, self.epoch_end(start))
            following = bisect.bisect_right(stops, start)
            end = min([end, *stops[following : following + 1]])
            yield start, end
            start = end

    def epoch_end(self, step: int) -> int:
        return (step // self.steps_per_epoch + 1) * self.steps_per_epoch

    def is_epoch_end(self, step: int) -> bool:
        return step % self.steps_per_epoch == 0 or step == self.total_steps

    def checkpoints(self, every: int) -> int:
        """How many checkpoints the run writes: one every so many steps, or every epoch, and one at its end."""
        return -(-self.total_steps // (every or self.steps_per_epoch))


def train(task: Task, config: Config, run_class: type["Run"] | None = None) -> dict[str, Any]:
    """Runs a task to its end and returns its results: the final validation metrics, and what the task concludes.

    Args:
        task: What to train.
        config: How.
        run_class: A `Run` that does more than train.

    Raises:
        ConfigError, DataError: before anything is written.
        DivergedError: the loss became NaN; the run's folder says so.
    """
    prepare_devices(config)
    strategy = make_strategy(config)
    check_divisible(config, strategy)
    folder = RunFolder(config, task.name, chief=worker_of(config)[1] == 0)
    run = (run_class or Run)(config, task, strategy, folder)
    task.check_folder(folder.path, run.data)
    folder.open()
    if folder.chief:
        task.fill_folder(folder.path, config, run.data)
    try:
        results = run.to_the_end()
    except DivergedError as error:
        folder.status(f"diverged: {error}")
        raise
    except KeyboardInterrupt:
        folder.status("stopped")
        raise
    except BaseException as error:
        folder.status(f"failed: {type(error).__name__}: {error}")
        raise
    folder.write_results(results)
    folder.status("done")
    return results


class Run:
    """The loop around the train step: records, validation, checkpoints, progress."""

    def __init__(self, config: Config, task: Task, strategy: tf.distribute.Strategy, folder: RunFolder) -> None:
        self.config, self.task, self.strategy, self.folder = config, task, strategy, folder
        self.data = task.load(config)
        self.plan = Plan.of(config, self.data.train, self._feed(0, training=True))
        checkpoints = self.plan.checkpoints(config.checkpoint_every)
        require(
            config.average <= checkpoints,
            f"--average must be at most the run's {checkpoints} checkpoints",
            config.average,
        )
        keras.utils.set_random_seed(config.seed)
        with strategy.scope():
            self.model = task.build(config, self.data)
            self.optimizer = make_optimizer(config, self.plan.steps_per_epoch, self.plan.total_steps)
            self.optimizer.build(self.model.trainable_variables)
            self.stepper = Stepper(config, task, self.model, self.optimizer, strategy)
        self.judge = task.judge(config, self.data, self.model)
        self.checkpoints = Checkpoints(folder.path / "checkpoints", config.average)
        self.variables = [*self.model.variables, *self.optimizer.variables]
        self.best: float | None = None
        self.final: dict[str, float] = {}

    def to_the_end(self) -> dict[str, Any]:
        start = self._resume()
        batches = iter(self._distributed(start, training=True))
        with self._progress(start) as progress:
            for first, last in self._segments(start):
                self._segment(batches, first, last, progress)
        self.folder.save_model(self.model, "last")
        if self.config.average > 1:
            self._average()
        return self.final | self.task.conclude(self.config, self.data, self.model, self.folder)

    def _segments(self, start: int) -> Iterator[tuple[int, int]]:
        return self.plan.segments(start, self.config.log_every)

    def _segment(self, batches: Any, first: int, last: int, progress: Any) -> None:
        began = time.perf_counter()
        loss, bad_in_a_row, weight = self.stepper.train(batches, tf.constant(last - first))
        loss = float(loss)
        speed = float(weight) / (time.perf_counter() - began)
        if int(bad_in_a_row) >= PATIENCE[self.config.precision]:
            raise DivergedError(f"the loss was not finite at step {last}")
        record = self._record(last, loss, speed)
        if self.plan.is_epoch_end(last) and self._validates_at(last):
            record |= self._validate()
        self.folder.record(record)
        progress.update(self._work(first, last))
        progress.set_postfix_str(f"loss {loss:.4g}, rate {record['learning_rate']:.3g}", refresh=False)
        every = self.config.checkpoint_every
        if last == self.plan.total_steps or (last % every == 0 if every else self.plan.is_epoch_end(last)):
            self._checkpoint(last)

    def _record(self, last: int, loss: float, speed: float) -> dict[str, Any]:
        updates, rate, omega = applied_rate(self.optimizer)
        return {
            "step": last,
            "epoch": last / self.plan.steps_per_epoch,
            "updates": updates,
            "loss": loss if math.isfinite(loss) else None,  # float16 may have skipped every step of the interval
            "learning_rate": rate,
            "omega": omega,
            f"{self.task.unit}_per_second": speed,
        }

    def _validates_at(self, step: int) -> bool:
        epoch = step // self.plan.steps_per_epoch
        return epoch % self.config.evaluate_every == 0 or step == self.plan.total_steps

    def _validate(self) -> dict[str, float]:
        batches = self.data.validation.evaluation_steps(self._feed(0, training=False))
        means = self.stepper.evaluate(iter(self._validation), tf.constant(batches))
        metrics = self.task.summarize({name: float(value) for name, value in means.items()}) | self.judge()
        self.final = {f"val_{name}": value for name, value in metrics.items()}
        objective = metrics[self.task.objective]
        better = self.best is None or (objective < self.best if self.task.direction == "min" else objective > self.best)
        if better and math.isfinite(objective):
            self.best = objective
            self.folder.save_model(self.model, "best")
        return self.final

    def _average(self) -> None:
        """Puts the mean of the last checkpoints into the model, which is the run's result from here on."""
        self.checkpoints.average(self.config.average, self.model.variables)
        self._validate()
        self.folder.save_model(self.model, "average")

    @functools.cached_property
    def _validation(self) -> Any:
        return self._distributed(0, training=False)  # made once: its graph takes longer than a pass over a small set

    def _checkpoint(self, step: int) -> None:
        if self.folder.chief:
            self.checkpoints.save(step, self.variables, {"best": self.best, "final": self.final})

    def _resume(self) -> int:
        header = self.checkpoints.restore(self.variables)
        step = header["step"] if header else 0
        if header:
            self.best, self.final = header["best"], header["final"]
        self.folder.forget_after(step)
        self.stepper.step.assign(step)
        return step

    def _distributed(self, start: int, training: bool) -> Any:
        source, feed = self.data.train if training else self.data.validation, self._feed(start, training)
        make = source.training if training else source.evaluation
        return self.strategy.distribute_datasets_from_function(lambda _: make(feed))

    def _feed(self, start: int, training: bool) -> Feed:
        count, worker = worker_of(self.config)
        replicas = self.strategy.num_replicas_in_sync // count
        # Validation has no micro-batches, and must fit into the same memory.
        parts = self.config.accumulate
        size, parts = (self.config.global_batch, parts) if training else (self.config.global_batch // parts, 1)
        return Feed(size, self.config.seed, start, count, worker, replicas, parts)

    def _progress(self, start: int) -> Any:
        shown = self.config.progress and self.folder.chief
        total, done = self._work(0, self.plan.total_steps), self._work(0, start)
        return tqdm(total=total, initial=done, unit="step", disable=not shown, desc=self.task.name)

    def _work(self, first: int, last: int) -> int:
        """What the progress bar counts between two steps."""
        return last - first
