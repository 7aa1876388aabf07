"""Sentences into another language: WMT16, a parallel corpus of one's own, or numbers in words."""

import dataclasses
import functools
import math
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import keras
import tensorflow as tf

from trainers.engine.config import BY_CONTENT, Config, ConfigError, option, require
from trainers.engine.data import fingerprint
from trainers.engine.records import RunFolder
from trainers.engine.task import Data, Task
from trainers.layers import LayerError
from trainers.tasks.beam_search import BeamSearch
from trainers.tasks.bleu import bleu, translate_full_lines, translate_lines
from trainers.tasks.marks import PAD
from trainers.tasks.translation_data import TranslationData, load_translation
from trainers.tasks.translation_models import (
    TranslationModel,
    build_translation_model,
    cross_entropy,
    smoothed_cross_entropy,
)

DATA_FIELDS = (
    *("dataset", "data_dir", "download", "source_language", "target_language", "pairs"),
    *("source", "target", "validation_source", "validation_target", "test_source", "test_target"),
    *("vocabulary_size", "max_length", "max_ratio"),
)
MODEL_FIELDS = ("layers", "width", "heads", "inner", "dropout", "attention_dropout", "activation_dropout")


@dataclasses.dataclass(frozen=True)
class TranslationConfig(Config):
    """The fields of every config, and those of translations."""

    batch_flag: ClassVar[str] = "max_tokens"

    max_tokens: int = option(4096, "Global batch: tokens an update, padding included, of the longer language.")
    dataset: str = option(
        "numbers", "numbers (embedded), text (two files), folder (TFDS TranslateFolder), or a TFDS name."
    )
    data_dir: str | None = option(None, "Folder of TFDS data, or of a TranslateFolder.", identity=BY_CONTENT)
    download: bool = option(False, "Download a TFDS set that is not on disk.", identity=False)
    source: str | None = option(None, "File of --dataset=text: a sentence a line.", identity=BY_CONTENT)
    target: str | None = option(None, "File of --dataset=text: their translations.", identity=BY_CONTENT)
    validation_source: str | None = option(
        None, "File of sentences for validation, of any dataset.", identity=BY_CONTENT
    )
    validation_target: str | None = option(None, "File of their translations.", identity=BY_CONTENT)
    test_source: str | None = option(
        None, "File of sentences to be translated at the end, of any dataset.", identity=BY_CONTENT
    )
    test_target: str | None = option(None, "File of their translations.", identity=BY_CONTENT)
    source_language: str = option("en", "Language of the sentences in a TFDS set.")
    target_language: str = option("de", "Language of their translations.")
    pairs: int = option(30_000, "Pairs of --dataset=numbers to train on.")
    vocabulary_size: int = option(400, "Subwords of both languages together.")
    max_length: int = option(250, "Subwords of the longest sentence to train on.")
    max_ratio: float = option(2.5, "How many times longer one side of a pair may be to train on it.")
    layers: int = option(3, "Blocks of the encoder, and of the decoder.")
    width: int = option(256, "Width of the model.")
    heads: int = option(4, "Heads of the attention.")
    inner: int = option(1024, "Width inside a block's dense part.")
    dropout: float = option(0.1, "Dropout of the embeddings and of what a block adds.")
    attention_dropout: float = option(0.0, "Dropout of the attention's weights.")
    activation_dropout: float = option(0.0, "Dropout after the ReLU.")
    label_smoothing: float = option(0.1, "Probability that the loss spreads over all subwords.")
    beam: int = option(4, "Hypotheses of the beam search.")
    length_penalty: float = option(0.6, "Power of the length that a hypothesis' log probability is divided by.")
    extra_length: int = option(50, "Subwords that a translation may be longer than its source.")
    translate: str | None = option(
        None, "Translate this text with the model in --output_dir; - is standard input.", identity=False
    )

    def validate(self) -> None:
        super().validate()
        require(0 <= self.label_smoothing < 1, "--label_smoothing must be in [0, 1)", self.label_smoothing)
        for name in ("beam", "extra_length", "pairs", "max_length"):
            require(getattr(self, name) >= 1, f"--{name} must be an integer >= 1", getattr(self, name))
        require(0 <= self.length_penalty < math.inf, "--length_penalty must be a number >= 0", self.length_penalty)
        require(self.max_ratio >= 1, "--max_ratio must be >= 1", self.max_ratio)


