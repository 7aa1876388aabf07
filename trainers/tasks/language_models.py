"""The language model of Baevski and Auli (2018), https://arxiv.org/abs/1809.10853, in any size."""

from collections.abc import Sequence
from typing import Any

import keras

from trainers.layers import require
from trainers.layers.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from trainers.layers.transformer import SinusoidalPositions, TransformerBlock


@keras.saving.register_keras_serializable("trainers")
class LanguageModel(keras.Model):
    """Negative log probabilities of the next words: a decoder-only Transformer between tied adaptive layers.

    Called with {"tokens": [batch, context], "targets": [batch, context]}, both integers, it returns float32 [batch,
    context]: 0 where the target is below 0. There is no normalisation after the last block, as in the original.
    `build_language_model` explains the arguments.
    """

    # Not a functional model: a clone of one makes its layers anew, one by one, and so unties them.
    def __init__(
        self,
        vocabulary_size: int,
        layers: int,
        width: int,
        heads: int,
        inner: int,
        cutoffs: Sequence[int],
        factor: int,
        dropout: float,
        attention_dropout: float,
        activation_dropout: float,
        softmax_dropout: float,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        require(layers >= 1, "`layers` must be >= 1", layers=layers)
        require(0 <= softmax_dropout < 1, "`softmax_dropout` must be in [0, 1)", softmax_dropout=softmax_dropout)
        bands: dict[str, Any] = {
            "vocabulary_size": vocabulary_size,
            "width": width,
            "cutoffs": tuple(cutoffs),
            "factor": factor,
        }
        block: dict[str, Any] = {
            "width": width,
            "heads": heads,
            "inner": inner,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
        }
        self._config = bands | block | {"layers": layers, "softmax_dropout": softmax_dropout}
        dtype = self.dtype_policy
        self.embedding = AdaptiveEmbedding(**bands, dtype=dtype)
        self.scale = keras.layers.Rescaling(width**0.5, dtype=dtype)
        self.positions = SinusoidalPositions(dtype=dtype)
        self.dropout = keras.layers.Dropout(dropout, dtype=dtype)
        self.blocks = [TransformerBlock(**block, dtype=dtype) for _ in range(layers)]
        self.softmax = AdaptiveSoftmax(**bands, dropout=softmax_dropout, embedding=self.embedding, dtype=dtype)

    def build(self, inputs_shape: Any = None) -> None:
        self.embedding.build()
        vectors_shape = (None, None, self._config["width"])
        self.positions.build(vectors_shape)
        for block in self.blocks:
            block.build(vectors_shape)
        self.softmax.build()

    def call(self, inputs: dict[str, Any], training: bool | None = None) -> Any:
        return self.softmax(self.hidden(inputs["tokens"], training), inputs["targets"], training=training)

    def hidden(self, tokens: Any, training: bool | None = False) -> Any:
        """What the last block makes of every position: [batch, context, width]."""
        x = self.positions(self.scale(self.embedding(tokens)))
        x = self.dropout(x, training=training)
        for block in self.blocks:
            x = block(x, training=training)
        return x

    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = super().get_config()
        return config | self._config


def build_language_model(
    vocabulary_size: int,
    *,
    layers: int,
    width: int,
    heads: int,
    inner: int,
    cutoffs: Sequence[int] = (),
    factor: int = 4,
    dropout: float = 0.0,
    attention_dropout: float = 0.0,
    activation_dropout: float = 0.0,
    softmax_dropout: float = 0.0,
) -> LanguageModel:
    """A language model with its first weights.

    Args:
        vocabulary_size: The number of words; they are numbered by falling frequency.
        layers: Transformer blocks.
        width: Of the vectors between them; even.
        heads: Of the attention; a divisor of `width`.
        inner: Width inside a block's dense part.
        cutoffs: The first word of each narrower band of words; increasing, below `vocabulary_size`.
        factor: How much narrower each band is than the one before.
        dropout: Of the embeddings and of what a block adds.
        attention_dropout: Of the attention's weights.
        activation_dropout: After the ReLU.
        softmax_dropout: Of the hidden vectors before the softmax, and of their projections to a tail.

    Raises:
        LayerError: for values that no model can have.
    """
    model = LanguageModel(
        vocabulary_size,
        layers,
        width,
        heads,
        inner,
        cutoffs,
        factor,
        dropout,
        attention_dropout,
        activation_dropout,
        softmax_dropout,
    )
    model.build()
    return model


def next_word_log_probabilities(model: LanguageModel, tokens: Any) -> Any:
    """Log probabilities of the word after `tokens` [batch, context]: float32 [batch, vocabulary_size]."""
    return model.softmax.log_prob(model.hidden(tokens)[:, -1])
