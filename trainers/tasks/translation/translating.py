"""Translates a text with a trained model."""

import pathlib
import sys

import keras

from trainers.engine.devices import find_gpus
from trainers.engine.flags import ConfigError
from trainers.tasks.translation.bleu import translate_full_lines
from trainers.tasks.translation.config import TranslationConfig
from trainers.tasks.translation.subwords import Subwords
from trainers.tasks.translation.task import make_search

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
