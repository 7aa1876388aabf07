"""Warmups as small frozen objects, which compute omega_t and their effective period, and can be saved.

    from tfwarmup import warmups

    tfwarmup.Adam(1e-3, warmup=warmups.Linear(period=500, initial=0.1))

Every `warmup` argument (of the schedules, `warm_up`, `Adam`, the simulation and `warmup_space`) also accepts a name of
`WARMUPS` or a function of t.
"""

import dataclasses
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
    """T(omega) = sum over t >= 1 of (1 - omega_t): the number of full updates that a warmup costs.

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
