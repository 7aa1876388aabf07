"""Adam as the paper writes it, and RAdam as the paper reads it: momentum steps, then Adam with a fixed warmup."""

import contextlib
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import keras
from keras.optimizers.schedules import LearningRateSchedule

from tfwarmup import checks, factors
from tfwarmup.compat import Optimizer, ops
from tfwarmup.steps import Scalars, dense, rounded_betas, step

# Momentum is Adam with an infinite epsilon: theta -= (rate S) m / (sqrt(v) + S) is theta -= rate m, to the last bit,
# while sqrt(v) < S / 2^25. S is a power of two, so that neither the product nor the quotient rounds.
_MOMENTUM_EPSILON = 2.0**64


@keras.saving.register_keras_serializable("tfwarmup")
class Adam(Optimizer):
    """Adam as in equations 2 to 4 of the paper, with an optional warmup inside the update.

        m_t = beta_1 m_{t-1} + (1 - beta_1) g_t
        v_t = beta_2 v_{t-1} + (1 - beta_2) g_t^2
        theta_t = theta_{t-1} - omega_t alpha [m_t / (1 - beta_1^t)] / [sqrt(v_t / (1 - beta_2^t)) + epsilon]

    `epsilon` is added after the bias correction (Keras' Adam adds it before: "epsilon hat"). Weight decay is decoupled:
    theta also loses `omega_t * alpha * weight_decay * theta`.

    Because omega_t multiplies inside, `learning_rate` stays a variable: `ReduceLROnPlateau` and `LearningRateScheduler`
    work together with the warmup. It counts updates, whatever `gradient_accumulation_steps` is.

    Args:
        learning_rate: A float, or a `LearningRateSchedule`.
        beta_1: The discount of the first moment, in [0, 1).
        beta_2: The discount of the second moment, in (0, 1).
        epsilon: The paper's epsilon, >= 0.
        warmup: A name of `tfwarmup.WARMUPS`, or `None`.
        warmup_period: The period, for "linear" and "exponential".
        name: The optimizer's name.
        **kwargs: What every Keras optimizer takes: `weight_decay`, `clipnorm`, `clipvalue`, `global_clipnorm`,
            `use_ema`, `ema_momentum`, `ema_overwrite_frequency`, `loss_scale_factor`, `gradient_accumulation_steps`.

    >>> optimizer = Adam(1e-3, warmup="untuned_linear")
    >>> round(float(optimizer.warmup_factor), 8), round(float(optimizer.learning_rate), 8)
    (0.0005, 0.001)

    Reference:
        [Ma and Yarats, 2021](https://arxiv.org/abs/1910.04209)
    """

    def __init__(
        self,
        learning_rate: float | LearningRateSchedule = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        *,
        warmup: str | None = None,
        warmup_period: float | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        if checks.is_number(learning_rate):
            checks.not_negative("learning_rate", learning_rate)
        if self.weight_decay is not None:
            checks.not_negative("weight_decay", self.weight_decay)
        self.beta_1 = checks.beta_1(beta_1)
        self.beta_2 = checks.beta_2(beta_2)
        self.epsilon = checks.not_negative("epsilon", epsilon)
        self.warmup = warmup
        self.warmup_period = warmup_period
        self._betas = rounded_betas(beta_1, beta_2)
        name_in_table = warmup or "none"
        self._factor = factors.rule(name_in_table).bind(name_in_table, beta_2=beta_2, period=warmup_period)
        self._moments_being_added = False

    def build(self, variables: Sequence[Any]) -> None:
        """Makes the two moments of every variable, in float32 for variables of half precision."""
        if self.built:
            return
        super().build(variables)
        with self._adding_moments():
            self._momentums, self._velocities = self.add_optimizer_variables(variables, ["momentum", "velocity"])

    def add_variable(self, shape: Any, initializer: Any = "zeros", dtype: Any = None, **kwargs: Any) -> Any:
        # In float16 the second moment of a gradient below 2e-4 is zero, and in bfloat16 it cannot change by 0.1 %.
        if self._moments_being_added and dtype in ("float16", "bfloat16"):
            dtype = "float32"
        return super().add_variable(shape, initializer, dtype, **kwargs)

    @property
    def warmup_factor(self) -> Any:
        """omega_t of the update that comes next."""
        return self.omega(self.iterations + 1)

    def omega(self, t: Any) -> Any:
        """omega_t: what multiplies the learning rate at update t."""
        return self._factor(t)

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        # Adam moves every row at every update, also those a sparse gradient does not name; and the norm that clipping
        # needs is that of the summed rows.
        super().apply([dense(gradient) for gradient in grads], trainable_variables)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        scalars = learning_rate if isinstance(learning_rate, Scalars) else self._next_scalars(learning_rate)
        if scalars.decay is not None and not self._use_weight_decay(variable):
            scalars = scalars._replace(decay=None)
        index = self._get_variable_index(variable)
        step(self, variable, self._momentums[index], self._velocities[index], gradient, self._betas, scalars)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "warmup": self.warmup,
            "warmup_period": self.warmup_period,
        }

    def _next_scalars(self, learning_rate: Any) -> Scalars:
        return self.scalars(learning_rate, ops.cast(self.iterations + 1, "float32"))

    def scalars(self, learning_rate: Any, t: Any) -> Scalars:
        """Update t, a float32, as rate and "epsilon hat": dividing by sqrt(1 - beta_2^t) moves it out of v_t."""
        rate = ops.cast(learning_rate, "float32")
        warmed = rate * self._factor(t)
        root = ops.sqrt(_one_minus_power(self._betas.second, t))
        unbiased = _one_minus_power(self._betas.first, t)
        return Scalars(warmed * root / unbiased, self.epsilon * root, self._decay(rate, warmed))

    def _decay(self, rate: Any, warmed: Any) -> Any:
        """What weight decay takes of a variable: warmed up, as it is when the warmup comes as a schedule."""
        return None if self.weight_decay is None else warmed * self.weight_decay

    def _backend_update_step(self, grads: Any, trainable_variables: Any, learning_rate: Any) -> None:
        # The scalars of an update are the same for every variable: computed once, they travel as the learning rate.
        super()._backend_update_step(grads, trainable_variables, self._next_scalars(learning_rate))

    def _apply_weight_decay(self, variables: Any) -> None:
        """Nothing: the decay is part of the update, where its factor is known."""

    @contextlib.contextmanager
    def _adding_moments(self) -> Iterator[None]:
        self._moments_being_added = True
        try:
            yield
        finally:
            self._moments_being_added = False


