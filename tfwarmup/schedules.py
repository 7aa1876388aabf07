"""Learning rate schedules: any learning rate times a warmup, for any Keras optimizer."""

import inspect
import weakref
from typing import Any

import keras
from keras.optimizers.schedules import LearningRateSchedule

from tfwarmup import checks, compat, warmups
from tfwarmup.compat import ops
from tfwarmup.warmups import Warmup

registered = keras.saving.register_keras_serializable("tfwarmup")


@registered
class WarmupSchedule(LearningRateSchedule):
    """Any learning rate, multiplied by any warmup.

    At update t the rate is `omega_t * learning_rate`. The paper counts updates from 1 and Keras counts steps from 0, so
    t = step + 1 and the first update is not zero.

    Args:
        learning_rate: A number, or any `LearningRateSchedule` (such as a decay) that does not warm up itself.
        warmup: A name of `tfwarmup.WARMUPS`, an object of `tfwarmup.warmups`, or a function of t.
        beta_2: The optimizer's second discount factor, for the untuned warmups and "radam" by name.
        period: The warmup period, for "linear" and "exponential" by name.
        decay_after_warmup: Whether the decay starts after the warmup. The schedule in `learning_rate` then receives the
            number of updates since the end of the warmup (0 before it), and otherwise Keras' own step.
        steps_per_update: The optimizer's `gradient_accumulation_steps`, if it has any. Keras passes the step of the
            micro-batch to a schedule; a warmup counts parameter updates.
        start: The number of updates before the warmup begins, for a warmup that starts in the middle of training.
        **options: Other arguments of a warmup given by its name, such as `initial`.

    >>> schedule = WarmupSchedule(1e-3, "linear", period=10)
    >>> [round(schedule(step), 6) for step in (0, 4, 9, 99)]
    [0.0001, 0.0005, 0.001, 0.001]

    Reference:
        [Ma and Yarats, 2021](https://arxiv.org/abs/1910.04209)
    """

    def __init__(
        self,
        learning_rate: float | LearningRateSchedule,
        warmup: Any = "untuned_linear",
        *,
        beta_2: float | None = None,
        period: float | None = None,
        decay_after_warmup: bool = False,
        steps_per_update: int = 1,
        start: int = 0,
        **options: Any,
    ) -> None:
        super().__init__()
        self.learning_rate = checked_rate(learning_rate)
        self.warmup = _scheduled(warmups.get(warmup, beta_2=beta_2, period=period, **options))
        self.decay_after_warmup = checked_decay(decay_after_warmup, self.learning_rate, self.warmup)
        self.steps_per_update = checks.integer("steps_per_update", steps_per_update, least=1)
        self.start = checks.integer("start", start, least=0)
        refuse_second_warmup(self.learning_rate)

    def __call__(self, step: Any) -> Any:
        return self._rate(step) * self.warmup_factor(step)

    def __repr__(self) -> str:
        return checks.as_call(self, self._arguments())

    def warmup_factor(self, step: Any) -> Any:
        """omega_t at a Keras step: the factor of the learning rate."""
        return self.warmup(self._update(step))

    def get_config(self) -> dict[str, Any]:
        serialized = keras.saving.serialize_keras_object
        return {
            name: serialized(value) if isinstance(value, (LearningRateSchedule, Warmup)) else value
            for name, value in self._arguments().items()
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "WarmupSchedule":
        return cls(**{**config, **deserialized(config, "learning_rate", "warmup")})

    def _rate(self, step: Any) -> Any:
        rate = self.learning_rate
        if not isinstance(rate, LearningRateSchedule):
            return rate
        return rate(updates_after(self._update(step), self.warmup.length) if self.decay_after_warmup else step)

    def _update(self, step: Any) -> Any:
        if not (checks.is_number(step) or hasattr(step, "dtype")):
            raise ValueError(f"`step` must be a number >= 0, an array or a tensor. Received: step={checks.shown(step)}")
        return step // self.steps_per_update + 1 - self.start

    def _arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("learning_rate", *_TIMING, "warmup")}


_TIMING = ("decay_after_warmup", "steps_per_update", "start")


