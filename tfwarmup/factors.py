"""The warmup factors omega_t of Ma and Yarats (2021), as plain functions of the update t = 1, 2, 3, ...

Every function takes `t` as a Python number, a numpy array or a tensor of any Keras backend, and returns the same kind.
Numbers and arrays are computed in float64, tensors in float32 (float64 tensors stay float64). `tfwarmup.warmups` wraps
these functions in objects.
"""

import bisect
import functools
import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from tfwarmup import checks
from tfwarmup.compat import ops

FIRST_STEPS = ("momentum", "nothing", "constant_adam", "linear_adam")


def linear(t: Any, period: float) -> Any:
    """omega_t = min(1, t / period): the paper's linear warmup.

    >>> linear(500, period=2000)
    0.25
    """
    period = checks.positive("period", period)
    t, xp = real(t)
    return _like(t, xp.minimum(t / period, 1.0))


def exponential(t: Any, period: float) -> Any:
    """omega_t = 1 - exp(-t / period): the paper's exponential warmup.

    >>> round(exponential(1000, period=1000), 6)
    0.632121
    """
    period = checks.positive("period", period)
    t, xp = real(t)
    return _like(t, -xp.expm1(-t / period))


def untuned_linear(t: Any, beta_2: float) -> Any:
    """omega_t = min(1, t (1 - beta_2) / 2): linear over 2 / (1 - beta_2) updates, the paper's rule of thumb.

    >>> round(untuned_linear(500, beta_2=0.999), 12)
    0.25
    """
    return linear(t, untuned_linear_period(beta_2))


def untuned_exponential(t: Any, beta_2: float) -> Any:
    """omega_t = 1 - exp(-(1 - beta_2) t): exponential with the constant 1 / (1 - beta_2).

    >>> round(untuned_exponential(1000, beta_2=0.999), 6)
    0.632121
    """
    return exponential(t, untuned_exponential_period(beta_2))


def radam(t: Any, beta_2: float, rho_threshold: float = 4.0, first_steps: str = "nothing") -> Any:
    """omega_t = sqrt((rho_t - 4)(rho_t - 2) rho_inf / ((rho_inf - 4)(rho_inf - 2) rho_t)): RAdam's fixed warmup.

    While rho_t <= rho_threshold, which at the paper's 4 means t <= 4, the formula does not apply and `first_steps`
    decides: omega_t is 0 ("nothing", and "momentum", whose steps are not Adam's), omega_5 ("constant_adam"), or on a
    straight line to omega_5 ("linear_adam").

    >>> radam(4, beta_2=0.999), round(radam(5, beta_2=0.999), 6), round(radam(2000, beta_2=0.999), 6)
    (0.0, 0.017312, 0.82839)
    """
    checks.choice("first_steps", first_steps, FIRST_STEPS)
    count = momentum_steps(beta_2, rho_threshold)
    t, xp = real(t)
    omega = _radam_formula(t, xp, beta_2)
    if first_steps in ("momentum", "nothing"):
        before = xp.zeros_like(t)
    else:
        first_omega = float(_radam_formula(np.float64(count + 1), np, beta_2))
        shape = xp.ones_like(t) if first_steps == "constant_adam" else t / (count + 1)
        before = first_omega * shape
    return _like(t, xp.where(t > count, omega, before))


def root(t: Any, beta_2: float) -> Any:
    """omega_t = sqrt(1 - beta_2^t): the damping by a second moment of Adam that starts at its final level.

    >>> round(root(1, beta_2=0.99), 12), round(root(100, beta_2=0.99), 6)
    (0.1, 0.796221)
    """
    rate = -math.log(checks.beta_2(beta_2))
    t, xp = real(t)
    return _like(t, xp.sqrt(-xp.expm1(-rate * t)))


def inverse_sqrt(t: Any, period: float) -> Any:
    """sqrt(period / (period + t)): a decay, t updates after a warmup over `period` updates.

    >>> inverse_sqrt(3000, period=1000)
    0.5
    """
    period = checks.positive("period", period)
    t, xp = real(t)
    return _like(t, xp.sqrt(period / (period + t)))


def none(t: Any) -> Any:
    """omega_t = 1: no warmup, the control.

    >>> none(1)
    1.0
    """
    t, xp = real(t)
    return _like(t, xp.ones_like(t))


