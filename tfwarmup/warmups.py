"""Warmups: small frozen objects that know omega_t, their effective period, and how to be saved.

    from tfwarmup import warmups

    tfwarmup.Adam(1e-3, warmup=warmups.Linear(period=500, initial=0.1))

Wherever a warmup is taken (schedules, `warm_up`, `Adam(warmup=...)`, the simulation, `warmup_space`), a name of
`WARMUPS` is a shorthand for one, and a function of t is one too.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Self

import keras
import numpy as np
from keras.optimizers.schedules import LearningRateSchedule

from tfwarmup import checks, factors

_registered = keras.saving.register_keras_serializable("tfwarmup")


@dataclasses.dataclass(frozen=True, repr=False)
class Warmup:
    """A warmup: call it with the update t = 1, 2, 3, ... and it answers omega_t, the factor of the learning rate.

    t may be a number, a numpy array or a tensor, as in `tfwarmup.factors`.

    Args:
        initial: The factor to rise from, in [0, 1). With it, omega_t is `1 - (1 - initial) (1 - omega_t)`.
    """

    initial: float = dataclasses.field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        self._set(initial=checks.initial_factor(self.initial))

    def __call__(self, t: Any) -> Any:
        """omega_t, in [0, 1]."""
        factor = self._rule(t)
        return 1 - (1 - self.initial) * (1 - factor) if self.initial else factor

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in vars(self).items() if name != "initial" or value]
        return f"{type(self).__name__}({', '.join(shown)})"

    @property
    def effective_period(self) -> float:
        """T(omega), the sum over t >= 1 of 1 - omega_t: how many updates' worth of learning the warmup takes away."""
        return (1 - self.initial) * self._effective_period()

    @property
    def length(self) -> float:
        """How many updates it takes: a decay that waits for the warmup waits so long.

        For a warmup that approaches 1 and never reaches it, this is the length of the linear warmup whose effective
        period is about the same.
        """
        raise NotImplementedError

    @property
    def momentum_steps(self) -> int:
        """How many of the first updates are momentum steps in place of Adam's. Only `Rectified` has any."""
        return 0

    @property
    def needs_beta_2(self) -> bool:
        """Whether it follows from the beta_2 of an optimizer."""
        return False

    def with_beta_2(self, beta_2: float) -> "Warmup":
        """This warmup for an optimizer with that `beta_2`; an error if it was made for another."""
        return self

    def get_config(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)

    def _rule(self, t: Any) -> Any:
        """omega_t without the initial factor."""
        raise NotImplementedError

    def _effective_period(self) -> float:
        """The effective period without the initial factor."""
        raise NotImplementedError

    def _set(self, **values: Any) -> None:
        # What a frozen dataclass has to do to keep a checked value in place of the given one.
        for name, value in values.items():
            object.__setattr__(self, name, value)


@_registered
@dataclasses.dataclass(frozen=True, repr=False)
class NoWarmup(Warmup):
    """omega_t = 1: the control.

    >>> NoWarmup()(1)
    1.0
    """

    def __post_init__(self) -> None:
        if self.initial:
            raise ValueError(f"A warmup that is none has no initial factor. Received: initial={self.initial!r}")

    @property
    def length(self) -> float:
        return 0.0

    def _rule(self, t: Any) -> Any:
        return factors.none(t)

    def _effective_period(self) -> float:
        return 0.0


@dataclasses.dataclass(frozen=True, repr=False)
class _Tuned(Warmup):
    """A warmup with a period of the user's choice."""

    period: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(period=checks.positive("period", self.period))


@_registered
@dataclasses.dataclass(frozen=True, repr=False)
class Linear(_Tuned):
    """omega_t = min(1, t / period).

    >>> Linear(period=2000)(500)
    0.25
    >>> round(Linear(period=2000, initial=0.2)(500), 12)
    0.4
    """

    @property
    def length(self) -> float:
        return self.period

    def _rule(self, t: Any) -> Any:
        return factors.linear(t, self.period)

    def _effective_period(self) -> float:
        return factors.linear_effective_period(self.period)


@_registered
@dataclasses.dataclass(frozen=True, repr=False)
class Exponential(_Tuned):
    """omega_t = 1 - exp(-t / period).

    >>> round(Exponential(period=1000)(1000), 6)
    0.632121
    """

    @property
    def length(self) -> float:
        return 2 * self.period

    def _rule(self, t: Any) -> Any:
        return factors.exponential(t, self.period)

    def _effective_period(self) -> float:
        return factors.exponential_effective_period(self.period)