class MachineTranslation(Task):
    """Smoothed cross-entropy of every subword; the BLEU of whole translations is the paper's number."""

    name = "machine_translation"
    config_class = TranslationConfig
    metric_names = ("cross_entropy",)
    objective = "bleu"
    direction = "max"
    unit = "tokens"

    def load(self, config: TranslationConfig) -> Data:
        options = {name: getattr(config, name) for name in DATA_FIELDS}
        text = load_translation(**options, folder=pathlib.Path(config.output_dir))
        return Data(text.train, text.validation, text)

    def build(self, config: TranslationConfig, data: Data) -> keras.Model:
        options = {name: getattr(config, name) for name in MODEL_FIELDS}
        try:
            return build_translation_model(data.details.subwords.size, **options)
        except LayerError as error:
            raise ConfigError(str(error)) from error

    def loss(self, config: TranslationConfig, targets: Any, outputs: Any) -> Any:
        return _mean_over_tokens(targets, smoothed_cross_entropy(targets, outputs, config.label_smoothing))

    def metrics(self, targets: Any, outputs: Any) -> Mapping[str, Any]:
        return {"cross_entropy": _mean_over_tokens(targets, cross_entropy(targets, outputs))}

    def summarize(self, means: Mapping[str, float]) -> dict[str, float]:
        entropy = means["cross_entropy"]
        return {"loss": means["loss"], "perplexity": math.exp(entropy) if entropy < 700 else math.inf}

    def judge(self, config: TranslationConfig, data: Data, model: keras.Model) -> Callable[[], dict[str, float]]:
        text, search = data.details, make_search(config, model)
        sources, references = zip(*text.validation_pairs, strict=True)
        return lambda: {"bleu": bleu(translate_lines(sources, text.subwords, search), references)[0]}

    def conclude(self, config: TranslationConfig, data: Data, model: keras.Model, folder: RunFolder) -> dict[str, Any]:
        """The test set's translations, or those of the validation set, go to a file; results have BLEU's signature."""
        text: TranslationData = data.details
        name = "validation" if text.test_pairs is None else "test"
        pairs = text.test_pairs or text.validation_pairs
        translations = translate_full_lines([source for source, _ in pairs], text.subwords, make_search(config, model))
        folder.write(f"{name}.translations.txt", "".join(f"{line}\n" for line in translations))
        judged = [(line, pair[1]) for line, pair in zip(translations, pairs, strict=True) if all(pair)]
        score, signature = bleu(*zip(*judged, strict=True))
        return ({"test_bleu": score} if text.test_pairs else {}) | {"bleu_signature": signature}

    def fingerprint(self, data: Data) -> str:
        judged = "\n".join(line for pair in data.details.test_pairs or () for line in pair)
        return fingerprint([super().fingerprint(data), judged])

    def fill_folder(self, folder: pathlib.Path, config: TranslationConfig, data: Data) -> None:
        data.details.subwords.save(folder)


def make_search(config: TranslationConfig, model: TranslationModel) -> Callable[[Any], Any]:
    """The beam search that a config describes: from sources to translations, both arrays of subwords."""
    search = _search(model, config.beam, config.length_penalty, config.extra_length)
    return lambda sources: search(sources)[0].numpy()


@functools.lru_cache(maxsize=1)
def _search(model: TranslationModel, beam: int, length_penalty: float, extra_length: int) -> BeamSearch:
    return BeamSearch(model, beam, length_penalty, extra_length)  # compiled once for a run's validations and its test


def _mean_over_tokens(targets: Any, values: Any) -> Any:
    """The mean over the subwords of an example; its weight is how many they are."""
    counted = tf.cast(targets != PAD, values.dtype)
    return tf.reduce_sum(values * counted, axis=1) / tf.maximum(tf.reduce_sum(counted, axis=1), 1.0)
