"""The parts of a Transformer (Vaswani et al., 2017, https://arxiv.org/abs/1706.03762), as in fairseq."""

import math
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from keras import layers

from trainers.system.errors import require

# Torch's epsilon; Keras' is 1e-3.
NORM_EPSILON = 1e-5

# A score that gets no weight. Unlike minus infinity, it gives no NaN in a row of padding, where every score is masked.
NOT_ATTENDED = -1e9

KeysAndValues = tuple[Any, Any]


@keras.saving.register_keras_serializable("trainers")
class SinusoidalPositions(layers.Layer):
    """Adds position encodings to vectors: sines in the first half of the channels, cosines in the second.

    The wavelengths range from 2 pi to 2 pi * `longest`, and there is no maximum length. This is the form of
    tensor2tensor and fairseq. keras-hub's layer has other wavelengths and counts positions in its compute dtype:
    bfloat16 cannot represent 257.
    """

    def __init__(self, longest: float = 10_000.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.longest = longest

    def build(self, x_shape: Any) -> None:
        width = x_shape[-1]
        require(width >= 4 and width % 2 == 0, "`width` of positions must be even and >= 4", width)

    def call(self, x: Any, start: Any = 0) -> Any:
        """`start` is the position of the first vector."""
        half = x.shape[-1] // 2
        frequencies = tf.exp(tf.range(half, dtype=tf.float32) * (-math.log(self.longest) / (half - 1)))
        positions = tf.cast(start + tf.range(tf.shape(x)[1]), tf.float32)
        angles = positions[:, None] * frequencies
        return x + tf.cast(tf.concat([tf.sin(angles), tf.cos(angles)], axis=1), x.dtype)

    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = super().get_config()
        return config | {"longest": self.longest}


@keras.saving.register_keras_serializable("trainers")
class AttentionXavier(keras.initializers.Initializer):
    """Xavier uniform weights for Keras' `MultiHeadAttention`, as in fairseq.

    Keras' Glorot treats a kernel with three axes as that of a convolution. Here, queries, keys and values count as one
    matrix, three times as long as wide.
    """

    def __init__(self, width: int, heads: int, seed: int | None = None) -> None:
        self.width, self.heads, self.seed = width, heads, seed

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        is_output = tuple(shape) == (self.heads, self.width // self.heads, self.width)
        bound = math.sqrt(6 / (2 * self.width if is_output else 4 * self.width))
        return keras.initializers.RandomUniform(-bound, bound, self.seed)(shape, dtype)

    def get_config(self) -> dict[str, Any]:
        return {"width": self.width, "heads": self.heads, "seed": self.seed}


class Attention(layers.MultiHeadAttention):
    """Keras' attention with a softmax in float32, and with a method for precomputed keys and values.

    Keras' own softmax is in float32 only without dropout. With dropout it has the precision of the layer: in bfloat16,
    the weights sum to 1 +- 1%.
    """

    def keys_and_values(self, x: Any) -> KeysAndValues:
        """Both [batch, heads, positions, width of a head], so that `attend` need not transpose them."""
        keys, values = (tf.transpose(dense(x), [0, 2, 1, 3]) for dense in (self.key_dense, self.value_dense))
        return keys, values

    def attend(self, x: Any, keys: Any, values: Any, attention_mask: Any) -> Any:
        """Attends from `x` where the mask, [batch, 1, 1 or positions of x, positions], is true; without dropout."""
        queries = tf.transpose(self.query_dense(x), [0, 2, 1, 3])
        scores = tf.cast(tf.matmul(queries, keys, transpose_b=True), tf.float32) * self.key_dim**-0.5
        weights = tf.nn.softmax(tf.where(attention_mask, scores, NOT_ATTENDED))
        found = tf.matmul(tf.cast(weights, values.dtype), values)
        return self.output_dense(tf.transpose(found, [0, 2, 1, 3]))

    def _build_attention(self, rank: int) -> None:
        super()._build_attention(rank)
        self._softmax = layers.Softmax(axis=-1, dtype="float32")


class _Block(layers.Layer):
    """Base class of the two blocks, whose parts each have dropout, a residual and a normalisation."""

    def __init__(
        self,
        width: int,
        heads: int,
        inner: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        normalize_first: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        require(width % heads == 0, f"`heads` must divide width={width}", heads)
        rates = {"dropout": dropout, "attention_dropout": attention_dropout, "activation_dropout": activation_dropout}
        self._config: dict[str, Any] = {"width": width, "heads": heads, "inner": inner, **rates}
        self._config |= {"normalize_first": normalize_first}
        self.width, self.normalize_first = width, normalize_first
        dtype = self.dtype_policy
        self.attention = self._make_attention()
        self.attention_norm = self._make_norm()
        self.attention_dropout = layers.Dropout(dropout, dtype=dtype)
        self.widen = layers.Dense(inner, activation="relu", dtype=dtype)
        self.activation_dropout = layers.Dropout(activation_dropout, dtype=dtype)
        self.narrow = layers.Dense(width, dtype=dtype)
        self.dense_norm = self._make_norm()
        self.dense_dropout = layers.Dropout(dropout, dtype=dtype)

    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = super().get_config()
        return config | self._config

    def _make_attention(self) -> Attention:
        width, heads = self._config["width"], self._config["heads"]
        return Attention(
            heads,
            width // heads,
            dropout=self._config["attention_dropout"],
            kernel_initializer=AttentionXavier(width, heads),
            dtype=self.dtype_policy,
        )

    def _make_norm(self) -> layers.Layer:
        return layers.LayerNormalization(epsilon=NORM_EPSILON, dtype=self.dtype_policy)

    def _build_parts(self, x_shape: Any) -> None:
        require(x_shape[-1] == self.width, f"vectors must be of width={self.width}", x_shape)
        self.attention.build(x_shape, x_shape)
        self.attention_norm.build(x_shape)
        self.widen.build(x_shape)
        self.narrow.build((*x_shape[:-1], self.widen.units))
        self.dense_norm.build(x_shape)

    def _residual(
        self, x: Any, part: Callable[[Any], Any], norm: layers.Layer, dropout: layers.Layer, training: bool | None
    ) -> Any:
        y = part(norm(x) if self.normalize_first else x)
        x = x + dropout(y, training=training)
        return x if self.normalize_first else norm(x)

    def _dense(self, x: Any, training: bool | None) -> Any:
        def dense(y: Any) -> Any:
            return self.narrow(self.activation_dropout(self.widen(y), training=training))

        return self._residual(x, dense, self.dense_norm, self.dense_dropout, training)


@keras.saving.register_keras_serializable("trainers")
class TransformerBlock(_Block):
    """Self-attention, then two dense layers with a ReLU between; each with dropout, a residual and a normalisation.

    Args:
        width: Width of the vectors.
        heads: Number of attention heads; must divide `width`.
        inner: Width between the two dense layers.
        dropout: Dropout rate of the output of each part, before it is added to the residual.
        attention_dropout: Dropout rate of the attention weights.
        activation_dropout: Dropout rate after the ReLU.
        normalize_first: Normalise the input of each part, not the sum of its output and the residual.
        causal: Do not attend to later positions.
    """

    def __init__(self, width: int, heads: int, inner: int, causal: bool = True, **options: Any) -> None:
        super().__init__(width, heads, inner, **options)
        self.causal = causal
        self._config |= {"causal": causal}

    def build(self, x_shape: Any) -> None:
        self._build_parts(x_shape)

    def call(self, x: Any, attention_mask: Any = None, training: bool | None = None) -> Any:
        """The mask, [batch, 1 or positions, positions], is true where a position may be attended to."""

        def attend(y: Any) -> Any:
            options = {"attention_mask": attention_mask, "use_causal_mask": self.causal, "training": training}
            return self.attention(y, y, **options)

        x = self._residual(x, attend, self.attention_norm, self.attention_dropout, training)
        return self._dense(x, training)


@keras.saving.register_keras_serializable("trainers")
class DecoderBlock(_Block):
    """A causal `TransformerBlock` that also attends, between its two parts, to the vectors of a memory.

    The arguments are those of `TransformerBlock`.
    """

    def __init__(self, width: int, heads: int, inner: int, **options: Any) -> None:
        super().__init__(width, heads, inner, **options)
        self.memory_attention = self._make_attention()
        self.memory_norm = self._make_norm()
        self.memory_dropout = layers.Dropout(self._config["dropout"], dtype=self.dtype_policy)

    def build(self, x_shape: Any, memory_shape: Any) -> None:
        self._build_parts(x_shape)
        require(memory_shape[-1] == self.width, f"the memory must be of width={self.width}", memory_shape)
        self.memory_attention.build(x_shape, memory_shape)
        self.memory_norm.build(x_shape)

    def call(self, x: Any, memory: Any, memory_mask: Any = None, training: bool | None = None) -> Any:
        """The mask, [batch, 1, positions of the memory], is true where the memory may be attended to."""

        def attend(y: Any) -> Any:
            return self.attention(y, y, use_causal_mask=True, training=training)

        def attend_to_memory(y: Any) -> Any:
            return self.memory_attention(y, memory, attention_mask=memory_mask, training=training)

        x = self._residual(x, attend, self.attention_norm, self.attention_dropout, training)
        x = self._residual(x, attend_to_memory, self.memory_norm, self.memory_dropout, training)
        return self._dense(x, training)

    def empty_cache(self, batch: Any) -> KeysAndValues:
        """Keys and values of no positions, to begin with."""
        zeros = tf.zeros([batch, self.attention.num_heads, 0, self.attention.key_dim], self.compute_dtype)
        return zeros, zeros

    def step(
        self, x: Any, cache: KeysAndValues, own: Any, memory: KeysAndValues, memory_mask: Any
    ) -> tuple[Any, KeysAndValues]:
        """Applies the block at the next position of several sequences per memory.

        All sequences of a memory share one cache: a sequence that continues another only has to know which keys and
        values are its own, and none of them is moved.

        Args:
            x: The vectors at this position, [batch, sequences, width].
            cache: The result of the previous step, or `empty_cache`: keys and values of [batch, heads, positions *
                sequences, width of a head], one position after the other.
            own: [batch, sequences, positions * sequences], including this position; true where a key belongs to the
                sequence's past or present.
            memory: The result of `memory_attention.keys_and_values` for the memory.
            memory_mask: [batch, 1, positions of the memory].

        Returns:
            Vectors like `x`, and the cache including this position.
        """
        keys, values = cache

        def attend(y: Any) -> Any:
            nonlocal keys, values
            keys, values = (
                tf.concat([old, new], axis=2) for old, new in zip(cache, self.attention.keys_and_values(y), strict=True)
            )
            return self.attention.attend(y, keys, values, attention_mask=own[:, None])

        def attend_to_memory(y: Any) -> Any:
            return self.memory_attention.attend(y, *memory, attention_mask=memory_mask[:, None])

        x = self._residual(x, attend, self.attention_norm, self.attention_dropout, training=False)
        x = self._residual(x, attend_to_memory, self.memory_norm, self.memory_dropout, training=False)
        return self._dense(x, training=False), (keys, values)
