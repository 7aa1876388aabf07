"""The Transformer of Vaswani et al. (2017), https://arxiv.org/abs/1706.03762, in any size, and its losses."""

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from trainers.engine.flags import stored_config
from trainers.layers.transformer import DecoderBlock, KeysAndValues, SinusoidalPositions, TransformerBlock
from trainers.tasks.translation.config import PAD, TranslatorSizes


class Memory(NamedTuple):
    """What stays the same in all decoding steps.

    keys_and_values: What each block of the decoder attends to in the sources.
    mask: [batch, 1, positions], true where the sources are not padding.
    kernel: The transposed embeddings, [width, vocabulary], which turn vectors into logits. Computed once per search.
    """

    keys_and_values: tuple[KeysAndValues, ...]
    mask: Any
    kernel: Any


class Past(NamedTuple):
    """The cache of the decoding steps so far.

    keys_and_values: Those of every block at every position of every target, [batch, heads, positions * targets, width
        of a head].
    own: [batch, targets, positions * targets], true where a key belongs to the target.
    """

    keys_and_values: tuple[KeysAndValues, ...]
    own: Any

    def follow(self, parents: Any) -> "Past":
        """The past of new targets, each of which continues an old one; `parents` is [batch, targets]."""
        return self._replace(own=tf.gather(self.own, parents, batch_dims=1))


