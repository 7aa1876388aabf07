"""Lowers the rate of each variable whose gradient is larger than usual, as in StableAdamW."""

from typing import Any

import numpy as np

from tfwarmup.compat import ops
from tfwarmup.steps.plain import Betas, Scalars

SMALLEST = float(np.finfo("float32").tiny)  # the least divisor: avoids 0 / 0 for a gradient of zeros


def update_excess(gradient: Any, v: Any, betas: Betas, unbiased: Any, epsilon: Any) -> Any:
    """max(1, RMS(g_t / sqrt(v_t / (1 - beta_2^t)))) over one variable: how much its gradient exceeds the usual.

    Args:
        gradient: g_t.
        v: v_{t-1}, which the step has not updated yet.
        betas: The discount factors.
        unbiased: 1 - beta_2^t.
        epsilon: epsilon_t of this update, the least value of sqrt(v_t) to divide by.
    """
    square = ops.square(ops.cast(gradient, v.dtype))
    after = v + (square - v) * ops.cast(1 - betas.second, v.dtype)
    least = ops.maximum(ops.square(ops.cast(epsilon, v.dtype)), SMALLEST)
    ratio = ops.mean(square / ops.maximum(after, least)) * ops.cast(unbiased, v.dtype)
    return ops.cast(ops.maximum(ops.sqrt(ratio), 1.0), "float32")


def slowed(scalars: Scalars, excess: Any) -> Scalars:
    """Divides the rate of an update, and with it the weight decay, by the excess."""
    decay = None if scalars.decay is None else scalars.decay / excess
    return scalars._replace(rate=scalars.rate / excess, decay=decay)
