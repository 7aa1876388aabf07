"""What a program prints about a run: its plan, its results, and the time and memory that `--dry_run` measures."""

import dataclasses
import pathlib
import re
import resource
import shlex
import statistics
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

import tensorflow as tf

from tfwarmup.factors import untuned_exponential_period, untuned_linear_period
from trainers.engine.config import Config
from trainers.engine.measurement import Pace
from trainers.engine.optimizers import flags_warmup
from trainers.engine.setup import Setup, describe_devices
from trainers.engine.step import Sums
from trainers.engine.task import Task

# Facts that depend on the machine, and may change the last bits of a run.
DEVICES = "devices"
BEST_STEP = "best_step"


def resolved_facts(setup: Setup) -> dict[str, Any]:
    """Facts that follow from a config and its data."""
    config, plan = setup.config, setup.plan
    weights = setup.model.trainable_variables
    return {
        "parameters": sum(int(variable.shape.num_elements()) for variable in weights),
        "to_load": how_to_load(setup.model),
        "training_examples": setup.data.train.size,
        "validation_examples": setup.data.validation.size,
        "test_examples": setup.data.test.size if setup.data.test else 0,
        "data_notes": list(setup.data.notes),
        "steps_per_epoch": plan.steps_per_epoch,
        "total_updates": plan.total_steps,
        "warmup": config.resolved_warmup,
        "warmup_period": warmup_period(config, plan.total_steps),
        "effective_warmup_period": effective_period(config, plan.total_steps),
        DEVICES: describe_devices(setup.strategy, setup.worker.count),
    }


def how_to_load(model: Any) -> str:
    """The import that `keras.models.load_model` needs; empty for a model of Keras' own layers."""
    module = type(model).__module__
    return "" if module.partition(".")[0] == "keras" else f"import {module}"


def warmup_period(config: Config, updates: int) -> float | None:
    """The period of the warmup in a run of this many updates; `None` for a warmup without a period."""
    untuned = {"untuned_linear": untuned_linear_period, "untuned_exponential": untuned_exponential_period}
    name = config.resolved_warmup
    return untuned[name](config.beta_2) if name in untuned else config.period_in(updates)


def effective_period(config: Config, updates: int) -> float | None:
    """The number of full updates that the warmup costs in a run of `updates`; `None` for a dynamic warmup."""
    if config.resolved_warmup == "dynamic":
        return None
    rule = flags_warmup(config.resolved_warmup, config.period_in(updates), config.first_steps)
    return rule.with_beta_2(config.beta_2).effective_period


def opening(task: str, config: Config, facts: Mapping[str, Any], start: int) -> str:
    """What the program prints first."""
    devices, total = facts[DEVICES], facts["total_updates"]
    epochs = total / facts["steps_per_epoch"]
    workers = f" of {devices['workers']} workers" if devices["workers"] > 1 else ""
    lines = [
        f"{task}: {facts['training_examples']:,} training examples, {facts['validation_examples']:,} for validation",
        *(f"data: {note}" for note in facts["data_notes"]),
        f"model: {facts['parameters']:,} parameters, {config.precision}"
        + (f"; to load it: {facts['to_load']}" if facts["to_load"] else ""),
        f"devices: {devices['replicas']} x {devices['kind']}{workers}, {devices['intra_op_threads']} threads",
        f"optimizer: {config.optimizer}, learning rate {config.learning_rate:g}, beta_2 {config.beta_2:g}, "
        f"{config.decay} decay; {_warmup(facts)}",
        f"length: {total:,} updates, {epochs:.4g} epoch{'s' * (epochs != 1)}"
        + (f"; resumed at step {start:,}" if start else ""),
    ]
    return "\n".join(lines)


def _warmup(facts: Mapping[str, Any]) -> str:
    """
    >>> _warmup({"warmup": "linear", "warmup_period": 20.0, "total_updates": 20})
    'linear warmup over 20 of 20 updates'
    >>> _warmup({"warmup": "linear", "warmup_period": 2000.0, "total_updates": 62})
    'linear warmup over 2,000 updates, longer than this run'
    >>> _warmup({"warmup": "radam", "warmup_period": None, "effective_warmup_period": 3.0, "total_updates": 10})
    'radam warmup with an effective period of 3 of 10 updates'
    >>> [_warmup({"warmup": name, "warmup_period": None, "total_updates": 1}) for name in ("none", "dynamic")]
    ['no warmup', 'dynamic warmup']
    """
    name, period, total = facts["warmup"], facts["warmup_period"], f"{facts['total_updates']:,}"
    if name in ("none", "dynamic"):
        return "no warmup" if name == "none" else "dynamic warmup"
    if period is None:
        return f"{name} warmup with an effective period of {facts['effective_warmup_period']:,.0f} of {total} updates"
    if round(period) > facts["total_updates"]:  # 2 / (1 - 0.9) is 20.000000000000004
        return f"{name} warmup over {period:,.0f} updates, longer than this run"
    return f"{name} warmup over {period:,.0f} of {total} updates"


def closing(task: Task, config: Config, results: Mapping[str, Any]) -> str:
    """What the program prints last: the results, the best epoch, where everything is, and what to do next."""
    numbers = {name: value for name, value in results.items() if name != BEST_STEP}
    lines = [listed(numbers, task.fractions)]
    if BEST_STEP in results:
        lines.append(f"best {task.objective} at step {results[BEST_STEP]:,}: {config.output_dir}/best.keras")
    return "\n".join([*lines, f"next: python -m trainers.report {shlex.quote(config.output_dir)}"])


def listed(numbers: Mapping[str, Any], fractions: Collection[str] = ()) -> str:
    """Metrics by name, those that are fractions in %.

    >>> listed({"val_error": 0.0565, "val_loss": 0.21, "updates": 620}, ["error"])
    'val_error 5.65 %, val_loss 0.21, updates 620'
    """
    shown = {
        name: f"{readable(100 * value)} %"
        for name, value in numbers.items()
        if name.partition("_")[2] in fractions and isinstance(value, float)
    }
    return ", ".join(f"{name} {shown.get(name, readable(value))}" for name, value in numbers.items())


def readable(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def changed_devices(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """A warning if a run is resumed on other devices than before; otherwise empty."""
    theirs, ours = before.get(DEVICES), now[DEVICES]
    if not theirs or theirs == ours:
        return ""
    differing = [f"{name} {theirs.get(name)}, now {value}" for name, value in ours.items() if theirs.get(name) != value]
    return f"the run continues on other devices ({'; '.join(differing)}): its last bits may differ"


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
    times = measure(setup)
    every = config.evaluate_steps or plan.steps_per_epoch * config.evaluate_every
    validations = -(-plan.total_steps // every)  # one per interval, and one at the end
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
    stepper, batches = setup.stepper, iter(setup.training(0))
    steps = setup.evaluation_steps(setup.data.validation)

    def per_step(call: Callable[[Any], Any], most: int) -> float:
        call(tf.constant(1))  # compiles
        pace = Pace(setup.team)
        calls = [pace.take(call, most) for _ in range(CALLS)]
        return statistics.median(seconds / count for count, seconds in calls)  # other programs may slow some of them

    # `numpy` waits for the steps.
    update = per_step(lambda count: stepper.train(batches, count, Sums.none()).loss.numpy(), setup.plan.total_steps)
    validation = per_step(lambda count: stepper.evaluate(iter(setup.validation), count).numpy(), steps)
    return Times(update, steps * validation)


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
