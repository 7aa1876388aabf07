"""Rates that are lowered where a gradient is larger than those before it: per variable, as in StableAdamW."""

from typing import Any

import numpy as np

from tfwarmup.compat import ops
from tfwarmup.steps.plain import Betas, Scalars

_SMALLEST = float(np.finfo("float32").tiny)


def update_excess(gradient: Any, v: Any, betas: Betas, unbiased: Any, epsilon: Any) -> Any:
    """max(1, RMS(g_t / sqrt(v_t / (1 - beta_2^t)))) over one variable: how far its gradient exceeds the usual.

    Args:
        gradient: g_t.
        v: v_{t-1}, which the step has not updated yet.
        betas: The discount factors.
        unbiased: 1 - beta_2^t.
        epsilon: Of this update, with the bias correction in it: sqrt(v_t) counts as no less.
    """
    square = ops.square(ops.cast(gradient, v.dtype))
    after = v + (square - v) * ops.cast(1 - betas.second, v.dtype)
    least = ops.maximum(ops.square(ops.cast(epsilon, v.dtype)), _SMALLEST)  # a gradient of zeros divides by it
    ratio = ops.mean(square / ops.maximum(after, least)) * ops.cast(unbiased, v.dtype)
    return ops.maximum(ops.sqrt(ratio), 1.0)


def slowed(scalars: Scalars, excess: Any) -> Scalars:
    """The numbers of an update whose rate, and with it the weight decay, is divided by the excess."""
    # Torch computes the numbers of an update on the host.
    excess = float(excess) if isinstance(scalars.rate, float) else ops.cast(excess, "float32")
    decay = None if scalars.decay is None else scalars.decay / excess
    return scalars._replace(rate=scalars.rate / excess, decay=decay)