@keras.saving.register_keras_serializable("trainers")
class TranslationModel(keras.Model):
    """An encoder-decoder Transformer with one embedding matrix that returns logits of the next subwords.

    Called with {"source": [batch, positions], "target": [batch, positions]}, both integers, it returns float32 logits
    [batch, positions of the target, vocabulary]. A source ends with `EOS`, a target begins with `BOS`; both are padded
    with `PAD`. Normalisation follows the residual, as published, and there is none after the last block.
    """

    def __init__(self, vocabulary_size: int, sizes: TranslatorSizes, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size, self.sizes = vocabulary_size, sizes
        block: dict[str, Any] = {**sizes.of_block(), "normalize_first": False, "dtype": self.dtype_policy}
        dtype = self.dtype_policy
        # Created before the embedding, whose error for a bad width is hard to understand.
        self.encoder = [TransformerBlock(**block, causal=False) for _ in range(sizes.layers)]
        self.decoder = [DecoderBlock(**block) for _ in range(sizes.layers)]
        # Lookups are in float32: otherwise, the gradients of a frequent subword would be summed in half precision. The
        # product with the transposed matrix is in the precision of the model.
        self.embedding = keras.layers.ReversibleEmbedding(
            vocabulary_size,
            sizes.width,
            embeddings_initializer=keras.initializers.RandomNormal(0.0, sizes.width**-0.5),
            reverse_dtype=self.compute_dtype,
            dtype="float32",
        )
        self.scale = keras.layers.Rescaling(sizes.width**0.5, dtype=dtype)
        self.positions = SinusoidalPositions(dtype=dtype)
        self.source_dropout = keras.layers.Dropout(sizes.dropout, dtype=dtype)
        self.target_dropout = keras.layers.Dropout(sizes.dropout, dtype=dtype)

    def build(self, inputs_shape: Any = None) -> None:
        self.embedding.build()
        vectors_shape = (None, None, self.sizes.width)
        self.positions.build(vectors_shape)
        for encoder_block in self.encoder:
            encoder_block.build(vectors_shape)
        for decoder_block in self.decoder:
            decoder_block.build(vectors_shape, vectors_shape)

    def call(self, inputs: dict[str, Any], training: bool | None = None) -> Any:
        source = inputs["source"]
        encoded = self.encode(source, training)
        return self.logits(self.decode(inputs["target"], encoded, padding_mask(source), training))

    def encode(self, source: Any, training: bool | None = False) -> Any:
        """The output of the encoder at every position of the source, [batch, positions, width]."""
        mask = padding_mask(source)
        x = self.source_dropout(self._embed(source), training=training)
        for block in self.encoder:
            x = block(x, attention_mask=mask, training=training)
        return x

    def decode(self, target: Any, encoded: Any, mask: Any, training: bool | None = False) -> Any:
        """The output of the decoder at every position of the target, [batch, positions, width].

        `encoded` comes from `encode`, and `mask` is the `padding_mask` of the source.
        """
        # A target needs no mask: its padding comes last, and the decoder is causal.
        x = self.target_dropout(self._embed(target), training=training)
        for block in self.decoder:
            x = block(x, encoded, memory_mask=mask, training=training)
        return x

    def logits(self, decoded: Any) -> Any:
        """Float32 logits [..., vocabulary] of vectors from `decode`."""
        return tf.cast(self.embedding(decoded, reverse=True), tf.float32)

    def start(self, source: Any, targets: int) -> tuple[Memory, Past]:
        """The memory and the empty past that `step` needs to decode `targets` targets per source."""
        batch, encoded = tf.shape(source)[0], self.encode(source)
        keys_and_values = tuple(block.memory_attention.keys_and_values(encoded) for block in self.decoder)
        kernel = tf.transpose(tf.cast(tf.convert_to_tensor(self.embedding.embeddings), self.compute_dtype))
        past = Past(tuple(block.empty_cache(batch) for block in self.decoder), tf.zeros([batch, targets, 0], tf.bool))
        return Memory(keys_and_values, padding_mask(source), kernel), past

    def step(self, tokens: Any, past: Past, memory: Memory) -> tuple[Any, Past]:
        """Appends subwords, [batch, targets]; returns float32 logits [batch, targets, vocabulary] and the new past."""
        batch, targets = tf.unstack(tf.shape(tokens))
        present = tf.eye(targets, batch_shape=[batch], dtype=tf.bool)
        own = tf.concat([past.own, present], axis=2)
        position = tf.shape(past.own)[2] // targets
        x = tf.reshape(self._embed(tf.reshape(tokens, [-1, 1]), position), [batch, targets, self.sizes.width])
        updated = []
        for block, cache, of_source in zip(self.decoder, past.keys_and_values, memory.keys_and_values, strict=True):
            x, cache = block.step(x, cache, own, of_source, memory.mask)
            updated.append(cache)
        return tf.cast(tf.tensordot(x, memory.kernel, 1), tf.float32), Past(tuple(updated), own)

    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = super().get_config()
        return config | {"vocabulary_size": self.vocabulary_size, "sizes": self.sizes.plain()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "TranslationModel":
        return cls(**config | {"sizes": stored_config(TranslatorSizes, config["sizes"])})

    def _embed(self, tokens: Any, start: Any = 0) -> Any:
        return self.positions(self.scale(self.embedding(tokens)), start=start)


def build_translation_model(vocabulary_size: int, sizes: TranslatorSizes) -> TranslationModel:
    """Builds a translation model with initial weights. Both languages share its subwords.

    Raises:
        ConfigError: If the sizes do not fit each other.
    """
    model = TranslationModel(vocabulary_size, sizes)
    model.build()
    return model


def padding_mask(source: Any) -> Any:
    """[batch, 1, positions], true where there is a subword."""
    return tf.not_equal(source, PAD)[:, None]


def smoothed_cross_entropy(targets: Any, logits: Any, smoothing: float) -> Any:
    """The negative log probability of every subword, float32 [batch, positions]; 0 for `PAD`.

    The share `smoothing` of each target is spread evenly over the whole vocabulary:

    loss = -(1 - smoothing) log p(target) - smoothing / vocabulary * sum of log p(subword) over all subwords

    This is the form of torch, and of fairseq when the paper was written. Tensor2tensor spreads over all subwords but
    the target: a difference of 1 / vocabulary in `smoothing`.
    """
    targets = tf.cast(targets, tf.int32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
    if smoothing > 0:
        # Both terms contain the normaliser of the softmax, with weights that sum to 1, so that only logits differ.
        losses += smoothing * (tf.gather(logits, targets, batch_dims=2) - tf.reduce_mean(logits, axis=-1))
    return tf.where(tf.equal(targets, PAD), 0.0, losses)
