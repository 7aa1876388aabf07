"""The step on TensorFlow: its own Adam kernel makes one pass over memory, Keras' step about ten."""

from typing import Any

import tensorflow as tf

from tfwarmup.steps.plain import Betas, Scalars, plain_step


def step(optimizer: Any, variable: Any, m: Any, v: Any, gradient: Any, betas: Betas, scalars: Scalars) -> None:
    """The update of one variable on one replica."""
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


def dense(gradient: Any, variable: Any) -> Any:
    """A sparse gradient (of an embedding) as a dense one; rows with the same index are added up."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    # Not `gradient.dense_shape`, which a gradient made by hand may lack.
    return tf.math.unsorted_segment_sum(gradient.values, gradient.indices, variable.shape[0])
