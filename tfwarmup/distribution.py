"""Sums gradients over replicas before they are clipped or checked, so that all replicas agree."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import keras

from tfwarmup import compat

OptimizerT = TypeVar("OptimizerT")


def reduce_first(optimizer: OptimizerT) -> OptimizerT:
    """Makes an optimizer sum the gradients over the replicas first, in place, and returns it.

    Under `tf.distribute`, Keras 3 clips the gradient of each replica before it sums them, and its
    `LossScaleOptimizer` looks for infinities on replica 0 only, so a NaN on another replica reaches the weights. With
    this function, every replica clips the gradient of the whole batch, and every `LossScaleOptimizer` checks all
    replicas, including one that `compile` creates later.

    `tfwarmup.Adam` and `tfwarmup.RAdam` already do this. Calling it twice is harmless. It is not saved with a model:
    call it again on the `optimizer` of a loaded model. On one device, and on JAX and torch, it changes nothing.

    Args:
        optimizer: Any Keras optimizer, also a `LossScaleOptimizer` or inside one.

    >>> optimizer = reduce_first(keras.optimizers.Adam(1e-3, global_clipnorm=1.0))
    """
    members = compat.checked_members(optimizer)
    if keras.backend.backend() == "tensorflow":
        compat.let_all_replicas_check()
        for member in members:
            compat.sum_before_apply(member, summed_over_replicas)
    return optimizer


# One entry per replica inside `gradients_are_summed`: each replica is traced in its own thread.
_summed_by_the_caller: list[None] = []


@contextlib.contextmanager
def gradients_are_summed() -> Iterator[None]:
    """For a custom training loop that has already summed the gradients over the replicas, e.g. to log their norm.

    Inside, `apply` of an optimizer of this package, or of one passed to `reduce_first`, does not sum again.
    """
    _summed_by_the_caller.append(None)
    try:
        yield
    finally:
        _summed_by_the_caller.pop()


def summed_over_replicas(grads: Sequence[Any]) -> list[Any]:
    """The sum of each gradient over the replicas of a `tf.distribute` strategy; elsewhere, the gradients themselves."""
    if keras.backend.backend() != "tensorflow":
        return list(grads)
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1 or _summed_by_the_caller:
        return list(grads)
    present = [gradient for gradient in grads if gradient is not None]
    summed = iter(context.all_reduce(tf.distribute.ReduceOp.SUM, present))
    return [None if gradient is None else next(summed) for gradient in grads]


def refuse_conditional_updates(options: dict[str, Any]) -> None:
    """Refuses options that make an update conditional, under a strategy that cannot synchronise replicas inside one."""
    steps = options.get("gradient_accumulation_steps")
    frequency = options.get("ema_overwrite_frequency") if options.get("use_ema") else None
    if not (steps or frequency) or keras.backend.backend() != "tensorflow":
        return
    import tensorflow as tf

    strategy = tf.distribute.get_strategy()
    if isinstance(strategy, (tf.distribute.MirroredStrategy, tf.distribute.MultiWorkerMirroredStrategy)):
        name = "gradient_accumulation_steps" if steps else "ema_overwrite_frequency"
        cure = "a larger batch" if steps else "`optimizer.finalize_variable_values(variables)` after `fit`"
        raise ValueError(
            f"`{name}` must be None under a `{type(strategy).__name__}`: an update that is made only at some steps "
            f"cannot synchronise the replicas. Use {cure} instead. Received: {name}={steps or frequency}"
        )


def let_replicas_agree() -> None:
    """With several replicas, makes every `LossScaleOptimizer` check all of them; Keras checks only the first one."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        if tf.distribute.get_strategy().num_replicas_in_sync > 1:
            compat.let_all_replicas_check()
