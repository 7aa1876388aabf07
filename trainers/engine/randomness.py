"""Dropout as a pure function of the step: nothing to save, nothing to restore, a mask of its own for every replica.

Keras keeps the state of a `SeedGenerator` in no checkpoint, and under a strategy gives every replica the same mask.
"""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf


def seed_by_step(model: keras.Model, seed: tf.Variable, position: Callable[[], Any]) -> None:
    """Makes every random layer draw from (seed, layer, call, position).

    Args:
        model: A model that is built.
        seed: The run's seed; a variable, since another seed is not another graph.
        position: Returns the number of the micro-batch in the whole run, different on every replica.
    """
    for number, generator in enumerate(_generators(model)):
        generator.next = _Stateless(seed, number, position)


class _Stateless:
    """Stands in for `SeedGenerator.next`."""

    def __init__(self, seed: tf.Variable, number: int, position: Callable[[], Any]) -> None:
        self.seed, self.number, self.position = seed, number, position

    def __call__(self, ordered: bool = True) -> Any:
        words = [self.seed * 1_000_003 + self.number, self.position()]
        return tf.cast(tf.stack(words) % 2**32, tf.uint32)


def _generators(model: keras.Model) -> list[keras.random.SeedGenerator]:
    found = []
    for layer in model._flatten_layers():
        for value in vars(layer).values():
            if isinstance(value, keras.random.SeedGenerator) and value not in found:
                found.append(value)
    return found
