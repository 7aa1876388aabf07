"""A training run, from its first step or from where it was stopped."""

import contextlib
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tqdm import tqdm

from tfwarmup.analysis.applied import applied_rate
from tfwarmup.compat import updates_made
from trainers.engine.checkpoint import Checkpoints, load_weights, model_file
from trainers.engine.config import Config
from trainers.engine.description import changed_devices, opening, resolved_facts
from trainers.engine.folder import RunFolder
from trainers.engine.measurement import (
    Clock,
    Evaluator,
    Pace,
    Profiler,
    Speed,
    averaged_weights,
    check_result,
    check_steps,
)
from trainers.engine.setup import Setup
from trainers.engine.step import Sums
from trainers.engine.task import RunCallback, Task
from trainers.engine.workers import worker_of
from trainers.results.layout import CHECKPOINTS, RUN_RESULTS
from trainers.system import signals
from trainers.system.errors import ConfigError
from trainers.system.files import json_text

# The validations that a checkpoint remembers.
VALIDATED = ("best", "best_step", "worse", "final")


def train(
    task: Task,
    config: Config,
    run_class: type["Run"] | None = None,
    make_setup: Callable[[Config, Task], Setup] = Setup,
    say: Callable[[str], None] = lambda _: None,
    callbacks: Sequence[RunCallback] = (),
) -> dict[str, Any]:
    """Trains a task and returns its results: the final validation metrics, and what the task adds to them.

    Args:
        task: Task to train.
        config: Config of the run.
        run_class: A subclass of `Run` that does more than train.
        make_setup: Returns the setup in its initial state; it may be reused.
        say: Called with a description of the run before it starts.
        callbacks: Called at the start of the run, at its records and at its end.

    Raises:
        ConfigError, DataError: before anything is written.
        DivergedError: the loss became NaN, or updates stopped; the run's folder says so.
        StopRequested: the program got a signal; everything is saved.
    """
    folder = RunFolder(config, task.name, chief=worker_of(config).is_chief)
    if config.init_from is not None and not (folder.path / CHECKPOINTS).exists():
        model_file(config.init_from, "--init_from")  # before anything is loaded or written
    told = callbacks if folder.chief else ()
    run = (run_class or Run)(config, make_setup(config, task), folder, told)
    signals.keep_listening()
    task.check_folder(folder.path, run.data)
    data = task.fingerprint(run.data)
    folder.check_data(data)
    run.team.agree_on_run(config, data)
    with folder.locked():
        run.restore()
        facts = resolved_facts(run.setup)
        warning = changed_devices(folder.resolved(), facts)
        folder.open(data, facts)
        with folder.recording_status(lambda status: _tell_end(told, status, {})):
            for callback in told:
                callback.begin(config.plain(), facts, run.step)
            if folder.chief:
                task.fill_folder(folder.path, config, run.data)
                say(opening(task.name, config, facts, run.step))
                if warning:
                    logging.warning(warning)
            results = run.train()
            folder.write(RUN_RESULTS, json_text(results, indent=2) + "\n")
        _tell_end(told, "done", results)
    return results


def _tell_end(callbacks: Sequence[RunCallback], status: str, results: Mapping[str, Any]) -> None:
    for callback in callbacks:
        callback.end(status, results)


