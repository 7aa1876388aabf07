"""Language modeling: WikiText-103, a corpus of your own, or the language reference that comes with Python."""

import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from trainers.engine.data import Source
from trainers.engine.folder import RunFolder
from trainers.engine.task import Task
from trainers.layers import LayerError
from trainers.results.layout import BASELINES, VOCABULARY
from trainers.system.errors import ConfigError
from trainers.system.files import atomic_file
from trainers.tasks.language.blocks import IGNORED, ValidationWindows
from trainers.tasks.language.config import LanguageConfig, LanguageSizes
from trainers.tasks.language.data import TextData, load_text
from trainers.tasks.language.models import build_language_model
from trainers.tasks.language.ngrams import UNIGRAM_LOSS, bigram_perplexity, unigram_loss, unigram_perplexity
from trainers.tasks.sizes import sizes_of


class LanguageModeling(Task):
    """Trains with the cross-entropy of each token and reports perplexity, as the paper does."""

    name = "language_modeling"
    config_class = LanguageConfig
    objective = "perplexity"
    unit = "tokens"

    def load(self, config: LanguageConfig) -> TextData:
        return load_text(config)

    def build(self, config: LanguageConfig, data: TextData) -> keras.Model:
        try:
            return build_language_model(data.vocabulary.size, sizes_of(config, LanguageSizes))
        except LayerError as error:
            raise ConfigError(str(error)) from error

    def loss(self, config: Any, targets: Any, outputs: Any) -> Any:
        """The mean over the tokens of each example that count; their number is the weight of the example."""
        counted = tf.cast(targets != IGNORED, outputs.dtype)
        return tf.reduce_sum(outputs * counted, axis=1) / tf.maximum(tf.reduce_sum(counted, axis=1), 1.0)

    def metrics(self, config: Any, targets: Any, outputs: Any) -> Mapping[str, Any]:
        return {}

    def summarize(self, means: Mapping[str, float]) -> dict[str, float]:
        loss = means["loss"]
        return {"loss": loss, "perplexity": math.exp(loss) if loss < 700 else math.inf}

    def final_sources(self, config: LanguageConfig, data: TextData) -> Mapping[str, Source]:
        """Adds the validation text in blocks without context if it was evaluated with context: papers report either."""
        sources = super().final_sources(config, data)
        if not config.eval_context:
            return sources
        return {**sources, "val_no_context": ValidationWindows(data.validation.text, config.context, 0)}

    def final_results(
        self, config: LanguageConfig, data: TextData, model: keras.Model, folder: RunFolder
    ) -> dict[str, Any]:
        return {UNIGRAM_LOSS: unigram_loss(data.train_tokens, data.validation_tokens, data.vocabulary.size)}

    def check_folder(self, folder: pathlib.Path, data: TextData) -> None:
        if (folder / VOCABULARY).exists():
            data.vocabulary.check_saved(folder / VOCABULARY)

    def fill_folder(self, folder: pathlib.Path, config: LanguageConfig, data: TextData) -> None:
        if not (folder / VOCABULARY).exists():
            data.vocabulary.save(folder / VOCABULARY)
        if config.baselines and not (folder / BASELINES).exists():
            with atomic_file(folder / BASELINES) as file:
                file.write(json.dumps(baselines(data), indent=2).encode())


def baselines(text: TextData) -> dict[str, float]:
    """Perplexities of the same validation tokens under unigram and bigram models."""
    texts, vocabulary = (text.train_tokens, text.validation_tokens), text.vocabulary
    return {
        "unigram": unigram_perplexity(*texts, vocabulary.size),
        "bigram": bigram_perplexity(*texts, vocabulary.size, vocabulary.end),
    }