@dataclasses.dataclass(frozen=True, repr=False)
class _Untuned(Warmup):
    """A warmup that follows from the optimizer's beta_2. `None` stands for that of the optimizer that gets it."""

    beta_2: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta_2 is not None:
            self._set(beta_2=checks.beta_2(self.beta_2))

    @property
    def length(self) -> float:
        return factors.untuned_linear_period(self._known_beta_2)

    @property
    def needs_beta_2(self) -> bool:
        return True

    def with_beta_2(self, beta_2: float) -> Self:
        if self.beta_2 is None:
            return dataclasses.replace(self, beta_2=beta_2)
        if self.beta_2 != beta_2:
            raise ValueError(
                f"A warmup that follows from `beta_2` must have that of its optimizer, {beta_2}. Received: {self!r}"
            )
        return self

    @property
    def _known_beta_2(self) -> float:
        if self.beta_2 is None:
            raise ValueError(
                f"`{type(self).__name__}` needs the `beta_2` of the optimizer that it is for. Received: beta_2=None"
            )
        return self.beta_2


@_registered
@dataclasses.dataclass(frozen=True, repr=False)
class UntunedLinear(_Untuned):
    """omega_t = min(1, t (1 - beta_2) / 2): linear over 2 / (1 - beta_2) updates, the paper's recommendation.

    >>> round(UntunedLinear(beta_2=0.999)(500), 12)
    0.25
    """

    def _rule(self, t: Any) -> Any:
        return factors.untuned_linear(t, self._known_beta_2)

    def _effective_period(self) -> float:
        return factors.linear_effective_period(self.length)


@_registered
@dataclasses.dataclass(frozen=True, repr=False)
class UntunedExponential(_Untuned):
    """omega_t = 1 - exp(-(1 - beta_2) t): exponential with the constant 1 / (1 - beta_2).

    >>> round(UntunedExponential(beta_2=0.999)(1000), 6)
    0.632121
    """

    def _rule(self, t: Any) -> Any:
        return factors.untuned_exponential(t, self._known_beta_2)

    def _effective_period(self) -> float:
        return factors.exponential_effective_period(factors.untuned_exponential_period(self._known_beta_2))


@_registered
@dataclasses.dataclass(frozen=True, repr=False)
class Rectified(_Untuned):
    """RAdam's fixed warmup, omega_t = sqrt((rho_t - 4)(rho_t - 2) rho_inf / ((rho_inf - 4)(rho_inf - 2) rho_t)).

    While rho_t <= rho_threshold, which at the paper's 4 means t <= 4, `first_steps` says what is done: "nothing"
    (omega_t = 0), "constant_adam" (omega_5), "linear_adam" (a line to omega_5), or "momentum", RAdam's own, which is a
    step of another kind and needs an optimizer of this package.

    >>> round(Rectified(beta_2=0.999)(2000), 6)
    0.82839
    """

    first_steps: str = "nothing"
    rho_threshold: float = 4.0

    def __post_init__(self) -> None:
        checks.choice("first_steps", self.first_steps, factors.FIRST_STEPS)
        self._set(rho_threshold=factors.checked_threshold(self.rho_threshold))
        super().__post_init__()
        if self.beta_2 is not None:
            factors.momentum_steps(self.beta_2, self.rho_threshold)  # refuses a beta_2 that is too small

    @property
    def momentum_steps(self) -> int:
        if self.first_steps != "momentum":
            return 0
        return factors.momentum_steps(self._known_beta_2, self.rho_threshold)

    def _rule(self, t: Any) -> Any:
        return factors.radam(t, self._known_beta_2, self.rho_threshold, self.first_steps)

    def _effective_period(self) -> float:
        return factors.radam_effective_period(self._known_beta_2, self.rho_threshold, self.first_steps)


@_registered
@dataclasses.dataclass(frozen=True, repr=False)
class Custom(Warmup):
    """A function of t as a warmup. To load what was saved with it, register the function with Keras.

    Args:
        function: omega_t in [0, 1] for t = 1, 2, 3, ..., written with `keras.ops` or plain arithmetic: it gets numbers
            and tensors.
        period: How many updates the warmup takes, for a decay that waits for its end.

    >>> @keras.saving.register_keras_serializable("docs")
    ... def square_root(t):
    ...     return keras.ops.minimum(1.0, keras.ops.sqrt(t / 100.0))
    >>> round(float(Custom(square_root)(25.0)), 6)
    0.5
    """

    function: Callable[[Any], Any]
    period: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.period is not None:
            self._set(period=checks.positive("period", self.period))
        _check_function(self.function)

    @property
    def length(self) -> float:
        if self.period is None:
            raise ValueError(f"The length of a warmup of your own must be given, as `period`. Received: {self!r}")
        return self.period

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "function": keras.saving.serialize_keras_object(self.function)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        function = config["function"]
        if not callable(function):
            function = keras.saving.deserialize_keras_object(function)
        return cls(**{**config, "function": function})

    def _rule(self, t: Any) -> Any:
        if not hasattr(t, "dtype"):
            factors.real(t)  # refuses what is no number
        is_array = isinstance(t, np.ndarray) and t.ndim
        return np.array([float(self.function(one)) for one in t.tolist()]) if is_array else self.function(t)

    def _effective_period(self) -> float:
        """Added up until nothing is added any more."""
        total, first = 0.0, 1
        while first < _LONGEST:
            block = np.arange(float(first), 2.0 * first)
            missing = float(np.sum(1 - self._rule(block)))
            total, first = total + missing, 2 * first
            if first > 1000 and missing <= 1e-9 * max(total, 1.0):
                return total
        raise ValueError(
            f"The effective period needs a warmup that reaches 1 within {_LONGEST} updates. Received: {self!r}"
        )


