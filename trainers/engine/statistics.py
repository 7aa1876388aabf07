"""Moving statistics of a model, those of batch normalisation say: one set of them, however many replicas there are.

A replica's own statistics follow its part of the batches. Averaged over the replicas after every step, they are what
one set over all parts would be, and validation, checkpoints and saved models have the same.
"""

from typing import Any

import keras
import tensorflow as tf

from trainers.engine.private import all_layers, untrained_variables


class MovingStatistics:
    """The statistics of a model whose steps run on replicas."""

    def __init__(self, model: keras.Model) -> None:
        self.variables = [variable for variable in _updated_by_layers(model) if variable.dtype == "float32"]

    def average(self) -> None:
        """Gives every replica the mean of all, in one reduction; to be called on each, after a step."""
        context = tf.distribute.get_replica_context()
        if not self.variables or context.num_replicas_in_sync == 1:
            return
        flat = tf.concat([tf.reshape(variable.value, [-1]) for variable in self.variables], axis=0)
        mean = context.all_reduce(tf.distribute.ReduceOp.MEAN, flat)
        parts = tf.split(mean, [variable.shape.num_elements() for variable in self.variables])
        for variable, part in zip(self.variables, parts, strict=True):
            variable.assign(tf.reshape(part, variable.shape))


def _updated_by_layers(model: keras.Model) -> list[Any]:
    """Variables that are made not to be trained; a weight that is frozen was made for training."""
    found: dict[int, Any] = {}
    for layer in all_layers(model):
        for variable in untrained_variables(layer):
            found.setdefault(id(variable), variable)
    return list(found.values())
