"""The next word of a text: WikiText-103, a corpus of one's own, or the language reference inside Python itself."""

import dataclasses
import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from trainers.engine.config import BY_CONTENT, ConfigError, ExamplesConfig, option, require
from trainers.engine.files import atomic_file
from trainers.engine.task import Data, Task
from trainers.layers import LayerError
from trainers.tasks.language_models import build_language_model
from trainers.tasks.ngrams import bigram_perplexity, unigram_perplexity
from trainers.tasks.text_blocks import IGNORED
from trainers.tasks.text_data import DATASETS, TextData, load_text

VOCABULARY, BASELINES = "vocabulary.txt", "baselines.json"
MODEL_FIELDS = (
    *("layers", "width", "heads", "inner", "cutoffs", "factor"),
    *("dropout", "attention_dropout", "activation_dropout", "softmax_dropout"),
)


@dataclasses.dataclass(frozen=True)
class LanguageConfig(ExamplesConfig):
    """The fields of every config, and those of a language model."""

    dataset: str = option("pydoc", "pydoc is embedded; text and wikitext are folders, --data_dir.", DATASETS)
    data_dir: str | None = option(None, "Folder of text files, or of TFDS data for wikitext103.", identity=BY_CONTENT)
    download: bool = option(False, "Download WikiText-103 if it is not on disk.", identity=False)
    vocabulary_size: int | None = option(None, "At most this many words, the most frequent ones.")
    context: int = option(128, "Tokens in a block.")
    eval_context: int = option(0, "Tokens of a validation block that are context only, not counted.")
    layers: int = option(2, "Transformer blocks.")
    width: int = option(128, "Width of the model.")
    heads: int = option(4, "Heads of the attention.")
    inner: int = option(512, "Width inside a block's dense part.")
    cutoffs: tuple[int, ...] = option((), "First word of each narrower band of the adaptive layers.")
    factor: int = option(4, "How much narrower each band is than the one before.")
    dropout: float = option(0.1, "Dropout of the embeddings and of what a block adds.")
    attention_dropout: float = option(0.0, "Dropout of the attention's weights.")
    activation_dropout: float = option(0.0, "Dropout after the ReLU.")
    softmax_dropout: float = option(0.0, "Dropout before the adaptive softmax.")
    baselines: bool = option(True, "Compute unigram and bigram perplexities of the same text.", identity=False)
    sample: str | None = option(None, "Continue this text with the model in --output_dir.", identity=False)
    sample_words: int = option(100, "Words that --sample adds.", identity=False)
    temperature: float = option(0.8, "Of --sample; 0 takes the likeliest word.", identity=False)

    def validate(self) -> None:
        super().validate()
        require(self.sample_words >= 1, "--sample_words must be an integer >= 1", self.sample_words)
        require(0 <= self.temperature < math.inf, "--temperature must be a number >= 0", self.temperature)


class LanguageModeling(Task):
    """Cross-entropy of every token; the perplexity of the validation text is the paper's number."""

    name = "language_modeling"
    config_class = LanguageConfig
    metric_names = ()
    objective = "perplexity"
    unit = "tokens"

    def load(self, config: LanguageConfig) -> Data:
        text = load_text(
            config.dataset,
            config.data_dir,
            config.context,
            config.eval_context,
            config.download,
            config.vocabulary_size,
        )
        return Data(text.train, text.validation, text)

    def build(self, config: LanguageConfig, data: Data) -> keras.Model:
        options = {name: getattr(config, name) for name in MODEL_FIELDS}
        try:
            return build_language_model(data.details.vocabulary.size, **options)
        except LayerError as error:
            raise ConfigError(str(error)) from error

    def loss(self, config: Any, targets: Any, outputs: Any) -> Any:
        """The mean over the tokens of an example that count; its weight is how many they are."""
        counted = tf.cast(targets != IGNORED, outputs.dtype)
        return tf.reduce_sum(outputs * counted, axis=1) / tf.maximum(tf.reduce_sum(counted, axis=1), 1.0)

    def metrics(self, targets: Any, outputs: Any) -> Mapping[str, Any]:
        return {}

    def summarize(self, means: Mapping[str, float]) -> dict[str, float]:
        loss = means["loss"]
        return {"loss": loss, "perplexity": math.exp(loss) if loss < 700 else math.inf}

    def check_folder(self, folder: pathlib.Path, data: Data) -> None:
        if (folder / VOCABULARY).exists():
            data.details.vocabulary.check_saved(folder / VOCABULARY)

    def fill_folder(self, folder: pathlib.Path, config: LanguageConfig, data: Data) -> None:
        if not (folder / VOCABULARY).exists():
            data.details.vocabulary.save(folder / VOCABULARY)
        if config.baselines and not (folder / BASELINES).exists():
            with atomic_file(folder / BASELINES) as file:
                file.write(json.dumps(baselines(data.details), indent=2).encode())


def baselines(text: TextData) -> dict[str, float]:
    """Perplexities of the same validation tokens under models that count words and pairs of words."""
    texts, vocabulary = (text.train_tokens, text.validation_tokens), text.vocabulary
    return {
        "unigram": unigram_perplexity(*texts, vocabulary.size),
        "bigram": bigram_perplexity(*texts, vocabulary.size, vocabulary.end),
    }
