"""The bridge to Keras 2, the world of tensorflow-addons: all that differs between Keras 2.15 and Keras 3 stands here.

In Keras 2 the factors and the schedules work and drive any optimizer of tensorflow-addons; the optimizers of this
package need Keras 3 and say so when one is made.
"""

import types
from typing import Any

import keras

__all__ = ["Optimizer", "ops"]


class _OptimizerNeedsKeras3:
    """Stands where Keras 3's `Optimizer` would, so that the modules above it import in both worlds."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"`tfwarmup.{type(self).__name__}` is written for Keras 3 and TensorFlow >= 2.21. Received: Keras "
            f"{keras.__version__}. In this environment pass a schedule, such as `tfwarmup.UntunedLinearWarmup`, to an "
            "optimizer of Keras or tensorflow-addons; `tfa.optimizers.RectifiedAdam` is its RAdam."
        )


ops: Any
Optimizer: Any

if keras.__version__.startswith("2."):
    import tensorflow as tf

    # The few names of `keras.ops` that the factors and the schedules use.
    ops = types.SimpleNamespace(
        cast=tf.cast,
        where=tf.where,
        minimum=tf.minimum,
        maximum=tf.maximum,
        sqrt=tf.sqrt,
        expm1=tf.math.expm1,
        ones_like=tf.ones_like,
        zeros_like=tf.zeros_like,
    )
    Optimizer = _OptimizerNeedsKeras3
else:
    ops = keras.ops
    Optimizer = keras.optimizers.Optimizer
