"""Examples from a text: blocks for training, and windows for validation in which each token counts once.

A text is an array of numbers that begins with `<eos>`, from which its first token is predicted. An example is
`({"tokens": [context], "targets": [context]}, targets, weight)`: tokens, the tokens that follow them, and how many of
the latter count. A target that does not count is `IGNORED`.
"""

import abc
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from trainers.engine.data import IndexedSource, aligned, shared_tensor

IGNORED = -1


class Windows(IndexedSource):
    """Spans of `context` tokens, cut from the text on demand."""

    def __init__(self, text: np.ndarray, context: int) -> None:
        self.text, self.context, self.example_weight = aligned(text), context, float(context)
        self.size = self._count(len(text) - 1)

    def contents(self) -> Iterable[Any]:
        return (self.text,)

    @property
    def tokens(self) -> np.ndarray:
        """The tokens to predict: the text without the `<eos>` at its beginning."""
        return self.text[1:]

    @abc.abstractmethod
    def _count(self, tokens: int) -> int:
        """The number of windows of a text."""

    @abc.abstractmethod
    def _spans(self, indices: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Where windows begin, and how many of their first targets do not count."""

    def load(self, parts: tf.data.Dataset, training: bool) -> tf.data.Dataset:
        text = shared_tensor(self.text)
        offsets = tf.range(self.context + 1, dtype=tf.int64)

        def cut(indices: tf.Tensor, seeds: tf.Tensor, weights: tf.Tensor) -> Any:
            starts, ignored = self._spans(indices)
            window = tf.gather(text, starts[:, None] + offsets)
            targets = tf.where(offsets[:-1] < ignored[:, None], IGNORED, window[:, 1:])
            counted = tf.cast(self.context - ignored, tf.float32)
            return {"tokens": window[:, :-1], "targets": targets}, targets, weights * counted

        return parts.map(cut)


class TrainingBlocks(Windows):
    """The text cut into blocks; an incomplete block at the end is left out."""

    def _count(self, tokens: int) -> int:
        return tokens // self.context

    def _spans(self, indices: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return indices * self.context, tf.zeros_like(indices)


class ValidationWindows(Windows):
    """Overlapping windows: every token counts once and is predicted from at least `eval_context` tokens if possible.

    All targets of the first window count; in every other window, those that the previous window does not cover. The
    last window ends with the text.
    """

    def __init__(self, text: np.ndarray, context: int, eval_context: int) -> None:
        self.stride = context - eval_context
        super().__init__(text, context)

    def _count(self, tokens: int) -> int:
        return 1 + max(0, -(-(tokens - self.context) // self.stride))

    def _spans(self, indices: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        starts, before = self._starts(indices), self._starts(indices - 1)
        return starts, tf.where(indices == 0, tf.zeros_like(starts), before + self.context - starts)

    def _starts(self, indices: tf.Tensor) -> tf.Tensor:
        return tf.minimum(indices * self.stride, len(self.tokens) - self.context)
