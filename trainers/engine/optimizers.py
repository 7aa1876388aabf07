"""The optimizer that a config describes: decay, warmup, clipping, loss scale."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops
from keras.optimizers.schedules import CosineDecay, LearningRateSchedule, PiecewiseConstantDecay

import tfwarmup
from tfwarmup import compat, warmups
from tfwarmup.analysis.applied import Applied, moments, needs_gradient, update_magnitudes
from tfwarmup.analysis.samples import ParameterSample
from tfwarmup.decays import Plateau
from tfwarmup.warmups import Warmup
from trainers.engine.config import Config
from trainers.system.errors import ConfigError, require

KERAS_OPTIMIZERS = {
    "keras_adam": keras.optimizers.Adam,
    "keras_nadam": keras.optimizers.Nadam,
    "keras_lamb": keras.optimizers.Lamb,
}
NESTEROV = {"keras_sgd": False, "keras_nag": True}


@keras.saving.register_keras_serializable("trainers")
class InverseSquareRootDecay(LearningRateSchedule):
    """learning_rate * min(1, sqrt(period / t)), t = step + 1: constant for `period` updates, then falling."""

    def __init__(self, learning_rate: float, period: float) -> None:
        super().__init__()
        self.learning_rate, self.period = learning_rate, period

    def __call__(self, step: Any) -> Any:
        t = ops.cast(step, "float32") + 1.0
        return self.learning_rate * ops.minimum(1.0, ops.sqrt(self.period / t))

    def get_config(self) -> dict[str, Any]:
        return {"learning_rate": self.learning_rate, "period": self.period}


def make_optimizer(config: Config, steps_per_epoch: int, total_steps: int) -> keras.optimizers.Optimizer:
    """The optimizer that a config describes."""
    return wrapped(bare_optimizer(config, steps_per_epoch, total_steps), config)


def wrapped(optimizer: keras.optimizers.Optimizer, config: Config) -> keras.optimizers.Optimizer:
    """Adds a loss scale if needed, and sums gradients over the replicas before anything else."""
    if config.precision == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    return tfwarmup.reduce_first(optimizer)


def make_rate(config: Config, steps_per_epoch: int, total_steps: int) -> float | LearningRateSchedule:
    rate = config.learning_rate
    if config.decay == "step":
        boundaries = [round(epoch * steps_per_epoch) for epoch in config.decay_epochs]
        # Keras' boundary belongs to the interval before it, and its step counts from 0.
        values = [rate * config.decay_factor**power for power in range(len(boundaries) + 1)]
        return PiecewiseConstantDecay([boundary - 1 for boundary in boundaries], values)
    if config.decay == "cosine":
        start = config.decay_start
        require(start < total_steps, f"--decay_start must be below the run's {total_steps} updates", start)
        return Plateau(CosineDecay(rate, total_steps - start, alpha=config.decay_floor), start)
    if config.decay == "inverse_sqrt":
        return InverseSquareRootDecay(rate, config.decay_period)
    return float(rate)


def bare_optimizer(config: Config, steps_per_epoch: int, total_steps: int) -> keras.optimizers.Optimizer:
    """The optimizer with decay, warmup and clipping, without a loss scale."""
    try:
        warmup = flags_warmup(config.resolved_warmup, config.period_in(total_steps), config.first_steps)
        return _named_optimizer(config, make_rate(config, steps_per_epoch, total_steps), warmup)
    except ValueError as error:  # from the library, such as a beta_2 that is too small for RAdam
        raise ConfigError(str(error)) from error


def _named_optimizer(config: Config, rate: float | LearningRateSchedule, warmup: Warmup) -> keras.optimizers.Optimizer:
    options: dict[str, Any] = {
        "weight_decay": config.weight_decay or None,
        "global_clipnorm": config.global_clipnorm,
        **({} if config.ema is None else {"use_ema": True, "ema_momentum": config.ema}),
    }
    if config.optimizer in NESTEROV:
        nesterov = NESTEROV[config.optimizer]
        return tfwarmup.warm_up(keras.optimizers.SGD(rate, config.momentum, nesterov, **options), warmup)
    options |= {"beta_1": config.beta_1, "beta_2": config.beta_2, "epsilon": config.epsilon}
    if config.optimizer in KERAS_OPTIMIZERS:
        optimizer = KERAS_OPTIMIZERS[config.optimizer](rate, **options)
        return tfwarmup.warm_up(optimizer, warmup)
    options |= {"gradient_init": config.gradient_init, "clip_update_rms": config.clip_update_rms}
    if config.resolved_warmup == "radam":
        return tfwarmup.RAdam(rate, first_steps=config.first_steps, **options)
    return tfwarmup.Adam(rate, warmup=warmup, **options)


WARMUP_FLAGS = ("warmup", "warmup_period", "first_steps")


def flags_warmup(warmup: str, warmup_period: float | None, first_steps: str) -> Warmup:
    """The values of `--warmup`, `--warmup_period` and `--first_steps` as one object.

    >>> flags_warmup("radam", None, "nothing")
    Rectified()
    """
    if warmup == "radam":
        return warmups.get("radam", first_steps=first_steps, period=warmup_period)
    return warmups.get(warmup, period=warmup_period)


def moments_reader(optimizer: Any, sample: ParameterSample) -> Callable[[], np.ndarray]:
    """Returns a function that reads the first and second moments of the sampled parameters."""
    places = [compat.variable_index(compat.unwrapped(optimizer), variable) for variable in sample.variables]
    return sample.reader(*([variables[place] for place in places] for variables in moments(optimizer)))


class UpdateSize:
    """The root mean square of an update without its learning rate and warmup factor, over a sample of parameters.

    It is 1 at the first update, and sqrt((1 - beta_1) / (1 + beta_1)) for gradients that are noise.

    Args:
        optimizer: The optimizer with the moments.
        variables: The trainable variables of the model.
    """

    def __init__(self, optimizer: Any, variables: Sequence[Any]) -> None:
        self._optimizer, self._sample = optimizer, ParameterSample(variables)
        self._read: Any = None

    def measure(self, optimizer: Any, applied: Applied) -> float | None:
        """The size of the last update; None if it does not follow from Adam's moments.

        Args:
            optimizer: An optimizer with the hyperparameters of the update.
            applied: `applied_rate` of the last update.
        """
        try:
            is_known = not needs_gradient(optimizer)
        except ValueError:  # SGD, for example
            return None
        if not is_known or not applied.t or not applied.warmup_factor:  # a momentum step of RAdam has the factor 0
            return None
        if self._read is None:
            self._read = moments_reader(self._optimizer, self._sample)
        m, v = self._read()
        magnitudes = update_magnitudes(optimizer, m, v, t=applied.t).astype("float64")
        size = math.sqrt(np.mean(magnitudes * magnitudes)) / applied.warmup_factor
        return size if math.isfinite(size) else None
