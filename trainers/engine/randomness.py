"""Dropout as a pure function of the step: nothing to save, nothing to restore, a mask of its own for every replica.

Keras keeps the state of a `SeedGenerator` in no checkpoint, and under a strategy gives every replica the same mask.
"""

import threading
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from trainers.engine.private import all_layers

# Apart enough that no call of a generator draws what the first call of another one does.
CALLS_APART = 4_001


class StatelessSeeds:
    """Makes every random layer of a model draw from (seed, layer, call, position).

    Args:
        model: A model that is built.
        seed: The run's seed; a variable, since another seed is not another graph.
        position: Returns the number of the micro-batch in the whole run, different on every replica.
    """

    def __init__(self, model: keras.Model, seed: tf.Variable, position: Callable[[], Any]) -> None:
        self.seed, self.position = seed, position
        # Replicas are traced in threads of their own, whose forward passes may take turns.
        self._calls = threading.local()
        for number, generator in enumerate(_generators(model)):
            generator.next = _Stateless(self, number)

    def begin_pass(self) -> None:
        """To be called where a forward pass begins: a layer that it calls twice draws twice."""
        self._calls.counts = {}

    def draw(self, number: int) -> Any:
        """The seed of the next call of a generator in this forward pass."""
        counts = self._calls.__dict__.setdefault("counts", {})
        call = counts[number] = counts.get(number, -1) + 1
        words = [self.seed * 1_000_003 + number + call * CALLS_APART, self.position()]
        return tf.cast(tf.stack(words) % 2**32, tf.uint32)


class _Stateless:
    """Stands in for `SeedGenerator.next`."""

    def __init__(self, seeds: StatelessSeeds, number: int) -> None:
        self.seeds, self.number = seeds, number

    def __call__(self, ordered: bool = True) -> Any:
        return self.seeds.draw(self.number)


def _generators(model: keras.Model) -> list[keras.random.SeedGenerator]:
    found = []
    for layer in all_layers(model):
        for value in vars(layer).values():
            if isinstance(value, keras.random.SeedGenerator) and value not in found:
                found.append(value)
    return found
