"""What layers draw and update themselves: dropout, and the statistics of batch normalisation.

Dropout is a pure function of the step: there is no state to save or restore, and every replica has another mask. Keras
does not save the state of a `SeedGenerator`, and under a strategy gives every replica the same mask.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from trainers.system.private import all_layers, untrained_variables

# Far enough apart that no call of a generator draws the same as the first call of another one.
CALLS_APART = 4_001


class StatelessSeeds:
    """Makes every random layer of a model draw from (seed, layer, call, position).

    Args:
        model: A model that is built.
        seed: The run's seed; a variable, so that another seed needs no new graph.
        position: Returns the number of the micro-batch in the whole run, different on every replica.
    """

    def __init__(self, model: keras.Model, seed: tf.Variable, position: Callable[[], Any]) -> None:
        self.seed, self.position = seed, position
        # Replicas are traced in separate threads, whose forward passes may interleave.
        self._calls = threading.local()
        values = (value for layer in all_layers(model) for value in vars(layer).values())
        generators = {id(value): value for value in values if isinstance(value, keras.random.SeedGenerator)}
        for number, generator in enumerate(generators.values()):
            generator.next = functools.partial(self.draw, number)

    def begin_pass(self) -> None:
        """Must be called when a forward pass begins. A layer that is called twice in it draws twice."""
        self._calls.counts = {}

    def draw(self, number: int, ordered: bool = True) -> Any:
        """The seed of the next call of a generator in this forward pass, in the place of `SeedGenerator.next`."""
        counts = self._calls.__dict__.setdefault("counts", {})
        call = counts[number] = counts.get(number, -1) + 1
        words = [self.seed * 1_000_003 + number + call * CALLS_APART, self.position()]
        return tf.cast(tf.stack(words) % 2**32, tf.uint32)


class MovingStatistics:
    """The statistics of a model whose steps run on replicas."""

    def __init__(self, model: keras.Model) -> None:
        # What layers created as non-trainable; frozen weights are not among them.
        variables = (variable for layer in all_layers(model) for variable in untrained_variables(layer))
        unique = {id(variable): variable for variable in variables}
        self.variables = [variable for variable in unique.values() if variable.dtype == "float32"]

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
