"""Machine translation: WMT16, a parallel corpus of your own, or numbers in words."""

import functools
import math
import pathlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from trainers.engine.data import fingerprint
from trainers.engine.flags import stored_config
from trainers.engine.folder import RunFolder
from trainers.engine.program import train_task
from trainers.engine.setup import find_gpus
from trainers.engine.task import Task
from trainers.system.errors import ConfigError
from trainers.tasks.language.ngrams import UNIGRAM_LOSS, unigram_loss
from trainers.tasks.translation.beam_search import BeamSearch, translate_lines
from trainers.tasks.translation.config import PAD, TranslationConfig, TranslatorSizes
from trainers.tasks.translation.data import TranslationData, load_translation
from trainers.tasks.translation.models import (
    TranslationModel,
    build_translation_model,
    smoothed_cross_entropy,
)
from trainers.tasks.translation.subwords import Subwords

COMPOUND = re.compile(r"(?<=\S)-(?=\S)")
STANDARD_INPUT = "-"


class MachineTranslation(Task):
    """Trains with the smoothed cross-entropy of each subword and reports BLEU, as the paper does."""

    name = "machine_translation"
    config_class = TranslationConfig
    objective = "bleu"
    direction = "max"
    unit = "tokens"

    def load(self, config: TranslationConfig) -> TranslationData:
        return load_translation(config, pathlib.Path(config.output_dir))

    def build(self, config: TranslationConfig, data: TranslationData) -> keras.Model:
        return build_translation_model(data.subwords.size, stored_config(TranslatorSizes, config.plain()))

    def loss(self, config: TranslationConfig, targets: Any, outputs: Any) -> Any:
        return _mean_over_tokens(targets, smoothed_cross_entropy(targets, outputs, config.label_smoothing))

    def metrics(self, config: Any, targets: Any, outputs: Any) -> Mapping[str, Any]:
        return {"cross_entropy": _mean_over_tokens(targets, smoothed_cross_entropy(targets, outputs, 0.0))}

    def summarize(self, means: Mapping[str, float]) -> dict[str, float]:
        entropy = means["cross_entropy"]
        return {"loss": means["loss"], "perplexity": math.exp(entropy) if entropy < 700 else math.inf}

    def extra_validation(
        self, config: TranslationConfig, data: TranslationData, model: keras.Model
    ) -> Callable[[], dict[str, float]]:
        references = [reference for _, reference in data.validation_pairs]
        return lambda: {"bleu": bleu(_translate_validation(config, data, model), references)[0]}

    def final_results(
        self, config: TranslationConfig, data: TranslationData, model: keras.Model, folder: RunFolder
    ) -> dict[str, Any]:
        """Writes the translations of the test or else the validation set to a file.

        Returns BLEU with its signature, and the loss of a model that knows only the frequencies of the subwords.
        """
        if data.test_pairs is None:
            name, pairs, translations = "validation", data.validation_pairs, _translate_validation(config, data, model)
        else:
            name, pairs = "test", data.test_pairs
            sources = [source for source, _ in pairs]
            translations = translate_lines(sources, data.subwords, make_search(config, model))
        folder.write(f"{name}.translations.txt", "".join(f"{line}\n" for line in translations))
        judged = [(line, pair[1]) for line, pair in zip(translations, pairs, strict=True) if all(pair)]
        translated, references = zip(*judged, strict=True)
        score, signature = bleu(translated, references)
        split = {
            f"{'test' if data.test_pairs else 'val'}_bleu_compound_split": compound_split_bleu(translated, references)
        }
        texts = (data.train.targets.tokens, data.validation.targets.tokens)
        floor = {UNIGRAM_LOSS: unigram_loss(*texts, data.subwords.size, config.label_smoothing)}
        return ({"test_bleu": score} if data.test_pairs else {}) | split | floor | {"bleu_signature": signature}

    def fingerprint(self, data: TranslationData) -> str:
        judged = "\n".join(line for pair in data.test_pairs or () for line in pair)
        return fingerprint([super().fingerprint(data), judged])

    def fill_folder(self, folder: pathlib.Path, config: TranslationConfig, data: TranslationData) -> None:
        data.subwords.save(folder)


def make_search(config: TranslationConfig, model: TranslationModel) -> Callable[[Any], Any]:
    """The beam search that a config describes: from sources to translations, both arrays of subwords."""
    search = _search(model, config.beam, config.length_penalty, config.extra_length)
    return lambda sources: search(sources)[0].numpy()


@functools.lru_cache(maxsize=1)
def _search(model: TranslationModel, beam: int, length_penalty: float, extra_length: int) -> BeamSearch:
    return BeamSearch(model, beam, length_penalty, extra_length)  # compiled once for a run's validations and its test


def _translate_validation(config: TranslationConfig, data: TranslationData, model: TranslationModel) -> list[str]:
    """The translations of the validation set, cached until the weights change: the end of a run needs them again."""
    kept, weights = _kept_translations(model), fingerprint(variable.numpy() for variable in model.weights)
    if weights not in kept:
        kept.clear()
        sources = [source for source, _ in data.validation_pairs]
        kept[weights] = translate_lines(sources, data.subwords, make_search(config, model))
    return kept[weights]


@functools.lru_cache(maxsize=1)
def _kept_translations(model: TranslationModel) -> dict[str, list[str]]:
    return {}  # by a fingerprint of the weights


def _mean_over_tokens(targets: Any, values: Any) -> Any:
    """The mean over the subwords of each example; their number is the weight of the example."""
    counted = tf.cast(targets != PAD, values.dtype)
    return tf.reduce_sum(values * counted, axis=1) / tf.maximum(tf.reduce_sum(counted, axis=1), 1.0)


def bleu(translations: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """BLEU in percent, and the signature that says how it was computed."""
    metric = BLEU()
    return metric.corpus_score(translations, [references]).score, str(metric.get_signature())


def compound_split_bleu(translations: Sequence[str], references: Sequence[str]) -> float:
    """BLEU in percent of tokenised text with split hyphenated compounds, as reported by papers of 2017 to 2019.

    The tokenizer is that of `bleu`, mteval-v13a; those papers used the tokenizer of Moses.
    """
    tokenize: Any = Tokenizer13a()  # type: ignore[no-untyped-call]

    def split(lines: Sequence[str]) -> list[str]:
        return [COMPOUND.sub(r" ##AT##-##AT## ", tokenize(line)) for line in lines]

    score: float = BLEU(tokenize="none", force=True).corpus_score(split(translations), [split(references)]).score
    return score


def translate_text(config: TranslationConfig) -> str:
    """Translates every line of `--translate` with the averaged model in `--output_dir`, or else the best one."""
    folder = pathlib.Path(config.output_dir)
    models = [folder / name for name in ("average.keras", "best.keras") if (folder / name).exists()]
    if not models:
        raise ConfigError(f"--translate needs a trained model in --output_dir. Received: no {folder / 'best.keras'}")
    subwords = Subwords.load(folder)
    find_gpus()
    model = keras.models.load_model(models[0], compile=False)
    text = sys.stdin.read() if config.translate == STANDARD_INPUT else config.translate or ""
    return "\n".join(translate_lines(text.splitlines(), subwords, make_search(config, model)))


def train_or_translate(config: TranslationConfig) -> str:
    """Trains a model, or translates a text. Returns what to print: the results, or the translations."""
    if config.translate is not None:
        return translate_text(config)
    return train_task(MachineTranslation(), config)
