"""The program of the language model: trains, or continues a text with a trained model."""

import json
import pathlib
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from trainers.engine.flags import read_config
from trainers.engine.program import train_task
from trainers.engine.setup import find_gpus
from trainers.results.layout import BASELINES, CONFIG, VOCABULARY
from trainers.system.errors import ConfigError
from trainers.tasks.language.config import LanguageConfig
from trainers.tasks.language.data import split_words
from trainers.tasks.language.task import LanguageModeling
from trainers.tasks.language.vocabulary import END, Vocabulary


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
        tokens.append(_draw(scores, config.temperature, generator))
    return tokens


def readable(words: list[str]) -> str:
    """Joins words into a text; `<eos>` ends a line."""
    lines = " ".join(words).split(END)
    return "\n".join(line.strip() for line in lines)


def _draw(scores: np.ndarray, temperature: float, generator: np.random.Generator) -> int:
    if temperature == 0:
        return int(np.argmax(scores))
    scaled = np.exp((scores - scores.max()) / temperature)
    return int(generator.choice(len(scores), p=scaled / scaled.sum()))


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
