"""What the program of the translator does."""

from trainers.engine.program import train_task
from trainers.tasks.translation.config import TranslationConfig
from trainers.tasks.translation.translating import translate_text


def train_or_translate(config: TranslationConfig) -> str:
    """What the program prints: the results of training, or translations."""
    if config.translate is not None:
        return translate_text(config)
    return train_task("machine_translation", config)