class _OfOneWarmup(WarmupSchedule):
    """A schedule with one kind of warmup, whose arguments are arguments of the schedule."""

    _kind: type[Warmup]

    def __init_subclass__(cls, kind: type[Warmup]) -> None:
        cls._kind = kind
        own = inspect.signature(kind).parameters.values()
        rate, *timing = (inspect.signature(WarmupSchedule).parameters[name] for name in ("learning_rate", *_TIMING))
        cls.__signature__ = inspect.Signature([rate, *own, *timing])  # for `help`

    def __init__(self, learning_rate: float | LearningRateSchedule, *arguments: Any, **options: Any) -> None:
        checks.refuse_foreign(options)
        timing = {name: options.pop(name) for name in _TIMING if name in options}
        super().__init__(learning_rate, self._kind(*arguments, **options), **timing)

    def _arguments(self) -> dict[str, Any]:
        others = {name: value for name, value in super()._arguments().items() if name != "warmup"}
        return {**others, **self.warmup.get_config()}


@registered
class LinearWarmup(_OfOneWarmup, kind=warmups.Linear):
    """omega_t = min(1, t / period).

    Args:
        learning_rate, **timing: See `WarmupSchedule`.
        period, initial, share, updates: See `tfwarmup.warmups.Linear`.

    >>> LinearWarmup(1.0, period=4)(1)
    0.5
    """


@registered
class ExponentialWarmup(_OfOneWarmup, kind=warmups.Exponential):
    """omega_t = 1 - exp(-t / period).

    Args:
        learning_rate, **timing: See `WarmupSchedule`.
        period, initial, share, updates: See `tfwarmup.warmups.Exponential`.

    >>> round(ExponentialWarmup(1.0, period=4)(3), 6)
    0.632121
    """


@registered
class UntunedLinearWarmup(_OfOneWarmup, kind=warmups.UntunedLinear):
    """Linear warmup over 2 / (1 - beta_2) updates: the paper's recommendation, with nothing to tune.

    Args:
        learning_rate, **timing: See `WarmupSchedule`.
        beta_2: The beta_2 of the optimizer. A schedule cannot see it; `tfwarmup.warm_up` reads it from the optimizer.
        initial: The factor to rise from.

    >>> round(UntunedLinearWarmup(1.0, beta_2=0.999)(499), 12)
    0.25
    """


@registered
class UntunedExponentialWarmup(_OfOneWarmup, kind=warmups.UntunedExponential):
    """Exponential warmup with the constant 1 / (1 - beta_2), close to RAdam's in shape.

    Args:
        learning_rate, beta_2, initial, **timing: See `UntunedLinearWarmup`.

    >>> round(UntunedExponentialWarmup(1.0, beta_2=0.999)(999), 6)
    0.632121
    """


@registered
class RAdamWarmup(_OfOneWarmup, kind=warmups.Rectified):
    """RAdam's fixed warmup as a schedule, for an Adam other than this package's. For RAdam, use `tfwarmup.RAdam`.

    A schedule cannot take momentum steps, so three of the paper's four rules for the first four updates are available:
    "nothing" (a rate of 0), "constant_adam" (omega_5) and "linear_adam" (a line to omega_5).

    Args:
        learning_rate, beta_2, initial, **timing: See `UntunedLinearWarmup`.
        first_steps: The rule for the first steps: "nothing", "constant_adam" or "linear_adam".
        rho_threshold: The first steps last while rho_t is at most this. torch, optax and tensorflow-addons use 5.0.

    >>> [round(RAdamWarmup(1.0, 0.999, first_steps="linear_adam")(step), 6) for step in (0, 3, 4)]
    [0.003462, 0.013849, 0.017312]
    """


def checked_rate(learning_rate: Any) -> Any:
    """A learning rate as a schedule or a float."""
    if isinstance(learning_rate, LearningRateSchedule):
        return learning_rate
    if not checks.is_number(learning_rate) or learning_rate < 0:
        raise ValueError(
            "`learning_rate` must be a finite number >= 0 or a `LearningRateSchedule`. Received: "
            f"learning_rate={checks.shown(learning_rate)}"
        )
    return float(learning_rate)


