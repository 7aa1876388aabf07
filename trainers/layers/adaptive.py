"""Adaptive embedding and softmax: rarer bands of words have narrower vectors and are computed only when they occur.

The adaptive softmax is that of Grave et al. (2017), https://arxiv.org/abs/1609.04309. The adaptive input and the tying
of the two are those of Baevski and Auli (2018), https://arxiv.org/abs/1809.10853. Words are numbered by decreasing
frequency.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from trainers.system.errors import require


@dataclasses.dataclass(frozen=True)
class Band:
    """The words `start` <= word < `stop`, with vectors of `width`. Band 0 is the head, the others are tails."""

    start: int
    stop: int
    width: int

    @property
    def size(self) -> int:
        return self.stop - self.start


def make_bands(vocabulary_size: int, width: int, cutoffs: Sequence[int], factor: int) -> tuple[Band, ...]:
    """The bands between the cut-offs; band i is `width // factor**i` wide."""
    edges = [0, *cutoffs, vocabulary_size]
    require(
        all(start < stop for start, stop in itertools.pairwise(edges)),
        f"`cutoffs` must increase, and lie between 0 and vocabulary_size={vocabulary_size}",
        tuple(cutoffs),
    )
    rule = f"`width` must be >= factor ** {len(cutoffs)}, so that the last band has a width"
    require(width // factor ** len(cutoffs) >= 1, rule, {"width": width, "factor": factor})
    return tuple(Band(*edge, width // factor**i) for i, edge in enumerate(itertools.pairwise(edges)))


class _Banded(keras.layers.Layer):
    """Base class of the two layers: the bands and their weights."""

    def __init__(
        self, vocabulary_size: int, width: int, cutoffs: Sequence[int] = (), factor: int = 4, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size, self.width, self.cutoffs, self.factor = vocabulary_size, width, tuple(cutoffs), factor
        self.bands = make_bands(vocabulary_size, width, self.cutoffs, factor)

    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = super().get_config()
        names = ("vocabulary_size", "width", "cutoffs", "factor")
        return config | {name: getattr(self, name) for name in names}

    def _table(self, number: int, initializer: Any) -> Any:
        """The vectors of a band's words."""
        band = self.bands[number]
        return self._weight(f"table_{number}", (band.size, band.width), initializer)

    def _projection(self, number: int) -> Any:
        """The projection from the width of a band to that of the model."""
        return self._weight(f"projection_{number}", (self.bands[number].width, self.width), "glorot_uniform")

    def _weight(self, name: str, shape: tuple[int, int], initializer: Any) -> Any:
        # No autocast: half precision would copy a whole table in order to look up a few of its rows.
        return self.add_weight(name=name, shape=shape, initializer=initializer, autocast=False)

    def _cast(self, x: Any) -> Any:
        return tf.cast(x, self.compute_dtype)

    def _band_of(self, words: Any) -> Any:
        """The number of each word's band."""
        return tf.add_n([tf.zeros_like(words), *(tf.cast(words >= cutoff, tf.int32) for cutoff in self.cutoffs)])


@keras.saving.register_keras_serializable("trainers")
class AdaptiveEmbedding(_Banded):
    """Embeds words as vectors of `width`, with a narrower table and a projection for each band.

    Without cut-offs it is an ordinary embedding and a projection. The head has a projection too, as in fairseq.

    Args:
        vocabulary_size: The number of words.
        width: Width of the returned vectors, and of the table of the head.
        cutoffs: The first word of each tail; increasing.
        factor: How much narrower each band is than the one before.
    """

    def build(self, tokens_shape: Any = None) -> None:
        normals = [keras.initializers.RandomNormal(stddev=band.width**-0.5) for band in self.bands]
        self.tables = [self._table(number, normal) for number, normal in enumerate(normals)]
        self.projections = [self._projection(number) for number in range(len(self.bands))]

    def call(self, tokens: Any) -> Any:
        words = _flat_words(tokens)
        band_of = self._band_of(words)
        parts = tf.dynamic_partition(words, band_of, len(self.bands))
        rows = tf.dynamic_partition(tf.range(tf.size(words)), band_of, len(self.bands))
        vectors = tf.dynamic_stitch(rows, [self._vectors(number, part) for number, part in enumerate(parts)])
        return tf.reshape(vectors, [*_dimensions(tokens), self.width])

    def _vectors(self, number: int, words: Any) -> Any:
        narrow = tf.gather(self.tables[number].value, words - self.bands[number].start)
        return self._cast(narrow) @ self._cast(self.projections[number])


