"""Estimates what a run would take: data, updates, memory, floating-point operations, time and cost."""

import dataclasses
import itertools
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from trainers.engine.config import Config
from trainers.engine.description import effective_period
from trainers.engine.graph_cost import Cost, cost_of
from trainers.engine.setup import Setup
from trainers.engine.step import Sums
from trainers.engine.task import Task

SAMPLED = 16  # micro-batches whose sizes are compared; the largest is traced
PATIENCE = 60.0  # seconds: if a few steps take longer, one micro-batch is timed instead
WARM_STEPS, TIMED, ENOUGH = 2, 5, 4.0  # untimed steps; then the least number of timings, and seconds
TRAINING_PASSES = 3.0  # validation is a forward pass, about a third of a training step


@dataclasses.dataclass(frozen=True)
class Hardware:
    """One accelerator: dense peak TFLOPS from its data sheet, memory in GB, and an assumed price per hour."""

    half_tflops: float
    single_tflops: float
    memory: float
    price: float


# Prices are rounded on-demand prices of clouds; --price sets your own.
HARDWARE = {
    "V100": Hardware(125, 15.7, 32, 2.5),
    "A100": Hardware(312, 19.5, 80, 3.5),
    "H100": Hardware(989, 67, 80, 6.0),
}


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What one run takes. Bytes and operations are those of one replica."""

    parameters: int
    replicas: int
    updates: int
    micro_batches: int
    weight_bytes: int
    optimizer_bytes: int
    gradient_bytes: int
    activation_bytes: int
    flops_per_update: float
    flops_of_validation: float

    @property
    def total_bytes(self) -> float:
        return self.weight_bytes + self.optimizer_bytes + self.gradient_bytes + self.activation_bytes

    @property
    def flops(self) -> float:
        """Floating-point operations of the whole run, over all replicas."""
        return (self.updates * self.flops_per_update + self.flops_of_validation) * self.replicas


def estimate(setup: Setup) -> Estimate:
    """Traces one micro-batch of a setup; trains nothing and writes nothing."""
    config, plan = setup.config, setup.plan
    batches = sampled_batches(setup)
    sizes = [_elements(batch) for batch in batches]
    largest = batches[int(np.argmax(sizes))]
    cost: Cost = cost_of(setup.stepper._micro_gradients, largest)
    flops = cost.flops * float(np.mean(sizes)) / max(sizes) * config.accumulate
    weights = [*setup.model.trainable_variables]
    gradient_bytes = _bytes(weights) * (2 if config.accumulate > 1 else 1)
    validations = max(1, plan.total_steps // (config.evaluate_steps or plan.steps_per_epoch * config.evaluate_every))
    steps = setup.evaluation_steps(setup.data.validation)
    return Estimate(
        parameters=sum(math.prod(variable.shape) for variable in weights),
        replicas=setup.strategy.num_replicas_in_sync,
        updates=plan.total_steps,
        micro_batches=config.accumulate,
        weight_bytes=_bytes(setup.model.variables),
        optimizer_bytes=_bytes(setup.optimizer.variables),
        gradient_bytes=gradient_bytes,
        activation_bytes=max(0, cost.peak_bytes - _bytes(weights)),  # the peak includes the gradients
        flops_per_update=flops,
        flops_of_validation=validations * steps * flops / config.accumulate / TRAINING_PASSES,
    )


def describe_run(task: Task, config: Config, runs: int = 1) -> str:
    """The output of `--dry_run`, for one run or for all runs of a sweep."""
    setup = Setup(config, task)
    found = estimate(setup)
    data, plan = setup.data, setup.plan
    lines = [
        f"dry run of {task.name}: nothing is trained, nothing is written",
        f"data: {data.train.size:,} training examples, {data.validation.size:,} for validation",
        f"length: {plan.total_steps:,} updates of {config.global_batch:,} ({config.batch_flag}), "
        f"{plan.total_steps / plan.steps_per_epoch:.4g} epochs; {_warmup(config)}",
        f"model: {found.parameters:,} parameters on each of {found.replicas} replicas, {config.precision}",
        _memory_line(found),
        f"compute: {_amount(found.flops_per_update * found.replicas, 'FLOP')} per update, "
        f"{_amount(found.flops, 'FLOP')} per run including validation (matrix products and convolutions only)",
        *_time_lines(config, found, runs),
        f"time here: {_duration(seconds_here(setup, found) * runs)} for {_runs(runs)}, estimated from a few steps",
    ]
    return "\n".join(lines)


def _warmup(config: Config) -> str:
    period = effective_period(config)
    return "dynamic warmup" if period is None else f"warmup that costs {period:,.0f} full updates"


def seconds_here(setup: Setup, found: Estimate) -> float:
    """The time that a run would take on the devices of this process, estimated from a few steps."""
    share = found.flops_of_validation / max(found.updates * found.flops_per_update, 1.0)
    return _seconds_per_step(setup, found) * found.updates * (1 + share)


def _seconds_per_step(setup: Setup, found: Estimate) -> float:
    # Replicas on the cores of one machine take turns.
    by_micro_batch = _seconds_per_micro_batch(setup) * found.micro_batches * found.replicas
    if by_micro_batch * (WARM_STEPS + TIMED) > PATIENCE:
        return by_micro_batch
    batches, count, taken = iter(setup.training(0)), 1, 0.0
    rates: list[float] = []
    setup.stepper.train(batches, tf.constant(WARM_STEPS), Sums.none()).loss.numpy()  # compiles
    while len(rates) < TIMED or taken < ENOUGH:
        began = time.perf_counter()
        setup.stepper.train(batches, tf.constant(count), Sums.none()).loss.numpy()
        seconds = time.perf_counter() - began
        rates.append(seconds / count)
        taken += seconds
        count *= 2 if seconds < ENOUGH / 10 else 1
    return float(np.median(rates))  # other programs may slow some of them


def _seconds_per_micro_batch(setup: Setup) -> float:
    """The time of its gradients, which is most of a step. The first call only counts if a second would take long."""
    compute = tf.function(setup.stepper._micro_gradients)
    batches = sampled_batches(setup)
    chosen = sorted(batches, key=_elements)[len(batches) // 2]
    seconds: list[float] = []
    while len(seconds) < 2 and sum(seconds) < PATIENCE:
        began = time.perf_counter()
        compute(*chosen)[0].numpy()
        seconds.append(time.perf_counter() - began)
    return seconds[-1]


def sampled_batches(setup: Setup) -> list[Any]:
    """The first micro-batches that one replica would get."""
    return list(itertools.islice(setup.micro_batches(), SAMPLED))


def _memory_line(found: Estimate) -> str:
    parts = {
        "weights": found.weight_bytes,
        "optimizer": found.optimizer_bytes,
        "gradients": found.gradient_bytes,
        "activations per micro-batch": found.activation_bytes,
    }
    listed = ", ".join(f"{name} {_amount(size, 'B')}" for name, size in parts.items())
    fits = [name for name, hardware in HARDWARE.items() if found.total_bytes <= hardware.memory * 1e9]
    total = f"{_amount(found.total_bytes, 'B')} in total"
    return f"memory per replica: {listed}; {total}; fits {', '.join(fits) or 'none of the accelerators below'}"


def _time_lines(config: Config, found: Estimate, runs: int) -> list[str]:
    half = config.precision != "float32"
    kinds = {name: (h.half_tflops if half else h.single_tflops, h.price) for name, h in HARDWARE.items()}
    if config.tflops is not None:
        kinds = {"accelerator": (config.tflops, math.nan)}
    lines = []
    for name, (tflops, usual_price) in kinds.items():
        seconds = found.flops / (tflops * 1e12 * config.utilisation * config.accelerators) * runs
        price = usual_price if config.price is None else config.price
        hours = seconds / 3600 * config.accelerators
        cost = "" if math.isnan(price) else f", {price * hours:,.0f} at {price:g} per hour"
        lines.append(
            f"time on {config.accelerators} x {name} ({tflops:g} TFLOPS, {config.utilisation:.0%} of it used): "
            f"{_duration(seconds)} for {_runs(runs)}, {hours:,.1f} accelerator hours{cost}"
        )
    return lines


def _runs(count: int) -> str:
    return "the run" if count == 1 else f"{count} runs"


def _bytes(variables: Sequence[Any]) -> int:
    return sum(math.prod(variable.shape) * tf.as_dtype(variable.dtype).size for variable in variables)


def _elements(batch: Any) -> int:
    return sum(math.prod(tensor.shape) for tensor in tf.nest.flatten(batch))


def _amount(value: float, unit: str) -> str:
    """
    >>> _amount(1.5e9, "B"), _amount(12, "FLOP"), _amount(3.2e21, "FLOP")
    ('1.5 GB', '12 FLOP', '3.2e+03 EFLOP')
    """
    prefixes = ("", "k", "M", "G", "T", "P", "E")
    power = min(max(int(math.log10(max(value, 1.0)) // 3), 0), len(prefixes) - 1)
    return f"{value / 1000**power:.3g} {prefixes[power]}{unit}"


def _duration(seconds: float) -> str:
    """
    >>> _duration(5), _duration(600), _duration(7200), _duration(3e6)
    ('5 s', '10 min', '2 h', '34.7 days')
    """
    for size, unit in ((86400 * 2, "days"), (5400, "h"), (120, "min")):
        if seconds >= size:
            return f"{seconds / {'days': 86400, 'h': 3600, 'min': 60}[unit]:.3g} {unit}"
    return f"{seconds:.3g} s"
