"""Descriptions of a run and its results: what a program prints first and last."""

import shlex
from collections.abc import Collection, Mapping
from typing import Any

from tfwarmup.factors import untuned_exponential_period, untuned_linear_period
from trainers.engine.config import Config
from trainers.engine.devices import describe_devices
from trainers.engine.optimizers import flags_warmup
from trainers.engine.setup import Setup
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
    workers = f" of {devices['workers']} workers" if devices["workers"] > 1 else ""
    lines = [
        f"{task}: {facts['training_examples']:,} training examples, {facts['validation_examples']:,} for validation",
        *(f"data: {note}" for note in facts["data_notes"]),
        f"model: {facts['parameters']:,} parameters, {config.precision}"
        + (f"; to load it: {facts['to_load']}" if facts["to_load"] else ""),
        f"devices: {devices['replicas']} x {devices['kind']}{workers}, {devices['intra_op_threads']} threads",
        f"optimizer: {config.optimizer}, learning rate {config.learning_rate:g}, beta_2 {config.beta_2:g}, "
        f"{config.decay} decay; {_warmup(facts)}",
        f"length: {total:,} updates, {_epochs(total / facts['steps_per_epoch'])}"
        + (f"; resumed at step {start:,}" if start else ""),
    ]
    return "\n".join(lines)


def _epochs(count: float) -> str:
    return "1 epoch" if count == 1 else f"{count:.4g} epochs"


def _warmup(facts: Mapping[str, Any]) -> str:
    """
    >>> _warmup({"warmup": "linear", "warmup_period": 20.0, "total_updates": 20})
    'linear warmup over 20 of 20 updates'
    >>> _warmup({"warmup": "linear", "warmup_period": 200.0, "total_updates": 62})
    'linear warmup over 200 updates, longer than this run'
    """
    name, period, total = facts["warmup"], facts["warmup_period"], f"{facts['total_updates']:,}"
    if name == "none":
        return "no warmup"
    if name == "dynamic":
        return "dynamic warmup"
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
