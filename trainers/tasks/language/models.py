"""The language model of Baevski and Auli (2018), https://arxiv.org/abs/1809.10853, in any size."""

from typing import Any

import keras

from trainers.engine.flags import stored_config
from trainers.layers.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from trainers.layers.transformer import SinusoidalPositions, TransformerBlock
from trainers.tasks.language.config import LanguageSizes


@keras.saving.register_keras_serializable("trainers")
class LanguageModel(keras.Model):
    """A decoder-only Transformer between tied adaptive layers that returns negative log probabilities of next words.

    Called with {"tokens": [batch, context], "targets": [batch, context]}, both integers, it returns float32 [batch,
    context]: 0 where the target is below 0. There is no normalisation after the last block, as in the original.
    """

    # Not a functional model: cloning one creates its layers again, one by one, and unties them.
    def __init__(self, vocabulary_size: int, sizes: LanguageSizes, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        bands: dict[str, Any] = {
            "vocabulary_size": vocabulary_size,
            "width": sizes.width,
            "cutoffs": tuple(sizes.cutoffs),
            "factor": sizes.factor,
        }
        self.vocabulary_size, self.sizes = vocabulary_size, sizes
        dtype = self.dtype_policy
        self.embedding = AdaptiveEmbedding(**bands, dtype=dtype)
        self.scale = keras.layers.Rescaling(sizes.width**0.5, dtype=dtype)
        self.positions = SinusoidalPositions(dtype=dtype)
        self.dropout = keras.layers.Dropout(sizes.dropout, dtype=dtype)
        block = {**sizes.of_block(), "normalize_first": sizes.normalize_first, "dtype": dtype}
        self.blocks = [TransformerBlock(**block) for _ in range(sizes.layers)]
        self.softmax = AdaptiveSoftmax(**bands, dropout=sizes.softmax_dropout, embedding=self.embedding, dtype=dtype)

    def build(self, inputs_shape: Any = None) -> None:
        self.embedding.build()
        vectors_shape = (None, None, self.sizes.width)
        self.positions.build(vectors_shape)
        for block in self.blocks:
            block.build(vectors_shape)
        self.softmax.build()

    def call(self, inputs: dict[str, Any], training: bool | None = None) -> Any:
        return self.softmax(self.hidden(inputs["tokens"], training), inputs["targets"], training=training)

    def hidden(self, tokens: Any, training: bool | None = False) -> Any:
        """The output of the last block at every position, [batch, context, width]."""
        x = self.positions(self.scale(self.embedding(tokens)))
        x = self.dropout(x, training=training)
        for block in self.blocks:
            x = block(x, training=training)
        return x

    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = super().get_config()
        return config | {"vocabulary_size": self.vocabulary_size, "sizes": self.sizes.plain()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "LanguageModel":
        return cls(**config | {"sizes": stored_config(LanguageSizes, config["sizes"])})


def build_language_model(vocabulary_size: int, sizes: LanguageSizes) -> LanguageModel:
    """Builds a language model with initial weights. Words are numbered by decreasing frequency.

    Raises:
        ConfigError: If the sizes do not fit each other.
    """
    model = LanguageModel(vocabulary_size, sizes)
    model.build()
    return model
