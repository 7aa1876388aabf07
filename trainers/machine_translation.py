"""Trains a translator, or translates with one.

python -m trainers.machine_translation --flagfile=configs/embedded/machine_translation.flags --output_dir=runs/numbers
python -m trainers.machine_translation --output_dir=runs/numbers --translate="two hundred and forty-one"
"""

from trainers.engine.program import run_program, train_task
from trainers.tasks import TASKS
from trainers.tasks.machine_translation import TranslationConfig
from trainers.tasks.translating import translate_text


def train_or_translate(config: TranslationConfig) -> str:
    """What the program prints: the results of training, or translations."""
    if config.translate is not None:
        return translate_text(config)
    return train_task(TASKS["machine_translation"], config)


if __name__ == "__main__":
    run_program(TranslationConfig, train_or_translate)
