"""Reuses one setup for many runs: rate, beta_2, warmup and seed are variables, so the graph is built only once."""

import dataclasses
import functools
from typing import Any

import keras
import tensorflow as tf
from keras.optimizers.schedules import LearningRateSchedule

import tfwarmup
from tfwarmup.compat import learning_rate_of
from tfwarmup.steps import Betas, Scalars
from trainers.engine.config import OWN_OPTIMIZERS, Config
from trainers.engine.optimizers import bare_optimizer, wrapped
from trainers.engine.setup import Setup
from trainers.engine.task import Task

# The fields of a config that `ReusableSetup.reset` can set, and those that do not concern a setup.
VALUES = ("learning_rate", "beta_2", "warmup", "warmup_period", "warmup_share", "first_steps", "seed", "output_dir")


class _Read:
    """The values an update has read from variables, not attributes of the optimizer because Keras tracks those."""

    betas: Betas


class TableAdam(tfwarmup.Adam):
    """Imitates another `Adam` or `RAdam` by reading the numbers of each update from a table."""

    def __init__(self, other: tfwarmup.Adam, updates: int) -> None:
        options = ("weight_decay", "global_clipnorm", "use_ema", "ema_momentum")
        super().__init__(**{name: getattr(other, name) for name in options})
        shared: dict[str, Any] = {"trainable": False, "aggregation": tf.VariableAggregation.ONLY_FIRST_REPLICA}
        self._table = tf.Variable(tf.zeros([updates, len(Scalars._fields)]), **shared)
        self._discounts = tf.Variable(tf.zeros([2]), **shared)
        self._read = _Read()
        self.imitate(other, update_numbers(other, updates))

    def imitate(self, other: tfwarmup.Adam, numbers: tf.Tensor) -> None:
        """Imitates another optimizer from now on; `numbers` are its `update_numbers`."""
        self._table.assign(numbers)
        self._discounts.assign([other._betas.first, other._betas.second])

    def update_variables(self, grads: Any, variables: Any, learning_rate: Any) -> None:
        # Read once per update, not once per variable.
        first, second = tf.unstack(self._discounts)
        self._read.betas = Betas(first, second, fused=True)
        super().update_variables(grads, variables, learning_rate)

    @property
    def _betas(self) -> Betas:
        return self._read.betas

    @_betas.setter
    def _betas(self, value: Betas) -> None:
        """Does nothing: the betas come from variables, not from the arguments of `Adam`."""

    def _next_scalars(self, learning_rate: Any) -> Scalars:
        scalars = Scalars(*tf.unstack(tf.gather(self._table, self.iterations)))
        return scalars if self.weight_decay is not None else scalars._replace(decay=None)


def update_numbers(optimizer: tfwarmup.Adam, updates: int) -> tf.Tensor:
    """The scalars of the first updates, [updates, 3], by the optimizer's own formula in float32.

    Computed one by one: the exponential of a vector and that of a number can differ in the last bit.
    """
    rate = learning_rate_of(optimizer)

    def row(step: Any) -> Any:
        alpha = rate(step) if isinstance(rate, LearningRateSchedule) else rate
        scalars = optimizer.scalars(tf.cast(alpha, tf.float32), tf.cast(step + 1, tf.float32))
        return tf.stack([tf.cast(0.0 if number is None else number, tf.float32) for number in scalars])

    def rows() -> Any:
        return tf.map_fn(row, tf.range(updates), fn_output_signature=tf.float32)

    numbers: tf.Tensor = tf.function(rows, autograph=False).get_concrete_function()()
    return numbers


class ReusableSetup(Setup):
    """A setup that can be reset to the beginning of another run."""

    def __init__(self, config: Config, task: Task) -> None:
        super().__init__(config, task)
        self._numbers: dict[tuple[Any, ...], tf.Tensor] = {}
        self._beginning = _values(self.optimizer)
        self._first = config.seed, _values(self.model)

    @property
    def reported_optimizer(self) -> Any:
        return self._bare

    def fits(self, config: Config) -> bool:
        """Whether a config differs from that of this setup only in `VALUES`."""
        return type(config) is type(self.config) and without_values(config) == without_values(self.config)

    def reset(self, config: Config) -> "ReusableSetup":
        """Resets model, optimizer and data to those of a new setup of this config."""
        self.config = config
        variables = [*self.model.variables, *self.optimizer.variables]
        for variable, value in zip(variables, [*self._first_weights(config), *self._beginning], strict=True):
            variable.assign(value)
        self._bare = self._bare_optimizer()
        self._adam.imitate(self._bare, self._numbers_of(config))
        self.stepper.seed.assign(config.seed)
        return self

    def training(self, start: int) -> Any:
        return super().training(start) if start or self.strategy.num_replicas_in_sync > 1 else self._from_first_step

    @functools.cached_property
    def _from_first_step(self) -> Any:
        """Batches from the first step, with the seed that is set when their iterator is created."""
        feed = dataclasses.replace(self._feed(0, training=True), seed=self.stepper.seed)
        return self._distributed(self.data.train.training, feed)

    def _first_weights(self, config: Config) -> list[Any]:
        """The weights of a new model; among `VALUES`, they depend only on the seed."""
        if self._first[0] != config.seed:
            keras.utils.set_random_seed(config.seed)
            with self.strategy.scope():
                self._first = config.seed, _values(self.task.build(config, self.data))
        return self._first[1]

    def _numbers_of(self, config: Config) -> tf.Tensor:
        """The numbers of all updates, computed once for all seeds."""
        key = tuple(getattr(config, name) for name in VALUES if name not in ("seed", "output_dir"))
        if key not in self._numbers:
            self._numbers[key] = update_numbers(self._bare, self.plan.total_steps)
        return self._numbers[key]

    def _make_optimizer(self) -> Any:
        self._bare = self._bare_optimizer()
        self._adam = TableAdam(self._bare, self.plan.total_steps)
        return wrapped(self._adam, self.config)

    def _bare_optimizer(self) -> Any:
        return bare_optimizer(self.config, self.plan.steps_per_epoch, self.plan.total_steps)


def is_reusable(config: Config) -> bool:
    """Whether `TableAdam` can imitate the optimizer of a config."""
    by_formula = not (config.gradient_init or config.clip_update_rms or config.resolved_warmup == "dynamic")
    ours = config.optimizer in OWN_OPTIMIZERS and by_formula
    return ours and tfwarmup.steps.rounded_betas(config.beta_1, config.beta_2).fused


class Setups:
    """Makes setups; reuses the last one if it fits."""

    def __init__(self) -> None:
        self._last: ReusableSetup | None = None

    def __call__(self, config: Config, task: Task) -> Setup:
        if not is_reusable(config):
            return Setup(config, task)
        if self._last is not None and self._last.task is task and self._last.fits(config):
            return self._last.reset(config)
        self._last = ReusableSetup(config, task)
        return self._last


def _values(owner: Any) -> list[Any]:
    return [variable.numpy() for variable in owner.variables]


def without_values(config: Config) -> dict[str, Any]:
    """The fields in which two runs must agree to share a setup."""
    return {name: value for name, value in dataclasses.asdict(config).items() if name not in VALUES}
