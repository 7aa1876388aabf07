"""Replicas that agree: gradients summed before they are clipped or checked."""

from collections.abc import Sequence
from typing import Any, TypeVar

import keras

OptimizerT = TypeVar("OptimizerT")


def reduce_first(optimizer: OptimizerT) -> OptimizerT:
    """Makes an optimizer sum the gradients over the replicas first, in place, and returns it.

    Under `tf.distribute`, Keras 3 clips each replica's gradient by itself and sums the clipped ones, and its
    `LossScaleOptimizer` looks for infinities on replica 0 alone: a NaN of another replica reaches the weights. With
    the sum taken first, every replica clips and checks the same numbers: those of the whole batch.

    Call it under the strategy's scope, before training. On one device, and on JAX and torch, it changes nothing.

    Args:
        optimizer: Any Keras optimizer, `LossScaleOptimizer` included.

    >>> optimizer = reduce_first(keras.optimizers.Adam(1e-3, global_clipnorm=1.0))
    """
    if keras.backend.backend() != "tensorflow":
        return optimizer
    innermost: Any = optimizer
    while getattr(innermost, "inner_optimizer", None) is not None:
        innermost = innermost.inner_optimizer
    innermost._all_reduce_sum_gradients = lambda grads_and_vars: grads_and_vars
    apply = optimizer.apply  # type: ignore[attr-defined]

    def apply_reduced(grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        apply(_summed_over_replicas(grads), trainable_variables)

    optimizer.apply = apply_reduced  # type: ignore[attr-defined]
    return optimizer


def _summed_over_replicas(grads: Sequence[Any]) -> list[Any]:
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return list(grads)
    present = [gradient for gradient in grads if gradient is not None]
    summed = iter(context.all_reduce(tf.distribute.ReduceOp.SUM, present))
    return [None if gradient is None else next(summed) for gradient in grads]
