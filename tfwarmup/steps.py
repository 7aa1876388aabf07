"""One update of one variable, theta -= rate * m / (sqrt(v) + epsilon), in one kernel where there is one.

This is Adam in the form with "epsilon hat": every hyperparameter that changes with t is in the scalars, so that one
formula serves Adam, any warmup, and momentum (see `tfwarmup.optimizers`).
"""

from typing import Any, NamedTuple

import keras
import numpy as np

from tfwarmup.compat import ops


class Scalars(NamedTuple):
    """What an update needs besides the variable, its moments and its gradient; float32 for any variable.

    In bfloat16, 0.999 would be 1.
    """

    rate: Any
    epsilon: Any
    decay: Any


class Betas(NamedTuple):
    """The discount factors as the update uses them."""

    first: float
    second: float
    fused: bool


def rounded_betas(beta_1: float, beta_2: float) -> Betas:
    """The discount factors rounded to float32, as TensorFlow's kernel takes them, so that every backend does the same.

    The kernel computes 1 - beta_2 in float32. At 0.9999 that changes the memory of the second moment by 2 parts in
    10,000; from 0.99999 on by so much that the exact numbers are used, and with them the plain step.
    """
    first, second = float(np.float32(beta_1)), float(np.float32(beta_2))
    if abs((1 - second) / (1 - beta_2) - 1) > 2e-4:
        return Betas(beta_1, beta_2, fused=False)
    return Betas(first, second, fused=True)


def plain_step(optimizer: Any, variable: Any, m: Any, v: Any, gradient: Any, betas: Betas, scalars: Scalars) -> None:
    """The update in `keras.ops`, computed in the precision of the moments."""
    gradient = ops.cast(gradient, m.dtype)
    optimizer.assign_add(m, (gradient - m) * (1 - betas.first))
    optimizer.assign_add(v, (ops.square(gradient) - v) * (1 - betas.second))
    rate, epsilon = ops.cast(scalars.rate, m.dtype), ops.cast(scalars.epsilon, m.dtype)
    value = ops.cast(variable, m.dtype)
    if scalars.decay is not None:
        value = value - value * ops.cast(scalars.decay, m.dtype)
    optimizer.assign(variable, ops.cast(value - m * rate / (ops.sqrt(v) + epsilon), variable.dtype))


if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

    def step(optimizer: Any, variable: Any, m: Any, v: Any, gradient: Any, betas: Betas, scalars: Scalars) -> None:
        """The update in TensorFlow's own Adam kernel: one pass over memory, where Keras' takes about ten."""
        if not betas.fused or variable.dtype != tf.float32:
            plain_step(optimizer, variable, m, v, gradient, betas, scalars)
            return
        if scalars.decay is not None:
            variable.assign_sub(variable * scalars.decay)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            # Under a strategy `.handle` is that of the component on this variable's device.
            m=m.value.handle,
            v=v.value.handle,
            # The bias corrections are in the rate and in epsilon already.
            beta1_power=0.0,
            beta2_power=0.0,
            lr=scalars.rate,
            beta1=betas.first,
            beta2=betas.second,
            epsilon=scalars.epsilon,
            grad=tf.cast(gradient, variable.dtype),
        )

    def dense(gradient: Any) -> Any:
        """A sparse gradient (of an embedding) as a dense one, the rows of equal index added up."""
        if not isinstance(gradient, tf.IndexedSlices):
            return gradient
        return tf.math.unsorted_segment_sum(gradient.values, gradient.indices, gradient.dense_shape[0])

else:
    step = plain_step

    def dense(gradient: Any) -> Any:
        """A sparse gradient (of an embedding on JAX) as a dense one."""
        return None if gradient is None else ops.convert_to_tensor(gradient, sparse=False)
