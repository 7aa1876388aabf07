"""Trains a translator, or translates with one.

python -m trainers.machine_translation --flagfile=configs/embedded/machine_translation.flags --output_dir=runs/numbers
python -m trainers.machine_translation --output_dir=runs/numbers --translate="two hundred and forty-one"
"""

from trainers.engine.program import imported_late, run_program
from trainers.tasks.translation.config import TranslationConfig

if __name__ == "__main__":
    run_program(TranslationConfig, imported_late("trainers.tasks.translation.task", "train_or_translate"))