# As far as a warmup of the user's own is followed: a minute of Python.
_LONGEST = 2**22


def _check_function(function: Any) -> None:
    rule = "A warmup of your own must be a function of t with values in [0, 1]."
    if not callable(function) or isinstance(function, (type, LearningRateSchedule)):
        raise ValueError(f"{rule} Received: {checks.shown(function)}")
    for t in (1.0, 2.0, 1e3, 1e6):
        try:
            value = float(function(t))
        except Exception as error:
            raise ValueError(f"{rule} Received: {checks.shown(function)}, which at t={t} raised {error!r}") from error
        if not 0 <= value <= 1:
            raise ValueError(f"{rule} Received: {checks.shown(function)}, which is {value} at t={t}")


# The names of flags, configs, sweeps and reports: a new warmup is one function, one class, one line and one golden row.
WARMUPS: dict[str, type[Warmup]] = {
    "none": NoWarmup,
    "linear": Linear,
    "exponential": Exponential,
    "untuned_linear": UntunedLinear,
    "untuned_exponential": UntunedExponential,
    "radam": Rectified,
}


def takes_period(name: str) -> bool:
    """Whether the warmup of that name has a period to tune.

    >>> [name for name in WARMUPS if takes_period(name)]
    ['linear', 'exponential']
    """
    return issubclass(WARMUPS[name], _Tuned)


def get(warmup: Any, **options: Any) -> Warmup:
    """The warmup that a name of `WARMUPS`, a function of t, or a warmup itself stands for.

    Args:
        warmup: One of these.
        **options: Arguments of a named warmup, such as `period`; `None` is as if not given. One that the warmup does
            not take is an error, and so is any that comes with a warmup object, which has its own.

    >>> get("linear", period=100)
    Linear(period=100.0)
    """
    options = {name: value for name, value in options.items() if value is not None}
    if isinstance(warmup, str):
        return _named(checks.choice("warmup", warmup, WARMUPS), options)
    if not (isinstance(warmup, Warmup) or callable(warmup)) or isinstance(warmup, (type, LearningRateSchedule)):
        raise ValueError(
            f"`warmup` must be one of {', '.join(WARMUPS)}, an object of `tfwarmup.warmups`, or a function of t. "
            f"Received: warmup={checks.shown(warmup)}"
        )
    if options:
        raise ValueError(f"Only a warmup given by its name takes arguments. Received: warmup={warmup!r} with {options}")
    return warmup if isinstance(warmup, Warmup) else Custom(warmup)


def _named(name: str, options: dict[str, Any]) -> Warmup:
    fields = {field.name: field for field in dataclasses.fields(WARMUPS[name])}
    for option, value in options.items():
        if option not in fields:
            raise ValueError(f"Warmup {name!r} takes no `{option}`. Received: {option}={checks.shown(value)}")
    for field in fields.values():
        if field.default is dataclasses.MISSING and field.name not in options:
            raise ValueError(f"Warmup {name!r} needs `{field.name}`. Received: {field.name}=None")
    return WARMUPS[name](**options)


def effective_warmup_period(warmup: Any, *, beta_2: float | None = None, period: float | None = None) -> float:
    """T(omega) = sum over t >= 1 of (1 - omega_t): how many updates' worth of learning a warmup takes away.

    Args:
        warmup: A name of `tfwarmup.WARMUPS`, an object of `tfwarmup.warmups`, or a function of t.
        beta_2: Adam's second discount factor, for the untuned warmups and "radam".
        period: The period, for "linear" and "exponential".

    >>> round(effective_warmup_period("radam", beta_2=0.999), 4)
    1033.3247
    >>> round(effective_warmup_period(Linear(period=2000)), 4)
    999.5
    """
    return get(warmup, beta_2=beta_2, period=period).effective_period
