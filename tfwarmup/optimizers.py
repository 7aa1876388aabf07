"""Adam as the paper writes it, and RAdam as the paper reads it: momentum steps, then Adam with a fixed warmup."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import keras
from keras.optimizers.schedules import LearningRateSchedule

from tfwarmup import checks, compat, formula, warmups
from tfwarmup.compat import Optimizer, ops
from tfwarmup.distribution import let_replicas_agree, summed_over_replicas
from tfwarmup.schedules import (
    checked_decay,
    checked_rate,
    deserialized,
    refuse_second_warmup,
    updates_after,
    warmup_schedules,
)
from tfwarmup.steps import Scalars, dense, not_compiled, on_host, rounded_betas, step, step_together
from tfwarmup.warmups import Warmup


@keras.saving.register_keras_serializable("tfwarmup")
class Adam(Optimizer):
    """Adam as in equations 2 to 4 of the paper, with an optional warmup inside the update.

        m_t = beta_1 m_{t-1} + (1 - beta_1) g_t
        v_t = beta_2 v_{t-1} + (1 - beta_2) g_t^2
        theta_t = theta_{t-1} - omega_t alpha [m_t / (1 - beta_1^t)] / [sqrt(v_t / (1 - beta_2^t)) + epsilon]

    `epsilon` is added after the bias correction (Keras' Adam adds it before: "epsilon hat"). Weight decay is decoupled:
    theta also loses `omega_t * alpha * weight_decay * theta`.

    Because omega_t multiplies inside, `learning_rate` stays a variable: `ReduceLROnPlateau` and `LearningRateScheduler`
    work together with the warmup. It counts updates, whatever `gradient_accumulation_steps` is. Under `tf.distribute`
    the gradients of the replicas are summed before they are clipped.

    Args:
        learning_rate: A number, or a `LearningRateSchedule`.
        beta_1: The discount of the first moment, in [0, 1).
        beta_2: The discount of the second moment, in (0, 1).
        epsilon: The paper's epsilon, >= 0.
        warmup: A name of `tfwarmup.WARMUPS`, an object of `tfwarmup.warmups`, a function of t, or `None`. Untuned
            warmups get this optimizer's `beta_2`.
        period: The warmup period, for "linear" and "exponential" by name.
        decay_after_warmup: Whether a schedule in `learning_rate` waits for the warmup: it is then called with the
            number of updates since the warmup's end.
        name: The optimizer's name.
        **kwargs: What every Keras optimizer takes: `weight_decay` (here a schedule too), `clipnorm`, `clipvalue`,
            `global_clipnorm`, `use_ema`, `ema_momentum`, `ema_overwrite_frequency`, `loss_scale_factor`,
            `gradient_accumulation_steps`.

    >>> optimizer = Adam(1e-3, warmup="untuned_linear")
    >>> round(float(optimizer.warmup_factor), 8), round(optimizer.get_config()["learning_rate"], 8)
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
        warmup: Any = None,
        period: float | None = None,
        decay_after_warmup: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        rate, beta_2 = checked_rate(learning_rate), checks.beta_2(beta_2)
        rule = warmups.get("none" if warmup is None else warmup, period=period).with_beta_2(beta_2)
        decay_waits = checked_decay(decay_after_warmup, rate, rule)
        _check_schedules(rate, rule, beta_2)
        super().__init__(learning_rate=rate, name=name, **_checked_options(kwargs))
        self.beta_1 = checks.beta_1(beta_1)
        self.beta_2 = beta_2
        self.epsilon = checks.not_negative("epsilon", epsilon)
        self.warmup: Warmup = rule
        self.decay_after_warmup = decay_waits
        # How many updates had been made when the warmup began. A variable, so that a train function which was compiled
        # before a restart sees it, and so that it is saved.
        self.warmup_start = self.add_variable(shape=(), initializer="zeros", dtype="int", name="warmup_start")
        self._betas = rounded_betas(self.beta_1, beta_2)
        self._moments_being_added = False

    def build(self, variables: Sequence[Any]) -> None:
        """Makes the two moments of every variable, in float32 for variables of half precision."""
        if self.built:
            return
        let_replicas_agree()
        super().build(variables)
        with self._adding_moments():
            self._momentums, self._velocities = self.add_slots(variables, ["momentum", "velocity"])

    def add_variable(self, shape: Any, initializer: Any = "zeros", dtype: Any = None, **kwargs: Any) -> Any:
        # In float16 the second moment of a gradient below 2e-4 is zero, and in bfloat16 it cannot change by 0.1 %.
        if getattr(self, "_moments_being_added", False) and dtype in ("float16", "bfloat16"):
            dtype = "float32"
        return super().add_variable(shape, initializer, dtype, **kwargs)

    @property
    def learning_rate(self) -> Any:
        """alpha of the update that comes next, without the warmup factor."""
        if not self.decay_after_warmup:
            return super().learning_rate
        return self._decayed(self._update_of_warmup)

    @learning_rate.setter
    def learning_rate(self, learning_rate: Any) -> None:
        Optimizer.learning_rate.fset(self, learning_rate)

    @property
    def warmup_factor(self) -> Any:
        """omega_t of the update that comes next."""
        return self.warmup(self._update_of_warmup)

    def restart_warmup(self, warmup: Warmup | None = None) -> None:
        """Starts the warmup again at the next update; the moments stay as they are.

        A train function that was compiled before sees it, since what changes is a variable. Another `warmup` than the
        one the optimizer has needs `tfwarmup.restart_warmup(model, warmup)`, which compiles again.
        """
        if warmup is not None:
            self.warmup = warmup
        if isinstance(self.warmup, warmups.NoWarmup):
            raise ValueError(f"`restart_warmup` needs an optimizer with a warmup. Received: {self!r}")
        self.warmup_start.assign(compat.next_update(self) - 1)

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        # Adam moves every row at every update, also those a sparse gradient does not name; and the norm that clipping
        # needs is that of the summed rows, over all replicas.
        variables = compat.variables_of(self) if trainable_variables is None else list(trainable_variables)
        full = [dense(gradient, variable) for gradient, variable in zip(grads, variables, strict=False)]
        # Too many or too few gradients are Keras' to refuse.
        super().apply(summed_over_replicas([*full, *grads[len(full) :]]), trainable_variables)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        scalars = learning_rate if isinstance(learning_rate, Scalars) else self._next_scalars(learning_rate)
        if not self.uses_weight_decay(variable):
            scalars = scalars._replace(decay=None)
        index = compat.variable_index(self, variable)
        step(self, variable, self._momentums[index], self._velocities[index], gradient, self._betas, scalars)

    def get_config(self) -> dict[str, Any]:
        config = {
            **super().get_config(),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "warmup": keras.saving.serialize_keras_object(self.warmup),
            "decay_after_warmup": self.decay_after_warmup,
        }
        if isinstance(self.weight_decay, LearningRateSchedule):
            config["weight_decay"] = keras.saving.serialize_keras_object(self.weight_decay)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> "Adam":
        with keras.saving.CustomObjectScope(custom_objects or {}):
            return cls(**{**config, **deserialized(config, "learning_rate", "warmup", "weight_decay")})

    def __repr__(self) -> str:
        options = {"learning_rate": compat.shown_rate(self), "beta_1": self.beta_1, "beta_2": self.beta_2}
        shown = ", ".join(f"{name}={value}" for name, value in options.items())
        return f"{type(self).__name__}({shown}, epsilon={self.epsilon}, warmup={self.warmup!r})"

    def scalars(self, learning_rate: Any, t: Any, warmup_start: Any = 0) -> Scalars:
        """What update t needs besides variables, moments and gradients: floats, or float32 tensors if t is one."""
        numbers = self.update_numbers(learning_rate, t, warmup_start)
        scalars = Scalars(numbers.rate, numbers.epsilon, self._decay(learning_rate, numbers.warmed))
        if isinstance(t, float):
            return Scalars(*(None if number is None else float(number) for number in scalars))
        return scalars

    def update_numbers(self, alpha: Any, t: Any, warmup_start: Any = 0) -> formula.Update:
        """The paper's formula with this optimizer's hyperparameters."""
        return formula.update(alpha, t, self.warmup, self._betas.first, self._betas.second, self.epsilon, warmup_start)

    def rate_at(self, t: int) -> Any:
        """alpha of update t = 1, 2, 3, ..., without the warmup factor."""
        if self.decay_after_warmup:
            return self._decayed(t - int(ops.convert_to_numpy(self.warmup_start)))
        return compat.rate_at(self, t)

    def _decayed(self, update_of_warmup: Any) -> Any:
        return compat.learning_rate_of(self)(updates_after(update_of_warmup, self.warmup.length))

    @property
    def _update_of_warmup(self) -> Any:
        """The next update, counted from the warmup's own beginning."""
        return compat.next_update(self) - ops.convert_to_tensor(self.warmup_start)

    def _next_scalars(self, learning_rate: Any) -> Scalars:
        numbers = (learning_rate, compat.next_update(self), self.warmup_start)
        if on_host is not None:
            return self.scalars(*on_host(*numbers))
        return self.scalars(*(ops.cast(number, "float32") for number in numbers))

    def _decay(self, alpha: Any, warmed: Any) -> Any:
        """What weight decay takes of a variable: warmed up, as it is when the warmup comes as a schedule."""
        return None if self.weight_decay is None else warmed * self._weight_decay_now()

    def _weight_decay_now(self) -> Any:
        if not isinstance(self.weight_decay, LearningRateSchedule):
            return self.weight_decay
        decay = self.weight_decay(compat.step_counter(self))
        return decay if on_host is None else on_host(decay)[0]

    @not_compiled
    def update_variables(self, grads: Any, variables: Any, learning_rate: Any) -> None:
        scalars = self._next_scalars(learning_rate)
        if step_together is None:
            # The scalars of an update are the same for every variable: computed once, they travel as the learning rate.
            super().update_variables(grads, variables, scalars)
            return
        places = [compat.variable_index(self, variable) for variable in variables]
        momentums, velocities = (
            [moments[place] for place in places] for moments in (self._momentums, self._velocities)
        )
        are_decayed = [self.uses_weight_decay(variable) for variable in variables]
        step_together(variables, momentums, velocities, grads, are_decayed, self._betas, scalars)

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

    warmup: warmups.Rectified

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
        for option in ("warmup", "period"):
            if kwargs.get(option) is not None:
                raise ValueError(
                    f"`RAdam` has a warmup of its own and takes no `{option}`: two would multiply. For another warmup "
                    f"use `tfwarmup.Adam`. Received: {option}={checks.shown(kwargs[option])}"
                )
        warmup = warmups.Rectified(checks.beta_2(beta_2), first_steps, rho_threshold)
        super().__init__(learning_rate, beta_1, beta_2, epsilon, warmup=warmup, name=name, **kwargs)

    @property
    def first_steps(self) -> str:
        return self.warmup.first_steps

    @property
    def rho_threshold(self) -> float:
        return self.warmup.rho_threshold

    def get_config(self) -> dict[str, Any]:
        config = {**super().get_config(), "first_steps": self.first_steps, "rho_threshold": self.rho_threshold}
        del config["warmup"]
        return config

    def _decay(self, alpha: Any, warmed: Any) -> Any:
        return super()._decay(alpha, alpha)


def _checked_options(options: dict[str, Any]) -> dict[str, Any]:
    """What every Keras optimizer takes, where Keras itself would take anything."""
    decay = options.get("weight_decay")
    if decay is not None and not isinstance(decay, LearningRateSchedule):
        options = {**options, "weight_decay": checks.not_negative("weight_decay", decay)}
    for name in ("clipnorm", "clipvalue", "global_clipnorm", "loss_scale_factor"):
        if options.get(name) is not None:
            options = {**options, name: checks.positive(name, options[name])}
    if options.get("gradient_accumulation_steps") is not None:
        checks.integer("gradient_accumulation_steps", options["gradient_accumulation_steps"], least=2)
    return options


def _check_schedules(rate: Any, warmup: Warmup, beta_2: float) -> None:
    """Refuses a second warmup, and a schedule that follows from another beta_2 than this optimizer's."""
    if not isinstance(warmup, warmups.NoWarmup):
        refuse_second_warmup(rate)
    for schedule in warmup_schedules(rate):
        schedule.warmup.with_beta_2(beta_2)