class Run:
    """The loop around the train step: records, validation, checkpoints, progress."""

    def __init__(self, config: Config, setup: Setup, folder: RunFolder, callbacks: Sequence[RunCallback]) -> None:
        self.config, self.setup, self.folder, self.callbacks = config, setup, folder, callbacks
        self.task, self.data, self.plan, self.model = setup.task, setup.data, setup.plan, setup.model
        self.optimizer, self.stepper, self.team = setup.optimizer, setup.stepper, setup.team
        self.checkpoints = Checkpoints(folder.path / CHECKPOINTS, config.average, folder.run)
        self.variables = [*self.model.variables, *self.optimizer.variables]
        self.evaluator = Evaluator(setup)
        self.profiler = Profiler(folder.path / "profile", config.profile, folder.chief)
        self.pace, self.speed = Pace(self.team), Speed()
        self.step = 0
        self.sums = Sums.none()
        self.unfinished: dict[str, Any] | None = None  # a record that still lacks its validation
        self.recorded: list[int] | None = None  # `RunFolder.recorded` at the checkpoint that was restored
        self.best: float | None = None
        self.best_step: int | None = None
        self.worse = 0  # validations since the best one
        self.final: dict[str, float] = {}

    def restore(self) -> None:
        """Loads the newest checkpoint, if there is one. Writes nothing."""
        header = self.checkpoints.restore(self.variables)
        if header is not None:
            self.step, self.sums, self.unfinished = header["step"], Sums.of(header["sums"]), header["unfinished"]
            self.recorded = header.get("records")
            for name in VALIDATED:
                setattr(self, name, header[name])
            if self.best_step:
                self.folder.check_model("best")
        elif self.config.init_from is not None:
            load_weights(self.model, model_file(self.config.init_from, "--init_from"), "--init_from")
        if self.step > self.plan.total_steps:
            raise ConfigError(
                f"--epochs and --steps must not be below what a run has reached, step {self.step}. "
                f"Received: {self.plan.total_steps} updates in all"
            )
        self.clock = Clock(self.config.checkpoint_minutes, header["seconds"] if header else 0.0)
        self.stepper.step.assign(self.step)
        self.team.agree_on_step(self.step)

    def train(self) -> dict[str, Any]:
        """Trains to the end, and returns the results."""
        # A record that is written again must not be there twice.
        self.folder.forget_after(self.step - 1 if self.unfinished else self.step, self.recorded)
        batches = iter(self.setup.training(self.step))
        # A validation ends a record, whatever --log_every is.
        intervals = [every for every in (self.config.log_every, self.config.evaluate_steps) if every]
        with self._progress() as progress:
            self.stepper.train(batches, tf.constant(0), self.sums)  # compiles, while a signal can still interrupt
            with signals.deferred():
                if self.unfinished:
                    self._end_interval(self.step, self.unfinished, progress)
                for first, last in self.plan.segments(self.step, intervals, self._stops()):
                    if self._out_of_patience:
                        break
                    self.profiler.at(first)
                    self._segment(batches, first, last, progress)
        self.profiler.close()
        check_result(self.config, self.optimizer, self.final)
        with averaged_weights(self.setup):
            self._save_model("last")
            if self.config.average > 1:
                self._average()
            return self._results()

    def _segment(self, batches: Any, first: int, last: int, progress: Any) -> None:
        """All steps of one record."""
        while self.step < last:
            before = self.step
            self._take(batches, last - before)
            progress.update(self._work(before, self.step))
            if self.step < last:
                self._pause()
        self._end_interval(last, self._record(last), progress)

    def _take(self, batches: Any, left: int) -> None:
        """Runs some steps in one call."""

        def call(count: Any) -> None:
            self.sums = self.stepper.train(batches, count, self.sums)
            self.sums.weight.numpy()  # waits for the steps

        before = float(self.sums.weight)
        count, seconds = self.pace.take(call, left)
        self.speed.took(float(self.sums.weight) - before, seconds)
        self.step += count
        check_steps(self.config, self.optimizer, self.step, int(self.sums.bad_in_a_row))

    def _record(self, last: int) -> dict[str, Any]:
        optimizer = self.setup.reported_optimizer
        applied = applied_rate(optimizer, updates_made(self.optimizer))
        loss = float(self.sums.loss / self.sums.finite)
        record = {
            "step": last,
            "epoch": last / self.plan.steps_per_epoch,
            "updates": applied.t,
            "skipped_updates": last - applied.t,
            "loss": loss if math.isfinite(loss) else None,  # float16 may have skipped every step of the interval
            "learning_rate": applied.rate,
            "warmup_factor": applied.warmup_factor,
            "update_rms": self.setup.update_size.measure(optimizer, applied),
            "gradient_norm": float(self.sums.gradient_norm),
            f"{self.task.unit}_per_second": self.speed.per_second,
            "seconds": self.clock.seconds,
        }
        if self.config.precision == "mixed_float16":
            record["loss_scale"] = float(self.optimizer.dynamic_scale.numpy())
        return record

    def _end_interval(self, last: int, record: dict[str, Any], progress: Any) -> None:
        """Validates if due, writes the record, and writes a checkpoint if due."""
        loss = math.nan if record["loss"] is None else record["loss"]
        # Before the validation, which may take long, so that the bar shows this record meanwhile.
        progress.set_postfix_str(f"loss {loss:.4g}, rate {record['learning_rate']:.3g}")
        progress.refresh()
        if self._validates_at(last):
            record |= self._validate_or_stop(record)
        self.folder.record(record)
        for callback in self.callbacks:
            callback.record(record)
        self.unfinished, self.sums = None, Sums.none(int(self.sums.bad_in_a_row))
        self.speed.restart()
        every = self.config.checkpoint_every
        is_end = last == self.plan.total_steps or self._out_of_patience
        if is_end or (last % every == 0 if every else self.plan.is_epoch_end(last)):
            self._checkpoint()
        self._pause()

    def _validates_at(self, step: int) -> bool:
        if step == self.plan.total_steps:
            return True
        if self.config.evaluate_steps:
            return step % self.config.evaluate_steps == 0
        return self.plan.is_epoch_end(step) and step // self.plan.steps_per_epoch % self.config.evaluate_every == 0

    def _validate_or_stop(self, record: dict[str, Any]) -> dict[str, float]:
        """Validates. A signal may interrupt it; the resumed run starts it again."""
        self.unfinished = record
        self._pause()
        try:
            # A worker that stopped alone would leave the others waiting. No signal interrupts the exchange of weights.
            stoppable = signals.immediate() if self.team.is_alone else contextlib.nullcontext()
            with averaged_weights(self.setup), stoppable:
                return self._validate()
        except signals.StopRequested:
            self._checkpoint(interim=True)
            raise

    def _validate(self) -> dict[str, float]:
        metrics = self.evaluator.validate()
        objective = metrics[self.task.objective]
        better = self.best is None or (objective < self.best if self.task.direction == "min" else objective > self.best)
        if better and math.isfinite(objective):
            self._save_model("best")  # first: a run that is stopped here must not count it as saved
            self.best, self.best_step, self.worse = objective, self.step, 0
        else:
            self.worse += 1
        self.final = {f"val_{name}": value for name, value in metrics.items()}
        return self.final

    @property
    def _out_of_patience(self) -> bool:
        return self.config.patience is not None and self.worse >= self.config.patience

    def _pause(self) -> None:
        """Between two calls of the graph: saves the run if due, and stops it if requested."""
        number = self.team.agreed_signal(signals.requested())
        if number or self.clock.is_checkpoint_due:
            self._checkpoint(interim=True)
        if number:
            raise signals.StopRequested(number)

    def _checkpoint(self, interim: bool = False) -> None:
        needed = not (interim and self.unfinished is None and self.checkpoints.has(self.step))
        if self.folder.chief and needed:
            header = {name: getattr(self, name) for name in VALIDATED}
            header |= {"sums": self.sums.values(), "unfinished": self.unfinished, "seconds": self.clock.seconds}
            header |= {"records": self.folder.recorded}
            self.checkpoints.save(self.step, self.variables, header, interim)
        self.clock.saved()

    def _average(self) -> None:
        """Loads the mean of the last checkpoints into the model, which becomes the result of the run."""
        self.team.wait()  # until the chief has written the last of them
        self.checkpoints.average(self.config.average, self.model.variables)
        self._validate()
        self._save_model("average")

    def _save_model(self, name: str) -> None:
        if self.config.save_models:
            self.folder.save_model(self.model, name)

    def _results(self) -> dict[str, Any]:
        results: dict[str, Any] = {**self.final, **({"best_step": self.best_step} if self.best_step else {})}
        if self.step < self.plan.total_steps:
            results["stopped_early_at"] = self.step
        for prefix, source in self.task.final_sources(self.config, self.data).items():
            results |= {f"{prefix}_{name}": value for name, value in self.evaluator.measure(source).items()}
        return results | self.task.final_results(self.config, self.data, self.model, self.folder)

    def _stops(self) -> list[int]:
        """Further steps at which a record must end, in ascending order."""
        return sorted({*self.config.profile} - {0})

    def _progress(self) -> Any:
        shown = self.config.progress and self.folder.chief
        total, done = self._work(0, self.plan.total_steps), self._work(0, self.step)
        return tqdm(total=total, initial=done, unit="step", disable=not shown, desc=self.task.name)

    def _work(self, first: int, last: int) -> int:
        """What the progress bar counts between two steps."""
        return last - first