@keras.saving.register_keras_serializable("trainers")
class AdaptiveSoftmax(_Banded):
    """Computes negative log probabilities of words: `softmax(hidden, targets)`.

    The head is a softmax over its own words and one class per tail; a tail is a softmax over its words, computed only
    for the targets in it. `log_prob(hidden)` returns the whole distribution.

    Args:
        vocabulary_size: The number of words.
        width: Width of the hidden vectors.
        cutoffs: The first word of each tail; increasing.
        factor: How much narrower each band is than the one before.
        dropout: Dropout rate of the hidden vectors, and again of their projections to a tail.
        embedding: An `AdaptiveEmbedding` of the same sizes, whose tables and projections are shared. Saving a model
            keeps them tied; `keras.models.clone_model`, which does not support shared layers, does not.
    """

    def __init__(
        self,
        vocabulary_size: int,
        width: int,
        cutoffs: Sequence[int] = (),
        factor: int = 4,
        dropout: float = 0.0,
        embedding: AdaptiveEmbedding | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocabulary_size, width, cutoffs, factor, **kwargs)
        if embedding is not None:
            rule = f"`embedding` must have the bands of the softmax, {self.bands}"
            require(embedding.bands == self.bands, rule, embedding.bands)
        self.dropout, self.embedding = dropout, embedding
        # A separate layer for each use, because the trainers seed each dropout layer once per step.
        self.hidden_dropout, *self.tail_dropouts = [
            keras.layers.Dropout(dropout, dtype=self.dtype_policy) for _ in self.bands
        ]

    def build(self, hidden_shape: Any = None, targets_shape: Any = None) -> None:
        if self.embedding is None:
            self.tables = [self._table(number, "glorot_uniform") for number in range(len(self.bands))]
            # The head needs none: its vectors are as wide as the hidden ones.
            self.projections = [None, *(self._projection(number) for number in range(1, len(self.bands)))]
        elif not self.embedding.built:
            self.embedding.build()
        tails = len(self.bands) - 1
        self.classes = self._weight("classes", (tails, self.width), "glorot_uniform") if tails else None

    def call(self, hidden: Any, targets: Any, training: bool | None = None) -> Any:
        """Negative log probabilities of the targets, float32; 0 for a target below 0, which is not counted."""
        words, vectors = _flat_words(targets), tf.reshape(hidden, [-1, self.width])
        counted = tf.cast(words >= 0, tf.int32)
        rows = tf.dynamic_partition(tf.range(tf.size(words)), counted, 2)
        _, counted_words = tf.dynamic_partition(words, counted, 2)
        _, counted_vectors = tf.dynamic_partition(vectors, counted, 2)
        losses = self._counted_losses(counted_words, self.hidden_dropout(counted_vectors, training=training), training)
        losses = tf.dynamic_stitch(rows, [tf.zeros(tf.shape(rows[0])), losses])
        return tf.reshape(losses, _dimensions(targets))

    def log_prob(self, hidden: Any) -> Any:
        """Log probabilities of all words, [..., vocabulary_size], float32."""
        vectors = self._cast(tf.reshape(hidden, [-1, self.width]))
        head = tf.nn.log_softmax(self._head_logits(vectors))
        words, classes = tf.split(head, [self.bands[0].size, len(self.bands) - 1], axis=1)
        parts = [words]
        for number in range(1, len(self.bands)):
            tail = tf.nn.log_softmax(self._tail_logits(number, vectors, training=False))
            parts.append(tail + classes[:, number - 1 : number])
        return tf.reshape(tf.concat(parts, axis=1), [*_dimensions(hidden)[:-1], self.vocabulary_size])

    def get_config(self) -> dict[str, Any]:
        embedding = keras.saving.serialize_keras_object(self.embedding)
        return super().get_config() | {"dropout": self.dropout, "embedding": embedding}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "AdaptiveSoftmax":
        embedding = keras.saving.deserialize_keras_object(config["embedding"])
        softmax: AdaptiveSoftmax = super().from_config(config | {"embedding": embedding})
        return softmax

    def _counted_losses(self, words: Any, vectors: Any, training: bool | None) -> Any:
        band_of = self._band_of(words)
        classes = tf.where(band_of == 0, words, self.bands[0].size + band_of - 1)
        losses = _cross_entropy(classes, self._head_logits(vectors))
        # Partitions, not gathers: the gradient of a gather is sparse, and made dense with a warning.
        words_in, vectors_in, rows_in = (
            tf.dynamic_partition(x, band_of, len(self.bands)) for x in (words, vectors, tf.range(tf.size(words)))
        )
        for number in range(1, len(self.bands)):
            logits = self._tail_logits(number, vectors_in[number], training)
            tail_losses = _cross_entropy(words_in[number] - self.bands[number].start, logits)
            losses = tf.tensor_scatter_nd_add(losses, rows_in[number][:, None], tail_losses)
        return losses

    def _head_logits(self, vectors: Any) -> Any:
        table = self._cast(self._owner().tables[0])
        if self.classes is not None:
            # Concatenates the matrices and not the logits, which are larger for many tokens.
            table = tf.concat([table, self._cast(self.classes)], axis=0)
        return _logits(vectors, table)

    def _tail_logits(self, number: int, vectors: Any, training: bool | None) -> Any:
        narrow = tf.matmul(vectors, self._cast(self._owner().projections[number]), transpose_b=True)
        narrow = self.tail_dropouts[number - 1](narrow, training=training)
        return _logits(narrow, self._cast(self._owner().tables[number]))

    def _owner(self) -> Any:
        """The layer that has the tables. A list of another layer's variables in this one would be saved twice."""
        return self if self.embedding is None else self.embedding


def _logits(vectors: Any, table: Any) -> Any:
    """Float32 under every dtype policy: a softmax of half-precision logits loses digits."""
    return tf.cast(tf.matmul(vectors, table, transpose_b=True), tf.float32)


def _cross_entropy(words: Any, logits: Any) -> Any:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(words, logits)


def _flat_words(words: Any) -> Any:
    # `tf.dynamic_partition` takes only int32 partitions.
    return tf.cast(tf.reshape(words, [-1]), tf.int32)


def _dimensions(x: Any) -> list[Any]:
    """The shape, with static sizes where they are known."""
    dynamic = tf.shape(x)
    return [dynamic[axis] if size is None else size for axis, size in enumerate(x.shape)]