def rho(t: Any, beta_2: float) -> Any:
    """rho_t = rho_inf - 2 t beta_2^t / (1 - beta_2^t), in a form that float32 can compute.

    >>> round(rho(4, beta_2=0.999), 6), round(rho(5, beta_2=0.999), 6)
    (3.997499, 4.995998)
    """
    checks.beta_2(beta_2)
    t, xp = real(t)
    return _like(t, _rho_minus(0.0, t, xp, beta_2))


def rho_inf(beta_2: float) -> float:
    """rho_inf = 2 / (1 - beta_2) - 1, the limit of rho_t.

    >>> round(rho_inf(0.999), 9)
    1999.0
    """
    return (1 + checks.beta_2(beta_2)) / (1 - beta_2)


def untuned_linear_period(beta_2: float) -> float:
    """2 / (1 - beta_2), not rounded: at 0.999 it is 1999.9999999999982, which `int` would turn into 1999."""
    return 2 / (1 - checks.beta_2(beta_2))


def untuned_exponential_period(beta_2: float) -> float:
    """1 / (1 - beta_2)."""
    return 1 / (1 - checks.beta_2(beta_2))


def momentum_steps(beta_2: float, rho_threshold: float = 4.0) -> int:
    """The number of updates with rho_t <= rho_threshold: RAdam's momentum phase.

    >>> momentum_steps(0.999), momentum_steps(0.999, rho_threshold=5.0)
    (4, 5)
    """
    rho_threshold = checked_threshold(rho_threshold)
    limit = rho_inf(beta_2)
    if limit <= rho_threshold:
        raise ValueError(
            f"RAdam needs rho_inf = 2 / (1 - beta_2) - 1 > rho_threshold, that is "
            f"beta_2 > {1 - 2 / (rho_threshold + 1):.6g}: rho_t rises to rho_inf, so below that it never leaves its "
            f"momentum phase and never becomes Adam. Received: beta_2={beta_2} (rho_inf={limit:.6g}), "
            f"rho_threshold={rho_threshold}"
        )
    return _first_updates(float(beta_2), rho_threshold)


@functools.cache  # called at every update on torch
def _first_updates(beta_2: float, rho_threshold: float) -> int:
    updates = range(1, math.ceil(_FAR / -math.log(beta_2)) + 1)
    return bisect.bisect_right(updates, rho_threshold, key=lambda t: float(_rho_minus(0.0, np.float64(t), np, beta_2)))


def checked_threshold(rho_threshold: Any) -> float:
    if not (checks.is_number(rho_threshold) and rho_threshold >= 4):
        raise ValueError(
            f"`rho_threshold` must be a number >= 4. Received: rho_threshold={checks.shown(rho_threshold)}"
        )
    return float(rho_threshold)


def linear_effective_period(period: float) -> float:
    """The sum of 1 - omega_t over t >= 1 of `linear`, in closed form.

    >>> linear_effective_period(2000)
    999.5
    """
    period = checks.positive("period", period)
    if period >= 2**53:  # a whole number; the formula below would overflow
        return period / 2
    last = math.floor(period)
    return last - last * (last + 1) / (2 * period)


def exponential_effective_period(period: float) -> float:
    """The sum of 1 - omega_t over t >= 1 of `exponential`, in closed form.

    >>> round(exponential_effective_period(1000), 4)
    999.5001
    """
    rate = 1 / checks.positive("period", period)
    return 1 / math.expm1(rate) if rate < 700 else 0.0  # where expm1 would overflow


def radam_effective_period(beta_2: float, rho_threshold: float = 4.0, first_steps: str = "nothing") -> float:
    """The sum of 1 - omega_t over t >= 1 of `radam`, to a relative error of 1e-11.

    >>> round(radam_effective_period(0.999), 4)
    1033.3247
    """
    return _sum_of_damping(lambda t: 1 - radam(t, beta_2, rho_threshold, first_steps), beta_2)


def root_effective_period(beta_2: float) -> float:
    """The sum of 1 - omega_t over t >= 1 of `root`, to a relative error of 1e-11: about 2 (1 - ln 2) / (1 - beta_2).

    >>> round(root_effective_period(0.999), 4)
    612.9053
    """
    return _sum_of_damping(lambda t: 1 - root(t, beta_2), beta_2)


