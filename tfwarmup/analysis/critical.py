"""The critical rate: how far a model can move along its next update before the loss stops falling."""

import math
import types
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from tfwarmup import checks, compat, formula
from tfwarmup.analysis.applied import applied_rate, moments, update_formula
from tfwarmup.analysis.gradients import fresh_batches, loss_without_change, sampled_gradients
from tfwarmup.analysis.probes import Probe
from tfwarmup.optimizers import Adam
from tfwarmup.warmups import NoWarmup

PASSES = 9  # forward passes of one search


def critical_rate(model: Any, x: Any, y: Any, sample_weight: Any = None, *, seed: int = 0) -> float:
    """Returns the learning rate at which the next update of Adam would no longer lower the loss of a batch.

    The model moves along the update that its optimizer would make, by rates that are doubled and bisected: one gradient
    and nine forward passes. Larger rates overshoot, so that it is the largest safe rate of the next update, without
    training: 0 if the loss falls at no rate, infinity if it falls at every rate, NaN if a loss scale would skip the
    update. Weights, optimizer and random state stay as they are. Weight decay is left out.

    Args:
        model: A compiled model whose optimizer is Adam or AdamW of Keras, `tfwarmup.Adam` or `tfwarmup.RAdam`.
        x, y, sample_weight: The batch, as for `train_on_batch`.
        seed: The seed of dropout, which is the same in every pass.

    Reference:
        [Kalra et al., 2026](https://arxiv.org/abs/2601.16979): critical sharpness, 2 / the critical rate
    """
    optimizer = compat.unwrapped(getattr(model, "optimizer", None))
    _check(optimizer)
    if not compat.weights_exist(model):
        raise ValueError(f"The critical rate needs a model whose weights exist. Received: {checks.shown(model)}")
    batch = next(fresh_batches(lambda: [(x, y, sample_weight)], None, seed))
    directions = _directions(model, optimizer, batch, seed)
    if directions is None:
        return math.nan
    loss = loss_without_change(model, batch, seed)
    values = [ops.convert_to_tensor(variable) for variable in model.trainable_variables]

    def loss_at(rate: float) -> float:
        return loss([value - ops.cast(rate * u, value.dtype) for value, u in zip(values, directions, strict=True)])

    rate = compat.known_rate(optimizer)
    return _first_rise(loss_at, rate if isinstance(rate, float) and rate > 0 else 1e-3)


class CriticalRate(Probe):
    """Measures the critical rate during `fit`: `critical_rate`, beside the `learning_rate_applied` of the last update.

    Args:
        x, y: A batch, see `critical_rate`.
        every: See `Probe`.
    """

    def __init__(self, x: Any, y: Any, *, every: int | str = 1) -> None:
        super().__init__(("critical_rate", "learning_rate_applied"), every)
        self.batch = x, y

    def check(self, model: Any) -> None:
        _check(compat.unwrapped(model.optimizer))

    def measure(self, model: Any, t: int) -> dict[str, float]:
        applied = applied_rate(model.optimizer, t).rate
        return {"critical_rate": critical_rate(model, *self.batch), "learning_rate_applied": applied}


def _check(optimizer: Any) -> None:
    update_formula(optimizer)
    if isinstance(optimizer, keras.optimizers.Nadam) or getattr(optimizer, "amsgrad", False):
        raise ValueError(f"The critical rate needs Adam or AdamW, without AMSGrad. Received: {checks.shown(optimizer)}")


def _directions(model: Any, optimizer: Any, batch: Any, seed: int) -> list[np.ndarray] | None:
    """The next update of each variable, at a rate of 1: Adam's formula with the moments that the batch leads to."""
    variables = model.trainable_variables
    everything = types.SimpleNamespace(
        variables=variables, take=lambda tensors: ops.concatenate([ops.cast(ops.ravel(x), "float32") for x in tensors])
    )
    flat = sampled_gradients(model, everything, seed, compiled=False)(batch)
    if optimizer is not model.optimizer and not np.isfinite(flat).all():
        return None  # skipped by the `LossScaleOptimizer`
    flat = flat / compat.number(model.optimizer.scale_loss(ops.ones(())))
    ends = np.cumsum([math.prod(variable.shape) for variable in variables])[:-1]
    parts = [part.reshape(variable.shape) for part, variable in zip(np.split(flat, ends), variables, strict=True)]
    gradients = [ops.convert_to_numpy(part) for part in compat.clipped(optimizer, parts)]
    t, beta_1, beta_2 = compat.updates_made(optimizer) + 1, optimizer.beta_1, optimizer.beta_2
    numbers = formula.update(1.0, t, NoWarmup(), beta_1, beta_2, optimizer.epsilon)
    # Keras' Adam adds epsilon before the bias correction.
    epsilon = float(numbers.epsilon) if isinstance(optimizer, Adam) else optimizer.epsilon
    directions = []
    for variable, gradient in zip(variables, gradients, strict=True):
        m = v = 0.0
        if optimizer.built:
            place = compat.variable_index(optimizer, variable)
            m, v = (ops.convert_to_numpy(each[place]) for each in moments(optimizer))
        m, v = beta_1 * m + (1 - beta_1) * gradient, beta_2 * v + (1 - beta_2) * gradient**2
        directions.append(m * float(numbers.rate) / (np.sqrt(v) + epsilon))
    return directions


def _first_rise(loss_at: Callable[[float], float], start: float) -> float:
    """The end of the rates from 0 on at which the loss is below that of rate 0, from PASSES losses."""
    first, low, high, rate, factor = loss_at(0.0), 0.0, math.inf, start, 2.0
    for _ in range(PASSES - 1):
        low, high = (rate, high) if loss_at(rate) < first else (low, rate)
        if low > 0 and high < math.inf:
            rate = math.sqrt(low * high)
        else:
            rate, factor = (low * factor if low else high / factor), factor**2
    return math.sqrt(low * high) if high < math.inf else math.inf
