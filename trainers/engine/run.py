"""A run from its first step to its last, or from wherever it was stopped."""

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tqdm import tqdm

from tfwarmup.analysis.applied import applied_rate
from tfwarmup.compat import updates_made
from trainers.engine.bench import Bench
from trainers.engine.checkpoint import Checkpoints
from trainers.engine.config import Config
from trainers.engine.devices import worker_of
from trainers.engine.errors import DivergedError
from trainers.engine.records import RunFolder
from trainers.engine.step import PATIENCE
from trainers.engine.task import Task


def train(
    task: Task,
    config: Config,
    run_class: type["Run"] | None = None,
    make_bench: Callable[[Config, Task], Bench] = Bench,
) -> dict[str, Any]:
    """Runs a task to its end and returns its results: the final validation metrics, and what the task concludes.

    Args:
        task: What to train.
        config: How.
        run_class: A `Run` that does more than train.
        make_bench: Returns what to train with, at its beginning; not necessarily new.

    Raises:
        ConfigError, DataError: before anything is written.
        DivergedError: the loss became NaN; the run's folder says so.
    """
    folder = RunFolder(config, task.name, chief=worker_of(config)[1] == 0)
    run = (run_class or Run)(config, make_bench(config, task), folder)
    task.check_folder(folder.path, run.data)
    folder.open()
    if folder.chief:
        task.fill_folder(folder.path, config, run.data)
    with folder.telling_the_end():
        results = run.to_the_end()
        folder.write_results(results)
    return results


class Run:
    """The loop around the train step: records, validation, checkpoints, progress."""

    def __init__(self, config: Config, bench: Bench, folder: RunFolder) -> None:
        self.config, self.bench, self.folder = config, bench, folder
        self.task, self.data, self.plan, self.model = bench.task, bench.data, bench.plan, bench.model
        self.optimizer, self.stepper = bench.optimizer, bench.stepper
        self.checkpoints = Checkpoints(folder.path / "checkpoints", config.average)
        self.variables = [*self.model.variables, *self.optimizer.variables]
        self.best: float | None = None
        self.final: dict[str, float] = {}

    def to_the_end(self) -> dict[str, Any]:
        start = self._resume()
        batches = iter(self.bench.training(start))
        with self._progress(start) as progress:
            for first, last in self._segments(start):
                self._segment(batches, first, last, progress)
        self._save_model("last")
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
        updates, rate, factor = applied_rate(self.bench.described, updates_made(self.optimizer))
        return {
            "step": last,
            "epoch": last / self.plan.steps_per_epoch,
            "updates": updates,
            "loss": loss if math.isfinite(loss) else None,  # float16 may have skipped every step of the interval
            "learning_rate": rate,
            "warmup_factor": factor,
            f"{self.task.unit}_per_second": speed,
        }

    def _validates_at(self, step: int) -> bool:
        epoch = step // self.plan.steps_per_epoch
        return epoch % self.config.evaluate_every == 0 or step == self.plan.total_steps

    def _validate(self) -> dict[str, float]:
        means = self.stepper.evaluate(iter(self.bench.validation), tf.constant(self.bench.validation_steps))
        metrics = self.task.summarize({name: float(value) for name, value in means.items()}) | self.bench.judge()
        self.final = {f"val_{name}": value for name, value in metrics.items()}
        objective = metrics[self.task.objective]
        better = self.best is None or (objective < self.best if self.task.direction == "min" else objective > self.best)
        if better and math.isfinite(objective):
            self.best = objective
            self._save_model("best")
        return self.final

    def _average(self) -> None:
        """Puts the mean of the last checkpoints into the model, which is the run's result from here on."""
        self.checkpoints.average(self.config.average, self.model.variables)
        self._validate()
        self._save_model("average")

    def _save_model(self, name: str) -> None:
        if self.config.save_models:
            self.folder.save_model(self.model, name)

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

    def _progress(self, start: int) -> Any:
        shown = self.config.progress and self.folder.chief
        total, done = self._work(0, self.plan.total_steps), self._work(0, start)
        return tqdm(total=total, initial=done, unit="step", disable=not shown, desc=self.task.name)

    def _work(self, first: int, last: int) -> int:
        """What the progress bar counts between two steps."""
        return last - first