@keras.saving.register_keras_serializable("tfwarmup")
class RAdam(Adam):
    """RAdam, decomposed: `Adam` with RAdam's omega_t as its warmup, and other first steps.

    While rho_t <= rho_threshold, which at the paper's 4 means t <= 4, `first_steps` says what is done: "momentum" is
    RAdam itself (theta_t = theta_{t-1} - alpha m_t / (1 - beta_1^t)), the others are the paper's ablation: "nothing",
    "constant_adam" (Adam at omega_5), "linear_adam" (Adam, warmed up linearly to omega_5).

    Weight decay is decoupled and at the full rate, alpha * weight_decay * theta, as in the other implementations of
    RAdam.

    Args:
        learning_rate, beta_1, beta_2, epsilon, name, **kwargs: As `Adam` has them; beta_2 > 0.6, since below that rho_t
            never exceeds 4.
        first_steps: "momentum", "nothing", "constant_adam" or "linear_adam".
        rho_threshold: Where the momentum phase ends. 5.0 gives the five momentum steps of torch, optax and
            tensorflow-addons.

    >>> [round(float(RAdam(first_steps=rule).warmup_factor), 6) for rule in ("momentum", "constant_adam")]
    [0.0, 0.017312]

    Reference:
        [Liu et al., 2019](https://arxiv.org/abs/1908.03265),
        [Ma and Yarats, 2021](https://arxiv.org/abs/1910.04209)
    """

    def __init__(
        self,
        learning_rate: float | LearningRateSchedule = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        *,
        first_steps: str = "momentum",
        rho_threshold: float = 4.0,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, warmup="radam", name=name, **kwargs)
        self.first_steps = first_steps
        self.rho_threshold = rho_threshold
        self._factor = functools.partial(
            factors.radam, beta_2=beta_2, rho_threshold=rho_threshold, first_steps=first_steps
        )
        self._factor(1)  # checks the arguments, now rather than inside a training step
        self.momentum_steps = factors.momentum_steps(beta_2, rho_threshold) if first_steps == "momentum" else 0

    def get_config(self) -> dict[str, Any]:
        config = {**super().get_config(), "first_steps": self.first_steps, "rho_threshold": self.rho_threshold}
        return {key: value for key, value in config.items() if key not in ("warmup", "warmup_period")}

    def scalars(self, learning_rate: Any, t: Any) -> Scalars:
        adam = super().scalars(learning_rate, t)
        if not self.momentum_steps:
            return adam
        momentum_rate = ops.cast(learning_rate, "float32") / _one_minus_power(self._betas.first, t) * _MOMENTUM_EPSILON
        is_momentum = t <= self.momentum_steps
        return adam._replace(
            rate=ops.where(is_momentum, momentum_rate, adam.rate),
            epsilon=ops.where(is_momentum, _MOMENTUM_EPSILON, adam.epsilon),
        )

    def _decay(self, rate: Any, warmed: Any) -> Any:
        return super()._decay(rate, rate)


def _one_minus_power(beta: float, t: Any) -> Any:
    """1 - beta^t by expm1: in float32 the textbook form has lost four digits at t = 1, beta = 0.999."""
    return -ops.expm1(t * math.log(beta)) if beta else ops.ones_like(t)
