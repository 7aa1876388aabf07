"""The program of the translator: training or translating."""

from trainers.engine.program import train_task
from trainers.tasks.translation.config import TranslationConfig
from trainers.tasks.translation.translating import translate_text


def train_or_translate(config: TranslationConfig) -> str:
    """Trains a model, or translates a text. Returns what to print: the results, or the translations."""
    if config.translate is not None:
        return translate_text(config)
    return train_task("machine_translation", config)
