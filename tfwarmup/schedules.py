"""Learning rate schedules: any learning rate times a warmup factor, for any Keras optimizer."""

import functools
from typing import Any, TypeVar

import keras
from keras.optimizers.schedules import LearningRateSchedule

from tfwarmup import checks, factors
from tfwarmup.compat import ops

OptimizerT = TypeVar("OptimizerT")


@keras.saving.register_keras_serializable("tfwarmup")
class Warmup(LearningRateSchedule):
    """Any learning rate x any warmup of the table `tfwarmup.WARMUPS`.

    At update t the rate is `omega_t * learning_rate`. The paper counts updates from 1 and Keras counts steps from 0, so
    t = step + 1 and the first update is not zero.

    Args:
        learning_rate: A float, or any `LearningRateSchedule` (a decay, say), which is called with Keras' own step.
        warmup: A name of `tfwarmup.WARMUPS`.
        beta_2: The optimizer's second discount factor, for the untuned warmups and "radam".
        period: The warmup period, for "linear" and "exponential".
        steps_per_update: The optimizer's `gradient_accumulation_steps`, if it has any. Keras hands a schedule the step
            of the micro-batch; a warmup counts parameter updates.

    >>> schedule = Warmup(1e-3, "linear", period=10)
    >>> [round(schedule(step), 6) for step in (0, 4, 9, 99)]
    [0.0001, 0.0005, 0.001, 0.001]

    Reference:
        [Ma and Yarats, 2021](https://arxiv.org/abs/1910.04209)
    """

    # The constructor's arguments, which are the attributes and the config too.
    _arguments: tuple[str, ...] = ("learning_rate", "warmup", "beta_2", "period", "steps_per_update")

    def __init__(
        self,
        learning_rate: float | LearningRateSchedule,
        warmup: str = "untuned_linear",
        *,
        beta_2: float | None = None,
        period: float | None = None,
        steps_per_update: int = 1,
    ) -> None:
        super().__init__()
        self.learning_rate = _checked_rate(learning_rate)
        self.warmup = warmup
        self.beta_2 = beta_2
        self.period = period
        self.steps_per_update = checks.integer("steps_per_update", steps_per_update, least=1)
        self._factor = factors.rule(warmup).bind(warmup, beta_2=beta_2, period=period)

    def __call__(self, step: Any) -> Any:
        base = self.learning_rate
        rate = base(step) if isinstance(base, LearningRateSchedule) else base
        return rate * self.factor(step)

    def factor(self, step: Any) -> Any:
        """omega_t at a step of Keras: the multiplier alone."""
        return self._factor(step // self.steps_per_update + 1)

    def get_config(self) -> dict[str, Any]:
        config = {name: getattr(self, name) for name in self._arguments}
        if isinstance(self.learning_rate, LearningRateSchedule):
            config["learning_rate"] = keras.saving.serialize_keras_object(self.learning_rate)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Warmup":
        return cls(**_with_schedule(config, "learning_rate"))


@keras.saving.register_keras_serializable("tfwarmup")
class LinearWarmup(Warmup):
    """omega_t = min(1, t / period).

    >>> LinearWarmup(1.0, period=4)(1)
    0.5
    """

    _arguments = ("learning_rate", "period", "steps_per_update")

    def __init__(
        self, learning_rate: float | LearningRateSchedule, period: float, *, steps_per_update: int = 1
    ) -> None:
        super().__init__(learning_rate, "linear", period=period, steps_per_update=steps_per_update)


@keras.saving.register_keras_serializable("tfwarmup")
class ExponentialWarmup(Warmup):
    """omega_t = 1 - exp(-t / period).

    >>> round(ExponentialWarmup(1.0, period=4)(3), 6)
    0.632121
    """

    _arguments = ("learning_rate", "period", "steps_per_update")

    def __init__(
        self, learning_rate: float | LearningRateSchedule, period: float, *, steps_per_update: int = 1
    ) -> None:
        super().__init__(learning_rate, "exponential", period=period, steps_per_update=steps_per_update)


@keras.saving.register_keras_serializable("tfwarmup")
class UntunedLinearWarmup(Warmup):
    """Linear warmup over 2 / (1 - beta_2) updates: the paper's recommendation, nothing to tune.

    >>> round(UntunedLinearWarmup(1.0, beta_2=0.999)(499), 12)
    0.25
    """

    _arguments = ("learning_rate", "beta_2", "steps_per_update")

    def __init__(
        self, learning_rate: float | LearningRateSchedule, beta_2: float = 0.999, *, steps_per_update: int = 1
    ) -> None:
        super().__init__(learning_rate, "untuned_linear", beta_2=beta_2, steps_per_update=steps_per_update)


@keras.saving.register_keras_serializable("tfwarmup")
class UntunedExponentialWarmup(Warmup):
    """Exponential warmup with the constant 1 / (1 - beta_2), close to RAdam's in shape.

    >>> round(UntunedExponentialWarmup(1.0, beta_2=0.999)(999), 6)
    0.632121
    """

    _arguments = ("learning_rate", "beta_2", "steps_per_update")

    def __init__(
        self, learning_rate: float | LearningRateSchedule, beta_2: float = 0.999, *, steps_per_update: int = 1
    ) -> None:
        super().__init__(learning_rate, "untuned_exponential", beta_2=beta_2, steps_per_update=steps_per_update)


@keras.saving.register_keras_serializable("tfwarmup")
class RAdamWarmup(Warmup):
    """RAdam's fixed warmup as a schedule, for an Adam that is not this package's.

    A learning rate cannot take momentum steps, so for the first four updates there are three of the paper's four rules:
    "nothing" (a rate of 0), "constant_adam" (omega_5) and "linear_adam" (a line to omega_5). For RAdam itself use
    `tfwarmup.RAdam`.

    >>> [round(RAdamWarmup(1.0, 0.999, first_steps="linear_adam")(step), 6) for step in (0, 3, 4)]
    [0.003462, 0.013849, 0.017312]
    """

    _arguments = ("learning_rate", "beta_2", "rho_threshold", "first_steps", "steps_per_update")

    def __init__(
        self,
        learning_rate: float | LearningRateSchedule,
        beta_2: float = 0.999,
        *,
        rho_threshold: float = 4.0,
        first_steps: str = "nothing",
        steps_per_update: int = 1,
    ) -> None:
        if first_steps == "momentum":
            raise ValueError(
                "`first_steps` of a schedule must be one of nothing, constant_adam, linear_adam: momentum steps need "
                "the optimizer `tfwarmup.RAdam`. Received: first_steps='momentum'"
            )
        super().__init__(learning_rate, "radam", beta_2=beta_2, steps_per_update=steps_per_update)
        self.rho_threshold = rho_threshold
        self.first_steps = first_steps
        self._factor = functools.partial(
            factors.radam, beta_2=beta_2, rho_threshold=rho_threshold, first_steps=first_steps
        )
        self._factor(1)  # checks the arguments, now rather than inside a training step


@keras.saving.register_keras_serializable("tfwarmup")
class Delayed(LearningRateSchedule):
    """A schedule that starts `steps` steps late and holds its first value until then: decay after the warmup.

    >>> decay = keras.optimizers.schedules.PiecewiseConstantDecay([1], [1.0, 0.1])
    >>> [float(Delayed(decay, steps=2)(step)) for step in (0, 3, 4)]  # doctest: +ELLIPSIS
    [1.0, 1.0, 0.1...]
    """

    def __init__(self, schedule: LearningRateSchedule, steps: int) -> None:
        super().__init__()
        if not isinstance(schedule, LearningRateSchedule):
            raise ValueError(f"`schedule` must be a `LearningRateSchedule`. Received: schedule={schedule!r}")
        self.schedule = schedule
        self.steps = checks.integer("steps", steps, least=0)

    def __call__(self, step: Any) -> Any:
        if isinstance(step, (int, float)):
            return self.schedule(max(step - self.steps, 0))
        return self.schedule(ops.maximum(step - self.steps, 0))

    def get_config(self) -> dict[str, Any]:
        return {"schedule": keras.saving.serialize_keras_object(self.schedule), "steps": self.steps}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Delayed":
        return cls(**_with_schedule(config, "schedule"))


def warm_up(optimizer: OptimizerT, warmup: str = "untuned_linear", *, period: float | None = None) -> OptimizerT:
    """Gives an existing optimizer a warmup, in place, and returns it: call it before `compile`.

    beta_2, the learning rate (or schedule) and the accumulation steps are read from the optimizer, through a
    `LossScaleOptimizer` too.

    Args:
        optimizer: Any Keras optimizer; for the untuned warmups and "radam", one with Adam's beta_2.
        warmup: A name of `tfwarmup.WARMUPS`.
        period: The warmup period, for "linear" and "exponential".

    >>> optimizer = warm_up(keras.optimizers.AdamW(1e-3, beta_2=0.98))
    >>> round(float(optimizer.learning_rate), 8)  # of the first of 2 / (1 - 0.98) = 100 updates
    1e-05
    """
    inner = getattr(optimizer, "inner_optimizer", None)
    if inner is not None:
        warm_up(inner, warmup, period=period)
        return optimizer
    rate = _current_rate(optimizer)
    config = optimizer.get_config()  # type: ignore[attr-defined]
    _refuse_second_warmup(optimizer, config, rate)
    beta_2 = _second_moment_beta_2(optimizer, config) if factors.rule(warmup).argument == "beta_2" else None
    steps = config.get("gradient_accumulation_steps") or 1
    optimizer.learning_rate = Warmup(  # type: ignore[attr-defined]
        rate, warmup, beta_2=beta_2, period=period, steps_per_update=steps
    )
    return optimizer


def _current_rate(optimizer: Any) -> float | LearningRateSchedule:
    # Keras 3 keeps a schedule in `_learning_rate` and evaluates it in `learning_rate`; Keras 2's older optimizers, and
    # with them tensorflow-addons', have the schedule itself in `learning_rate`.
    rate = getattr(optimizer, "_learning_rate", None)
    if rate is None:
        rate = optimizer.learning_rate
    if isinstance(rate, LearningRateSchedule):
        return rate
    if callable(rate):
        raise ValueError(
            "`warm_up` needs an optimizer whose learning rate is a number or a `LearningRateSchedule`. Received: "
            f"learning_rate={rate!r}"
        )
    return float(optimizer.get_config()["learning_rate"])


def _refuse_second_warmup(optimizer: Any, config: dict[str, Any], rate: Any) -> None:
    own = config.get("warmup", "radam" if "first_steps" in config else None)
    if own is not None or isinstance(rate, Warmup):
        raise ValueError(
            "`warm_up` needs an optimizer without a warmup: two would multiply. Received: "
            f"{type(optimizer).__name__} with warmup {own or rate.warmup!r}"
        )


def _second_moment_beta_2(optimizer: Any, config: dict[str, Any]) -> float:
    # Lion has a beta_2, but it is the discount of its momentum: there is no second moment to warm up for.
    if "beta_2" not in config or type(optimizer).__name__ == "Lion":
        raise ValueError(
            "An untuned warmup follows from the `beta_2` of the optimizer's second moment, as Adam, AdamW, Nadam and "
            "Lamb have it; without one, use warmup='linear' or 'exponential' with a `period`. Received: "
            f"optimizer={type(optimizer).__name__}"
        )
    return float(config["beta_2"])


def _with_schedule(config: dict[str, Any], key: str) -> dict[str, Any]:
    value = config[key]
    if isinstance(value, dict):
        value = keras.saving.deserialize_keras_object(value)
    return {**config, key: value}


def _checked_rate(learning_rate: Any) -> Any:
    if isinstance(learning_rate, LearningRateSchedule):
        return learning_rate
    if not checks.is_number(learning_rate) or learning_rate < 0:
        raise ValueError(
            "`learning_rate` must be a finite number >= 0 or a `LearningRateSchedule`. Received: "
            f"learning_rate={learning_rate!r}"
        )
    return learning_rate
