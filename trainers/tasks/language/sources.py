"""Examples from a text: blocks for training, and windows for validation in which each token counts once.

A text is an array of numbers that begins with `<eos>`, from which its first token is predicted. An example is
`({"tokens": [context], "targets": [context]}, targets, weight)`: tokens, the tokens that follow them, and how many of
the latter count. A target that does not count is `IGNORED`.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from trainers.engine.data import IndexedSource, aligned, shared_tensor

IGNORED = -1


class Windows(IndexedSource):
    """Overlapping windows: every token counts once and is predicted from at least `eval_context` tokens if possible.

    All targets of the first window count; in every other window, those that the previous window does not cover. The
    last window ends with the text. Windows are cut on demand.
    """

    def __init__(self, text: np.ndarray, context: int, eval_context: int = 0) -> None:
        self.text, self.context, self.example_weight = aligned(text), context, float(context)
        self.stride = context - eval_context
        self.size = 1 + max(0, -(-(len(self.tokens) - context) // self.stride))

    def contents(self) -> Iterable[Any]:
        return (self.text,)

    @property
    def tokens(self) -> np.ndarray:
        """The tokens to predict: the text without the `<eos>` at its beginning."""
        return self.text[1:]

    def load(self, parts: tf.data.Dataset, training: bool) -> tf.data.Dataset:
        text = shared_tensor(self.text)
        offsets = tf.range(self.context + 1, dtype=tf.int64)

        def cut(indices: tf.Tensor, seeds: tf.Tensor, weights: tf.Tensor) -> Any:
            starts, before = self._starts(indices), self._starts(indices - 1)
            ignored = tf.where(indices == 0, tf.zeros_like(starts), before + self.context - starts)
            window = tf.gather(text, starts[:, None] + offsets)
            targets = tf.where(offsets[:-1] < ignored[:, None], IGNORED, window[:, 1:])
            counted = tf.cast(self.context - ignored, tf.float32)
            return {"tokens": window[:, :-1], "targets": targets}, targets, weights * counted

        return parts.map(cut)

    def _starts(self, indices: tf.Tensor) -> tf.Tensor:
        return tf.minimum(indices * self.stride, len(self.tokens) - self.context)


class TrainingBlocks(Windows):
    """Windows that do not overlap; an incomplete one at the end of the text is left out."""

    def __init__(self, text: np.ndarray, context: int) -> None:
        super().__init__(text, context)
        self.size = len(self.tokens) // context
