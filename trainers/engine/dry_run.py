"""What a run would take: its plan, and the time and memory of a few updates on this machine."""

import dataclasses
import pathlib
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from trainers.engine.cluster import worker_of
from trainers.engine.config import Config
from trainers.engine.description import opening, resolved_facts
from trainers.engine.devices import Team
from trainers.engine.monitor import Pace
from trainers.engine.setup import Setup
from trainers.engine.step import Sums
from trainers.engine.task import Task

CALLS = 4  # timed, after one that compiles; `Pace` makes them take a second, or one step where steps take longer

STATUS = pathlib.Path("/proc/self/status")


@dataclasses.dataclass(frozen=True)
class Times:
    """Seconds on this machine."""

    update: float
    validation: float  # a pass over all validation data


def describe_run(task: Task, config: Config, say: Callable[[str], None], runs: int = 1) -> str:
    """The output of `--dry_run`. Trains for a few updates, in memory, and writes nothing.

    Args:
        task: Task of the run.
        config: Config of the run; for a sweep, of its first run.
        say: Called with the plan before anything is measured: updates of a large model take long.
        runs: Number of runs of a sweep.
    """
    before = _process_bytes()
    setup = Setup(config, task)
    plan = setup.plan
    which = "dry run" if runs == 1 else f"dry run of the first of {runs} runs"
    batches = f"batches: {config.global_batch:,} ({config.batch_flag}) per update, {plan.steps_per_epoch:,} per epoch"
    facts = resolved_facts(setup)
    say("\n".join([f"{which}: nothing is written", opening(task.name, config, facts, start=0), batches]))
    times, validations = measure(setup), _validations(setup)
    seconds = plan.total_steps * times.update + validations * times.validation
    sweep = "" if runs == 1 else f"; {duration(seconds * runs)} for {runs} runs like it, one after the other"
    return (
        f"measured on this machine: {duration(times.update)} per update, {duration(times.validation)} per validation, "
        f"{memory_used(before)}\n"
        f"extrapolated: {duration(seconds)} for {plan.total_steps:,} updates and {validations:,} "
        f"validation{'s' * (validations != 1)}{sweep}; start, checkpoints and further metrics come on top"
    )


def measure(setup: Setup) -> Times:
    """Measures updates, which change the setup, and validation."""
    stepper, team, batches = setup.stepper, Team(worker_of(setup.config), setup.stepper), iter(setup.training(0))
    validation = setup.evaluation_steps(setup.data.validation)

    def update(count: Any) -> None:
        stepper.train(batches, count, Sums.none()).loss.numpy()  # waits for the steps

    def validate(count: Any) -> None:
        stepper.evaluate(iter(setup.validation), count).numpy()

    return Times(
        update=_seconds_per_step(update, setup.plan.total_steps, team),
        validation=_seconds_per_step(validate, validation, team) * validation,
    )


def _seconds_per_step(take: Callable[[Any], None], most: int, team: Team) -> float:
    """The median over several calls of `take(count)`, which takes at most `most` steps."""
    take(tf.constant(1))  # compiles
    pace, seconds = Pace(), []
    for _ in range(CALLS):
        count, began = team.agreed_steps(pace.steps(most)), time.perf_counter()
        take(tf.constant(count))
        taken = time.perf_counter() - began
        pace.took(count, taken)
        seconds.append(taken / count)
    return statistics.median(seconds)  # other programs may slow some of them


def _validations(setup: Setup) -> int:
    """One validation per interval, and one at the end."""
    config, plan = setup.config, setup.plan
    return -(-plan.total_steps // (config.evaluate_steps or plan.steps_per_epoch * config.evaluate_every))


def memory_used(before: int) -> str:
    """The peak memory of a GPU, or else of this process, which had used `before` bytes at most without the run."""
    gpus = tf.config.list_logical_devices("GPU")
    if gpus:
        peak = max(tf.config.experimental.get_memory_info(gpu.name)["peak"] for gpu in gpus)
        return f"peak memory {peak / 1e9:.3g} GB per GPU"
    peak = _process_bytes()
    return f"peak memory {peak / 1e9:.3g} GB, {(peak - before) / 1e9:.3g} GB of it for data, model and updates"


def _process_bytes() -> int:
    """The peak memory of this process so far."""
    told = re.findall(r"VmHWM:\s+(\d+) kB", STATUS.read_text()) if STATUS.exists() else []
    if told:  # Linux, where getrusage would also count the process that started this one
        return int(told[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def duration(seconds: float) -> str:
    """
    >>> duration(0.0123), duration(5), duration(600), duration(7200), duration(3e6)
    ('0.0123 s', '5 s', '10 min', '2 h', '34.7 days')
    """
    for unit, size, least in (("days", 86400, 2 * 86400), ("h", 3600, 5400), ("min", 60, 120)):
        if seconds >= least:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
