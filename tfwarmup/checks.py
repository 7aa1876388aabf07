"""Rules for arguments: each returns its value, or raises a `ValueError` with the rule and the value received."""

import math
import numbers
from typing import Any


def is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


def integer(name: str, value: Any, least: int) -> int:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"`{name}` must be an integer >= {least}. Received: {name}={value!r}")
    return int(value)


def positive(name: str, value: Any) -> float:
    if not (is_number(value) and value > 0):
        raise ValueError(f"`{name}` must be a finite number > 0. Received: {name}={value}")
    return value  # type: ignore[no-any-return]


def not_negative(name: str, value: Any) -> float:
    if not (is_number(value) and value >= 0):
        raise ValueError(f"`{name}` must be a finite number >= 0. Received: {name}={value}")
    return value  # type: ignore[no-any-return]


def beta_1(value: Any) -> float:
    """A discount of the first moment, which may be 0: no momentum."""
    if not (is_number(value) and 0 <= value < 1):
        raise ValueError(f"`beta_1` must be a number in [0, 1). Received: beta_1={value}")
    return value  # type: ignore[no-any-return]


def beta_2(value: Any) -> float:
    if not (is_number(value) and 0 < value < 1):
        raise ValueError(f"`beta_2` must be a number in (0, 1). Received: beta_2={value}")
    return value  # type: ignore[no-any-return]
