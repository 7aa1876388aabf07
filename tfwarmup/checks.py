"""Checks of arguments: each returns the value, or raises a `ValueError` with the rule and the value received.

Numbers are returned as Python's `float` and `int`, whatever their type, so that every object can be saved.
"""

import math
import numbers
from collections.abc import Iterable
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
    if not (is_number(value) and float(value) > 0):
        raise ValueError(f"`{name}` must be a finite number > 0. Received: {name}={shown(value)}")
    return float(value)


def not_negative(name: str, value: Any) -> float:
    if not (is_number(value) and float(value) >= 0):
        raise ValueError(f"`{name}` must be a finite number >= 0. Received: {name}={shown(value)}")
    return float(value)


def beta_1(value: Any) -> float:
    """A discount of the first moment, which may be 0: no momentum."""
    if not (is_number(value) and 0 <= float(value) < 1):
        raise ValueError(f"`beta_1` must be a number in [0, 1). Received: beta_1={shown(value)}")
    return float(value)


def beta_2(value: Any) -> float:
    if not (is_number(value) and 0 < float(value) < 1):
        raise ValueError(f"`beta_2` must be a number in (0, 1). Received: beta_2={shown(value)}")
    return float(value)


def initial_factor(value: Any) -> float:
    """The factor that a warmup rises from. At 1 there would be nothing left to warm up."""
    if not (is_number(value) and 0 <= float(value) < 1):
        raise ValueError(f"`initial` must be a number in [0, 1). Received: initial={shown(value)}")
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


def shown(value: Any) -> str:
    """A value as error messages show it, cut to a readable length."""
    try:
        text = repr(value)
    except ValueError:  # an integer with more digits than Python prints
        text = f"an integer of {value.bit_length()} bits"
    return text if len(text) <= 200 else f"{text[:200]}..."