# The number of terms before a sum is replaced by an integral: from here on 1 - omega_t is so smooth that the midpoint
# rule, an integral from n + 1/2 for the sum from n + 1, is off by less than 1e-11 of the total.
_SUMMED = 2**16


def _sum_of_damping(damping: Callable[[Any], Any], beta_2: float) -> float:
    """The sum over t >= 1 of a smooth function that falls like beta_2^t."""
    rate = -math.log(beta_2)
    total = math.fsum(damping(np.arange(1.0, _SUMMED + 1)))
    start, far = _SUMMED + 0.5, _FAR / rate
    nodes, weights = np.polynomial.legendre.leggauss(24)
    # Panels that double in length follow both the steep start and the long exponential tail.
    while start < far:
        end = min(2 * start, far, start + 4 / rate)
        total += (end - start) / 2 * float(weights @ damping((start + end) / 2 + (end - start) / 2 * nodes))
        start = end
    return total


# Beyond L t = 80 the distance of rho_t from rho_inf is below 1e-32 of it, and exp(80) still fits float32.
_FAR = 80.0


def _rho_minus(constant: float, t: Any, xp: Any, beta_2: float) -> Any:
    """rho_t - constant, with the constant subtracted before rounding can hide it.

    The textbook formula subtracts two numbers near 2 / (1 - beta_2) to get one near t, which float32 is too coarse for.
    With L = -ln(beta_2) and g(x) = x coth(x) - 1 the same number is t - (2 / L) (g(L t / 2) - g(L / 2)) for small L t,
    and coth(L / 2) - 2 t / (exp(L t) - 1) for large L t.
    """
    rate = -math.log(beta_2)
    x = xp.minimum(rate * t, _FAR)
    early = (t - constant) - (2 / rate) * (_x_coth_x_minus_1(x / 2) - _x_coth_x_minus_1(rate / 2))
    late = (rho_inf(beta_2) - constant) - 2 * t / xp.expm1(xp.maximum(x, 1.0))
    return xp.where(x < 2.0, early, late)


def _x_coth_x_minus_1(x: Any) -> Any:
    """Lambert's continued fraction x^2 / (3 + x^2 / (5 + ...)); for x <= 1 nine terms are exact in float64."""
    square = x * x
    tail = 19.0
    for odd in range(17, 1, -2):
        tail = odd + square / tail
    return square / tail


def _radam_formula(t: Any, xp: Any, beta_2: float) -> Any:
    limit = rho_inf(beta_2)
    excess = xp.maximum(_rho_minus(4.0, t, xp, beta_2), 0.0)
    squared = excess * ((excess + 2) / (excess + 4)) * (limit / ((limit - 4) * (limit - 2)))
    return xp.minimum(xp.sqrt(squared), 1.0)


def real(t: Any) -> tuple[Any, Any]:
    """Returns t in floating point, and the module to compute with: numpy, or `keras.ops` for a tensor.

    Numbers and arrays are checked; the values of a tensor may not be known yet.
    """
    if isinstance(t, (numbers.Number, np.ndarray, np.generic)):
        return _checked_numbers(t), np
    if not hasattr(t, "dtype"):
        raise ValueError(f"{_RULE_OF_T} Received: t={checks.shown(t)}")
    return ops.cast(t, "float64" if "float64" in str(t.dtype) else "float32"), ops


_RULE_OF_T = "`t` must be a finite number >= 0 (updates count from 1), a numpy array of such numbers, or a tensor."


def _checked_numbers(t: Any) -> np.ndarray:
    is_array = isinstance(t, (np.ndarray, np.generic))
    if (is_array and t.dtype.kind in "iuf") or checks.is_number(t):
        values = np.asarray(t, "float64")
        if not values.size or 0 <= values.min() <= values.max() < math.inf:  # false for NaN
            return values
    raise ValueError(f"{_RULE_OF_T} Received: t={checks.shown(t)}")


def _like(t: Any, omega: Any) -> Any:
    """Returns omega as a Python float if t was a number."""
    return float(omega) if isinstance(t, np.ndarray) and t.ndim == 0 else omega
