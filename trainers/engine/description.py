"""What a run is and what came of it, in words: what a program prints first and last."""

import shlex
from collections.abc import Mapping
from typing import Any

from tfwarmup.factors import untuned_exponential_period, untuned_linear_period
from trainers.engine.bench import Bench
from trainers.engine.config import Config
from trainers.engine.devices import describe_devices
from trainers.engine.task import Task
from trainers.engine.warmups import flags_warmup

# Facts that other machines change, and with them the last bits of a run.
DEVICES = "devices"
BEST_STEP = "best_step"


def resolved_facts(bench: Bench) -> dict[str, Any]:
    """What follows from a config and its data."""
    config, plan = bench.config, bench.plan
    weights = bench.model.trainable_variables
    return {
        "parameters": sum(int(variable.shape.num_elements()) for variable in weights),
        "training_examples": bench.data.train.size,
        "validation_examples": bench.data.validation.size,
        "steps_per_epoch": plan.steps_per_epoch,
        "total_updates": plan.total_steps,
        "warmup": config.resolved_warmup,
        "warmup_period": warmup_period(config),
        "effective_warmup_period": effective_period(config),
        DEVICES: describe_devices(config, bench.strategy),
    }


def warmup_period(config: Config) -> float | None:
    """The period of the warmup in updates; None for RAdam, which has none, and for no warmup."""
    untuned = {"untuned_linear": untuned_linear_period, "untuned_exponential": untuned_exponential_period}
    name = config.resolved_warmup
    return untuned[name](config.beta_2) if name in untuned else config.warmup_period


def effective_period(config: Config) -> float:
    """How many updates' worth of learning the warmup takes away."""
    rule = flags_warmup(config.resolved_warmup, config.warmup_period, config.first_steps)
    return rule.with_beta_2(config.beta_2).effective_period


def opening(task: str, config: Config, facts: Mapping[str, Any], start: int) -> str:
    """What the program prints first."""
    devices, total = facts[DEVICES], facts["total_updates"]
    workers = f" of {devices['workers']} workers" if devices["workers"] > 1 else ""
    lines = [
        f"{task}: {facts['training_examples']:,} examples to train on, {facts['validation_examples']:,} for validation",
        f"model: {facts['parameters']:,} parameters, {config.precision}",
        f"devices: {devices['replicas']} x {devices['kind']}{workers}, {devices['intra_op_threads']} threads",
        f"optimizer: {config.optimizer}, learning rate {config.learning_rate:g}, beta_2 {config.beta_2:g}, "
        f"{config.decay} decay; {_warmup(facts)}",
        f"length: {total:,} updates, {total / facts['steps_per_epoch']:.4g} epochs"
        + (f"; resumed at step {start:,}" if start else ""),
    ]
    return "\n".join(lines)


def _warmup(facts: Mapping[str, Any]) -> str:
    name, period, total = facts["warmup"], facts["warmup_period"], f"{facts['total_updates']:,}"
    if name == "none":
        return "no warmup"
    if period is None:
        return f"warmup of {name}, worth {facts['effective_warmup_period']:,.0f} of {total} updates"
    return f"{name} warmup over {period:,.0f} of {total} updates"


def closing(task: Task, config: Config, results: Mapping[str, Any]) -> str:
    """What the program prints last: the results, the best epoch, where everything is, and what to do next."""
    numbers = {name: value for name, value in results.items() if name != BEST_STEP}
    lines = [", ".join(f"{name} {readable(value)}" for name, value in numbers.items())]
    if BEST_STEP in results:
        lines.append(f"best {task.objective} at step {results[BEST_STEP]:,}: {config.output_dir}/best.keras")
    return "\n".join([*lines, f"next: python -m trainers.report {shlex.quote(config.output_dir)}"])


def readable(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def changed_devices(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """A warning if a run is resumed on other devices than it began on."""
    theirs, ours = before.get(DEVICES), now[DEVICES]
    if not theirs or theirs == ours:
        return ""
    differing = [f"{name} {theirs.get(name)}, now {value}" for name, value in ours.items() if theirs.get(name) != value]
    return f"the run goes on with other devices ({'; '.join(differing)}): its last bits may be others than on the first"
