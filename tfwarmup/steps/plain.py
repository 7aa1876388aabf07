"""What the steps of all backends share, and the step in `keras.ops` where there is no kernel."""

from typing import Any, NamedTuple

import numpy as np

from tfwarmup.compat import ops


class Scalars(NamedTuple):
    """The scalars of an update, in float32 for any variable: in bfloat16, 0.999 would be 1."""

    rate: Any
    epsilon: Any
    decay: Any


class Betas(NamedTuple):
    """The discount factors as the update uses them."""

    first: float
    second: float
    fused: bool


def rounded_betas(beta_1: float, beta_2: float) -> Betas:
    """The discount factors rounded to float32, as the fused kernels take them, so that all backends agree.

    TensorFlow's kernel computes 1 - beta_2 in float32. At 0.9999 that changes the memory of the second moment by 2
    parts in 10,000; from 0.99999 on the error is so large that the exact numbers are used, without the kernel.
    """
    first, second = float(np.float32(beta_1)), float(np.float32(beta_2))
    if abs((1 - second) / (1 - beta_2) - 1) > 2e-4:
        return Betas(beta_1, beta_2, fused=False)
    return Betas(first, second, fused=True)


def dense(gradient: Any, variable: Any) -> Any:
    """A sparse gradient (of an embedding) as a dense one."""
    return None if gradient is None else ops.convert_to_tensor(gradient, sparse=False)


def plain_step(optimizer: Any, variable: Any, m: Any, v: Any, gradient: Any, betas: Betas, scalars: Scalars) -> None:
    """The update in `keras.ops`, computed in the precision of the moments."""
    gradient = ops.cast(gradient, m.dtype)
    optimizer.assign_add(m, (gradient - m) * (1 - betas.first))
    # With `gradient_init`, beta_2 is a tensor.
    optimizer.assign_add(v, (ops.square(gradient) - v) * ops.cast(1 - betas.second, m.dtype))
    rate, epsilon = ops.cast(scalars.rate, m.dtype), ops.cast(scalars.epsilon, m.dtype)
    value = ops.cast(variable, m.dtype)
    if scalars.decay is not None:
        value = value - value * ops.cast(scalars.decay, m.dtype)
    optimizer.assign(variable, ops.cast(value - m * rate / (ops.sqrt(v) + epsilon), variable.dtype))
