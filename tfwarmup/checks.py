"""Checks of arguments: each returns the value, or raises a `ValueError` with the rule and the value received.

Numbers are returned as Python's `float` and `int`, whatever their type, so that every object can be saved.
"""

import inspect
import math
import numbers
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def is_number(value: Any) -> bool:
    """Whether a value is a finite real number, and not a bool."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # an integer or a fraction too large for a float
        return False


def integer(name: str, value: Any, least: int) -> int:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"`{name}` must be an integer >= {least}. Received: {name}={shown(value)}")
    return int(value)


def positive(name: str, value: Any) -> float:
    return _number(name, value, lambda number: number > 0, "a finite number > 0")


def not_negative(name: str, value: Any) -> float:
    return _number(name, value, lambda number: number >= 0, "a finite number >= 0")


def fraction(name: str, value: Any) -> float:
    """A discount of the first moment, or the factor that a warmup rises from: it may be 0, but not 1."""
    return _number(name, value, lambda number: 0 <= number < 1, "a number in [0, 1)")


def beta_2(value: Any) -> float:
    return _number("beta_2", value, lambda number: 0 < number < 1, "a number in (0, 1)")


def _number(name: str, value: Any, holds: Callable[[float], bool], rule: str) -> float:
    if not (is_number(value) and holds(float(value))):
        raise ValueError(f"`{name}` must be {rule}. Received: {name}={shown(value)}")
    return float(value)


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"`{name}` must be True or False. Received: {name}={shown(value)}")
    return value


def choice(name: str, value: Any, choices: Iterable[str]) -> str:
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(choices)}. Received: {name}={shown(value)}")
    return value


def warn(message: str) -> None:
    """Warns at the line of the user's code that led here: the first one outside of this package and its backend."""
    frame, level = inspect.currentframe(), 1
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] in ("tfwarmup", "keras", "tensorflow"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


# Arguments of other packages, and what to use here.
_ELSEWHERE = {
    "lr": "use `learning_rate`",
    "betas": "use `beta_1` and `beta_2`",
    "eps": "use `epsilon`",
    **dict.fromkeys(("warmup_steps", "num_warmup_steps", "warmup_period"), "use `warmup='linear'` and `period`"),
    **dict.fromkeys(("total_steps", "warmup_proportion", "min_lr", "decay"), "use `tfwarmup.schedule`, with `updates`"),
    "warmup_ratio": "use `warmup='linear'`, `share` and `updates`",
    "sma_threshold": "use `rho_threshold` of `tfwarmup.RAdam`",
    "amsgrad": "there is no AMSGrad; `clip_update_rms=True` also holds back large updates",
}


def refuse_foreign(arguments: Mapping[str, Any]) -> None:
    """Refuses arguments of other packages, and says what to use instead."""
    for name, instead in _ELSEWHERE.items():
        if arguments.get(name) is not None:
            raise ValueError(f"`{name}` is not an argument: {instead}. Received: {name}={shown(arguments[name])}")


def defaults(cls: type) -> dict[str, Any]:
    """The arguments of a class and of those that it is derived from, with their defaults."""
    signatures = [inspect.signature(base) for base in cls.__mro__[-2::-1]]
    return {name: argument.default for each in signatures for name, argument in each.parameters.items()}


def as_call(thing: Any, values: Mapping[str, Any]) -> str:
    """The call that makes an object: its learning rate, and the arguments that do not have their default."""
    usual = {name: (type(value), value) for name, value in defaults(type(thing)).items() if name != "learning_rate"}
    shown = [f"{name}={text(value)}" for name, value in values.items() if usual.get(name) != (type(value), value)]
    return f"{type(thing).__name__}({', '.join(shown)})"


def text(value: Any) -> str:
    """A value as a call shows it: a function by its name, an object of Keras by the call that makes it."""
    if inspect.isfunction(value):
        return value.__name__
    if not hasattr(value, "get_config") or any("__repr__" in vars(cls) for cls in type(value).__mro__[:-1]):
        return repr(value)
    try:
        # An object that is part of it is a dictionary in its config; optimizers keep theirs under `_learning_rate`.
        own = {name.removeprefix("_"): part for name, part in vars(value).items()}
        config = value.get_config()
        return as_call(value, {n: own.get(n, each) if isinstance(each, dict) else each for n, each in config.items()})
    except Exception:  # in a class of a user, which may have no `get_config` of its own
        return f"{type(value).__name__}(...)"


def shown(value: Any) -> str:
    """A value as error messages show it, cut to a readable length."""
    try:
        full = text(value)
    except ValueError:  # an integer with more digits than Python prints
        full = f"an integer of {value.bit_length()} bits"
    return full if len(full) <= 200 else f"{full[:200]}..."
