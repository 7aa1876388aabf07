"""Warmups as small frozen objects, which compute omega_t and their effective period, and can be saved.

    from tfwarmup import warmups

    tfwarmup.Adam(1e-3, warmup=warmups.Linear(period=500, initial=0.1))

Every `warmup` argument (of the schedules, `warm_up`, `Adam`, the simulation and `warmup_space`) also accepts a name of
`WARMUPS` or a function of t.
"""

import inspect
from typing import Any

from keras.optimizers.schedules import LearningRateSchedule

from tfwarmup import checks
from tfwarmup.warmups.base import NoWarmup, Warmup
from tfwarmup.warmups.custom import Custom
from tfwarmup.warmups.dynamic import Dynamic
from tfwarmup.warmups.rules import Exponential, Linear, Rectified, Root, Tuned, UntunedExponential, UntunedLinear

__all__ = [
    "WARMUPS",
    "Custom",
    "Dynamic",
    "Exponential",
    "Linear",
    "NoWarmup",
    "Rectified",
    "Root",
    "UntunedExponential",
    "UntunedLinear",
    "Warmup",
    "effective_warmup_period",
    "get",
    "split_options",
    "takes_period",
]

# The names in flags, configs, sweeps and reports. A new warmup needs a function, a class, a line here and a golden row.
WARMUPS: dict[str, type[Warmup]] = {
    "none": NoWarmup,
    "linear": Linear,
    "exponential": Exponential,
    "untuned_linear": UntunedLinear,
    "untuned_exponential": UntunedExponential,
    "radam": Rectified,
    "root": Root,
    "dynamic": Dynamic,
}


def takes_period(name: str) -> bool:
    """Whether the warmup of that name has a period to tune.

    >>> [name for name in WARMUPS if takes_period(name)]
    ['linear', 'exponential']
    """
    return issubclass(WARMUPS[name], Tuned)


def get(warmup: Any, **options: Any) -> Warmup:
    """Returns the warmup object for a name of `WARMUPS`, a function of t, or a warmup object itself.

    Args:
        warmup: A name, a function of t, or a warmup object.
        **options: Arguments of a named warmup, such as `period`; `None` counts as not given. An argument that the
            warmup does not take is an error, and so is any argument that is passed along with a warmup object.

    >>> get("linear", period=100)
    Linear(period=100.0)
    """
    checks.refuse_foreign(options)
    options = {name: value for name, value in options.items() if value is not None}
    if isinstance(warmup, str) and warmup in WARMUPS:
        return _named(warmup, options)
    if not (isinstance(warmup, Warmup) or callable(warmup)) or isinstance(warmup, (type, LearningRateSchedule)):
        raise ValueError(
            f"`warmup` must be one of {', '.join(WARMUPS)}, an object of `tfwarmup.warmups`, or a function of t"
            f"{_guess(warmup)}. Received: warmup={checks.shown(warmup)}"
        )
    if options:
        raise ValueError(f"Only a warmup given by its name takes arguments. Received: warmup={warmup!r} with {options}")
    return warmup if isinstance(warmup, Warmup) else Custom(warmup)


def _guess(warmup: Any) -> str:
    """What was probably meant: a period instead of a name, or a name in another spelling."""
    if checks.is_number(warmup):
        return f"; a linear warmup over {warmup} updates is `warmup='linear', period={warmup}`"
    spelled = str(warmup).replace("_", "").replace("-", "").replace(" ", "").lower()
    return "".join(f"; did you mean {name!r}" for name in WARMUPS if name.replace("_", "") == spelled)


def split_options(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments that belong to a warmup given by name, and the others."""
    names = {name for warmup in WARMUPS.values() for name in _arguments(warmup)}
    own = {name: value for name, value in arguments.items() if name in names}
    return own, {name: value for name, value in arguments.items() if name not in names}


def _named(name: str, options: dict[str, Any]) -> Warmup:
    for option, value in options.items():
        if option not in _arguments(WARMUPS[name]):
            raise ValueError(f"Warmup {name!r} takes no `{option}`. Received: {option}={checks.shown(value)}")
    return WARMUPS[name](**options)


def _arguments(warmup: type[Warmup]) -> tuple[str, ...]:
    return tuple(inspect.signature(warmup).parameters)


def effective_warmup_period(
    warmup: Any, *, beta_2: float | None = None, period: float | None = None, **options: Any
) -> float:
    """T(omega) = sum over t >= 1 of (1 - omega_t): the number of full updates that a warmup costs.

    Args:
        warmup: A name of `tfwarmup.WARMUPS`, an object of `tfwarmup.warmups`, or a function of t.
        beta_2: Adam's second discount factor, for the untuned warmups and "radam".
        period: The period, for "linear" and "exponential".
        **options: Other arguments of a warmup given by its name, such as `initial`.

    >>> round(effective_warmup_period("radam", beta_2=0.999), 4)
    1033.3247
    >>> round(effective_warmup_period(Linear(period=2000)), 4)
    999.5
    """
    return get(warmup, beta_2=beta_2, period=period, **options).effective_period
