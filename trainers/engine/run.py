"""A run from its first step to its last, or from wherever it was stopped."""

import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tqdm import tqdm

from tfwarmup.analysis.applied import applied_rate
from tfwarmup.compat import updates_made
from trainers.engine import signals
from trainers.engine.bench import Bench
from trainers.engine.checkpoint import Checkpoints
from trainers.engine.cluster import worker_of
from trainers.engine.config import Config, ConfigError
from trainers.engine.description import changed_devices, opening, resolved_facts
from trainers.engine.divergence import check_result, check_steps
from trainers.engine.pace import Clock, Pace, Speed
from trainers.engine.records import RunFolder
from trainers.engine.step import Sums
from trainers.engine.task import Task
from trainers.engine.team import Team


def train(
    task: Task,
    config: Config,
    run_class: type["Run"] | None = None,
    make_bench: Callable[[Config, Task], Bench] = Bench,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Runs a task to its end and returns its results: the final validation metrics, and what the task concludes.

    Args:
        task: What to train.
        config: How.
        run_class: A `Run` that does more than train.
        make_bench: Returns what to train with, at its beginning; not necessarily new.
        say: Told what the run is before it begins.

    Raises:
        ConfigError, DataError: before anything is written.
        DivergedError: the loss became NaN, or updates stopped; the run's folder says so.
        StopRequested: the program got a signal; everything is saved.
    """
    folder = RunFolder(config, task.name, chief=worker_of(config).is_chief)
    run = (run_class or Run)(config, make_bench(config, task), folder)
    signals.keep_listening()
    task.check_folder(folder.path, run.data)
    data = task.fingerprint(run.data)
    folder.check_data(data)
    with folder.locked():
        run.restore()
        facts = resolved_facts(run.bench)
        warning = changed_devices(folder.resolved(), facts)
        folder.open(data, facts)
        with folder.telling_the_end():
            if folder.chief:
                task.fill_folder(folder.path, config, run.data)
                say(opening(task.name, config, facts, run.step))
                if warning:
                    logging.warning(warning)
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
        self.team = Team(worker_of(config), bench.stepper)
        self.pace, self.speed, self.clock = Pace(), Speed(), Clock(config.checkpoint_minutes)
        self.step = 0
        self.sums = Sums.none()
        self.unfinished: dict[str, Any] | None = None  # a record that still lacks its validation
        self.best: float | None = None
        self.best_step: int | None = None
        self.final: dict[str, float] = {}

    def restore(self) -> None:
        """Loads the newest checkpoint, if there is one. Writes nothing."""
        header = self.checkpoints.restore(self.variables) or {"step": 0, "best": None, "final": {}}
        self.step, self.best, self.final = header["step"], header["best"], header["final"]
        if self.step > self.plan.total_steps:
            raise ConfigError(
                f"--epochs and --steps must not be below what a run has reached, step {self.step}. "
                f"Received: {self.plan.total_steps} updates in all"
            )
        # Older checkpoints have none of these.
        self.best_step, self.unfinished = header.get("best_step"), header.get("unfinished")
        self.sums = Sums.of(header["sums"]) if "sums" in header else Sums.none()
        self.clock.restart(header.get("seconds", 0.0))
        self.stepper.step.assign(self.step)
        self.team.agree_on_step(self.step)

    def to_the_end(self) -> dict[str, Any]:
        # A record that is written again must not be there twice.
        self.folder.forget_after(self.step - 1 if self.unfinished else self.step)
        batches = iter(self.bench.training(self.step))
        with self._progress(self.step) as progress:
            self.stepper.train(batches, tf.constant(0), self.sums)  # compiles: a signal need not wait for that
            with signals.deferred():
                if self.unfinished:
                    self._end_interval(self.step, self.unfinished, progress)
                for first, last in self._segments(self.step):
                    self._segment(batches, first, last, progress)
        check_result(self.config, self.optimizer, self.final)
        self._save_model("last")
        if self.config.average > 1:
            self._average()
        concluded = self.task.conclude(self.config, self.data, self.model, self.folder)
        return {**self.final, **({"best_step": self.best_step} if self.best_step else {}), **concluded}

    def _segments(self, start: int) -> Iterator[tuple[int, int]]:
        return self.plan.segments(start, self.config.log_every)

    def _segment(self, batches: Any, first: int, last: int, progress: Any) -> None:
        while self.step < last:
            count = self.team.agreed_steps(self.pace.steps(last - self.step))
            self._take(batches, count)
            progress.update(self._work(self.step - count, self.step))
            if self.step < last:
                self._pause()
        self._end_interval(last, self._record(last), progress)

    def _take(self, batches: Any, count: int) -> None:
        """Takes some steps in one call."""
        began, before = time.perf_counter(), float(self.sums.weight)
        self.sums = self.stepper.train(batches, tf.constant(count), self.sums)
        after = float(self.sums.weight)  # waits for the steps
        seconds = time.perf_counter() - began
        self.pace.took(count, seconds)
        self.speed.took(after - before, seconds)
        self.step += count
        check_steps(self.config, self.optimizer, self.step, int(self.sums.bad_in_a_row))

    def _end_interval(self, last: int, record: dict[str, Any], progress: Any) -> None:
        """Validates if it is time to, writes the record, and a checkpoint if it is time for one."""
        if self.plan.is_epoch_end(last) and self._validates_at(last):
            record |= self._validate_or_stop(record)
        self.folder.record(record)
        self.unfinished, self.sums = None, Sums.none(int(self.sums.bad_in_a_row))
        self.speed.restart()
        loss = math.nan if record["loss"] is None else record["loss"]
        progress.set_postfix_str(f"loss {loss:.4g}, rate {record['learning_rate']:.3g}")
        every = self.config.checkpoint_every
        if last == self.plan.total_steps or (last % every == 0 if every else self.plan.is_epoch_end(last)):
            self._checkpoint()
        self._pause()

    def _record(self, last: int) -> dict[str, Any]:
        updates, rate, factor = applied_rate(self.bench.described, updates_made(self.optimizer))
        loss = float(self.sums.loss / self.sums.finite)
        record = {
            "step": last,
            "epoch": last / self.plan.steps_per_epoch,
            "updates": updates,
            "skipped_updates": last - updates,
            "loss": loss if math.isfinite(loss) else None,  # float16 may have skipped every step of the interval
            "learning_rate": rate,
            "warmup_factor": factor,
            "gradient_norm": float(self.sums.gradient_norm),
            f"{self.task.unit}_per_second": self.speed.per_second,
            "seconds": self.clock.seconds,
        }
        if self.config.precision == "mixed_float16":
            record["loss_scale"] = float(self.optimizer.dynamic_scale.numpy())
        return record

    def _validates_at(self, step: int) -> bool:
        epoch = step // self.plan.steps_per_epoch
        return epoch % self.config.evaluate_every == 0 or step == self.plan.total_steps

    def _validate_or_stop(self, record: dict[str, Any]) -> dict[str, float]:
        """Validates; a signal may end it, and the resumed run begins it anew."""
        self.unfinished = record
        self._pause()
        try:
            # A worker that left on its own would leave the others waiting.
            with signals.immediate() if self.team.is_alone else contextlib.nullcontext():
                return self._validate()
        except signals.StopRequested:
            self._checkpoint(interim=True)
            raise

    def _validate(self) -> dict[str, float]:
        batches, sums, left = iter(self.bench.validation), self.stepper.no_metrics(), self.bench.validation_steps
        pace = Pace()
        while left:
            count, began = self.team.agreed_steps(pace.steps(left)), time.perf_counter()
            sums = self.stepper.evaluate(batches, tf.constant(count), sums)
            values = {name: float(value) for name, value in sums.items()}
            pace.took(count, time.perf_counter() - began)
            left -= count
        means = {name: value / values["weight"] for name, value in values.items() if name != "weight"}
        metrics = self.task.summarize(means) | self.bench.judge()
        objective = metrics[self.task.objective]
        better = self.best is None or (objective < self.best if self.task.direction == "min" else objective > self.best)
        if better and math.isfinite(objective):
            self._save_model("best")  # first: a run that is stopped here must not think it has saved it
            self.best, self.best_step = objective, self.step
        self.final = {f"val_{name}": value for name, value in metrics.items()}
        return self.final

    def _average(self) -> None:
        """Puts the mean of the last checkpoints into the model, which is the run's result from here on."""
        self.team.wait()  # until the chief has written the last of them
        self.checkpoints.average(self.config.average, self.model.variables)
        self._validate()
        self._save_model("average")

    def _save_model(self, name: str) -> None:
        if self.config.save_models:
            self.folder.save_model(self.model, name)

    def _pause(self) -> None:
        """Between two calls of the graph: saves the run if it is time to, and stops it if it is asked to."""
        number = self.team.agreed_signal(signals.requested())
        if number or self.clock.is_checkpoint_due:
            self._checkpoint(interim=True)
        if number:
            raise signals.StopRequested(number)

    def _checkpoint(self, interim: bool = False) -> None:
        needed = not (interim and self.unfinished is None and self.checkpoints.has(self.step))
        if self.folder.chief and needed:
            header = {
                "best": self.best,
                "best_step": self.best_step,
                "final": self.final,
                "sums": self.sums.values(),
                "unfinished": self.unfinished,
                "seconds": self.clock.seconds,
            }
            self.checkpoints.save(self.step, self.variables, header, interim)
        self.clock.saved()

    def _progress(self, start: int) -> Any:
        shown = self.config.progress and self.folder.chief
        total, done = self._work(0, self.plan.total_steps), self._work(0, start)
        return tqdm(total=total, initial=done, unit="step", disable=not shown, desc=self.task.name)

    def _work(self, first: int, last: int) -> int:
        """What the progress bar counts between two steps."""
        return last - first
