"""Moving statistics of a model, such as those of batch normalisation, kept the same on all replicas.

A replica's own statistics follow its part of the batches. Averaged over the replicas after every step, they are those
of one set over all parts, which validation, checkpoints and saved models share.
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
        """Sets the statistics to their mean over replicas, in one reduction. Call it on each replica after a step."""
        context = tf.distribute.get_replica_context()
        if not self.variables or context.num_replicas_in_sync == 1:
            return
        flat = tf.concat([tf.reshape(variable.value, [-1]) for variable in self.variables], axis=0)
        mean = context.all_reduce(tf.distribute.ReduceOp.MEAN, flat)
        parts = tf.split(mean, [variable.shape.num_elements() for variable in self.variables])
        for variable, part in zip(self.variables, parts, strict=True):
            variable.assign(tf.reshape(part, variable.shape))


def _updated_by_layers(model: keras.Model) -> list[Any]:
    """The variables that layers created as non-trainable; frozen weights are not among them."""
    found: dict[int, Any] = {}
    for layer in all_layers(model):
        for variable in untrained_variables(layer):
            found.setdefault(id(variable), variable)
    return list(found.values())
