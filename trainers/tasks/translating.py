"""A trained translator translates what it is given."""

import pathlib
import sys

import keras

from trainers.engine.config import ConfigError
from trainers.tasks.bleu import translate_full_lines
from trainers.tasks.machine_translation import TranslationConfig, make_search
from trainers.tasks.subwords import Subwords

STANDARD_INPUT = "-"


def translate_text(config: TranslationConfig) -> str:
    """The translation of every line of `--translate`, by the averaged or else the best model in `--output_dir`."""
    folder = pathlib.Path(config.output_dir)
    models = [folder / name for name in ("average.keras", "best.keras") if (folder / name).exists()]
    if not models:
        raise ConfigError(f"--translate needs a trained model in --output_dir. Received: no {folder / 'best.keras'}")
    subwords = Subwords.load(folder)
    model = keras.models.load_model(models[0], compile=False)
    text = sys.stdin.read() if config.translate == STANDARD_INPUT else config.translate or ""
    return "\n".join(translate_full_lines(text.splitlines(), subwords, make_search(config, model)))