def checked_decay(decay_after_warmup: Any, learning_rate: Any, warmup: Warmup) -> bool:
    """Returns `decay_after_warmup`; raises an error if there is no decay, or if the warmup has no length."""
    if checks.flag("decay_after_warmup", decay_after_warmup):
        if not isinstance(learning_rate, LearningRateSchedule):
            raise ValueError(
                "`decay_after_warmup` needs a `LearningRateSchedule` as the learning rate: a constant does not decay. "
                f"Received: learning_rate={checks.shown(learning_rate)}"
            )
        _ = warmup.length
    return bool(decay_after_warmup)


def updates_after(t: Any, length: float) -> Any:
    """The number of updates since the end of a warmup, at update t: the step of a decay that starts after it.

    >>> [updates_after(t, 10.0) for t in (1, 10, 11)]
    [0.0, 0.0, 1.0]
    """
    if isinstance(t, (int, float)):
        return max(t - length, 0.0)
    return ops.maximum(ops.cast(t, "float32") - length, 0.0)


def warms_up(rate: Any) -> bool:
    """Whether a learning rate has a warmup in it, at any depth: one of this package, or that of `CosineDecay`."""
    if not isinstance(rate, LearningRateSchedule):
        return False
    if isinstance(rate, WarmupSchedule):
        return not isinstance(rate.warmup, warmups.NoWarmup) or warms_up(rate.learning_rate)
    is_cosine = bool(getattr(rate, "warmup_steps", 0)) and getattr(rate, "warmup_target", None) is not None
    return is_cosine or any(warms_up(inner) for inner in vars(rate).values())


def refuse_second_warmup(rate: Any) -> None:
    """Refuses a learning rate with a warmup that is known as one, and warns about one that only rises at first."""
    if warms_up(rate):
        raise ValueError(
            "A learning rate that gets a warmup must not have one already: two would multiply. Received: "
            f"learning_rate={checks.shown(rate)}"
        )
    is_own = isinstance(rate, LearningRateSchedule) and not isinstance(rate, WarmupSchedule)
    if is_own and id(rate) not in _warned_about and rises_at_first(rate):
        _warned_about[id(rate)] = rate
        checks.warn(
            "A learning rate that gets a warmup should not rise in its first steps: that is a warmup too, and both "
            f"multiply. Use one of them. Received: learning_rate={checks.shown(rate)}"
        )


_warned_about: weakref.WeakValueDictionary[int, LearningRateSchedule] = weakref.WeakValueDictionary()


def rises_at_first(schedule: LearningRateSchedule) -> bool:
    """Whether the first change of a schedule, in its first 128 steps, is a rise.

    >>> rises_at_first(keras.optimizers.schedules.CosineDecay(1e-3, 1000))
    False
    """
    first, *later = compat.scheduled_rates(schedule, (0, *(2**power for power in range(8)))) or [0.0]
    # A change of less than one in 10,000 may be due to rounding.
    return next((rate > first for rate in later if abs(rate - first) > 1e-4 * abs(first)), False)


def warmup_schedules(rate: Any) -> list[WarmupSchedule]:
    """The schedules of this package in a learning rate, the outermost first."""
    if not isinstance(rate, LearningRateSchedule):
        return []
    own = [rate] if isinstance(rate, WarmupSchedule) else []
    return own + [schedule for inner in vars(rate).values() for schedule in warmup_schedules(inner)]


def deserialized(config: dict[str, Any], *names: str) -> dict[str, Any]:
    """Deserializes the named entries of a config that are serialized objects."""
    return {
        name: keras.saving.deserialize_keras_object(config[name])
        for name in names
        if isinstance(config.get(name), dict)
    }


def _scheduled(warmup: Warmup) -> Warmup:
    warmup(1)  # an untuned warmup without its beta_2 fails now rather than inside a training step
    if warmup.momentum_steps:
        raise ValueError(
            "`first_steps` of a schedule must be one of nothing, constant_adam, linear_adam: momentum steps need "
            f"an optimizer of this package, such as `tfwarmup.RAdam`. Received: {warmup!r}"
        )
    return warmup
