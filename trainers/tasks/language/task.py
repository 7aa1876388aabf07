"""Language modeling: the task, and the program that trains a model or continues a text with one."""

import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from trainers.engine.data import Source
from trainers.engine.flags import read_config, stored_config
from trainers.engine.folder import RunFolder
from trainers.engine.program import train_task
from trainers.engine.setup import find_gpus
from trainers.engine.task import Task
from trainers.results.layout import BASELINES, CONFIG, VOCABULARY
from trainers.system.errors import ConfigError
from trainers.system.files import atomic_file
from trainers.tasks.language.config import LanguageConfig, LanguageSizes
from trainers.tasks.language.data import TextData, load_text, split_words
from trainers.tasks.language.models import build_language_model
from trainers.tasks.language.ngrams import UNIGRAM_LOSS, bigram_perplexity, unigram_loss
from trainers.tasks.language.sources import IGNORED, Windows
from trainers.tasks.language.vocabulary import END, Vocabulary


class LanguageModeling(Task):
    """Trains with the cross-entropy of each token and reports perplexity, as the paper does."""

    name = "language_modeling"
    config_class = LanguageConfig
    objective = "perplexity"
    unit = "tokens"

    def load(self, config: LanguageConfig) -> TextData:
        return load_text(config)

    def build(self, config: LanguageConfig, data: TextData) -> keras.Model:
        return build_language_model(data.vocabulary.size, stored_config(LanguageSizes, config.plain()))

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
        return {**sources, "val_no_context": Windows(data.validation.text, config.context, 0)}

    def final_results(
        self, config: LanguageConfig, data: TextData, model: keras.Model, folder: RunFolder
    ) -> dict[str, Any]:
        return {UNIGRAM_LOSS: unigram_loss(data.train.tokens, data.validation.tokens, data.vocabulary.size)}

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
    texts, vocabulary = (text.train.tokens, text.validation.tokens), text.vocabulary
    return {
        "unigram": math.exp(unigram_loss(*texts, vocabulary.size)),
        "bigram": bigram_perplexity(*texts, vocabulary.size, vocabulary.end),
    }


def sample_text(config: LanguageConfig) -> str:
    """Returns the text of `--sample`, continued by the best model in `--output_dir`."""
    folder = pathlib.Path(config.output_dir)
    for name in (CONFIG, VOCABULARY, "best.keras"):
        if not (folder / name).exists():
            raise ConfigError(f"--sample needs a trained model in --output_dir. Received: no {folder / name}")
    trained = read_config(folder / CONFIG)
    vocabulary = Vocabulary.load(folder / VOCABULARY)
    find_gpus()
    model = keras.models.load_model(folder / "best.keras", compile=False)
    text = config.sample or ""
    words = split_words(text) if trained["dataset"] in ("pydoc", "text") else text.split()
    tokens = [vocabulary.end, *map(int, vocabulary.encode(words))]
    continued = continue_tokens(model, tokens, config.sample_words, trained["context"], config, vocabulary.unknown)
    return readable([*words, *vocabulary.decode(continued[len(tokens) :])])  # with the user's unknown words


def continue_tokens(
    model: Any, tokens: list[int], count: int, context: int, config: LanguageConfig, never: int
) -> list[int]:
    """Draws `count` more tokens, each from the `context` before it; `never` is not drawn."""
    generator = np.random.default_rng(config.seed)
    tokens = list(tokens)

    @tf.function
    def log_probabilities(window: Any, last: Any) -> Any:
        # The model is causal: padding after the last token does not matter, so one shape fits all lengths.
        return model.softmax.log_prob(model.hidden(window)[:, last])[0]

    for _ in range(count):
        recent = tokens[-context:]
        window = np.zeros((1, context), np.int32)
        window[0, : len(recent)] = recent
        scores = log_probabilities(tf.constant(window), tf.constant(len(recent) - 1)).numpy().astype("float64")
        scores[never] = -np.inf
        if config.temperature == 0:
            tokens.append(int(np.argmax(scores)))
        else:
            scaled = np.exp((scores - scores.max()) / config.temperature)
            tokens.append(int(generator.choice(len(scores), p=scaled / scaled.sum())))
    return tokens


def readable(words: list[str]) -> str:
    """Joins words into a text; `<eos>` ends a line."""
    lines = " ".join(words).split(END)
    return "\n".join(line.strip() for line in lines)


def train_or_sample(config: LanguageConfig) -> str:
    """Trains a model, or continues a text. Returns what to print: baselines and validation metrics, or the text."""
    if config.sample is not None:
        return sample_text(config)
    metrics = train_task(LanguageModeling(), config)
    baselines = pathlib.Path(config.output_dir) / BASELINES
    if not baselines.exists():
        return metrics
    values = json.loads(baselines.read_text())
    return "baselines: " + ", ".join(f"{name} {value:.4g}" for name, value in values.items()) + f"\n{metrics}"
