"""The program of the translator: trains, or translates a text with a trained model."""

import pathlib
import sys

import keras

from trainers.engine.devices import find_gpus
from trainers.engine.program import train_task
from trainers.system.errors import ConfigError
from trainers.tasks.translation.bleu import translate_full_lines
from trainers.tasks.translation.config import TranslationConfig
from trainers.tasks.translation.subwords import Subwords
from trainers.tasks.translation.task import MachineTranslation, make_search

STANDARD_INPUT = "-"


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
    return "\n".join(translate_full_lines(text.splitlines(), subwords, make_search(config, model)))


def train_or_translate(config: TranslationConfig) -> str:
    """Trains a model, or translates a text. Returns what to print: the results, or the translations."""
    if config.translate is not None:
        return translate_text(config)
    return train_task(MachineTranslation(), config)
