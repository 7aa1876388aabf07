"""Trains a language model, or continues a text with one.

python -m trainers.language_modeling --flagfile=configs/embedded/language_modeling.flags --output_dir=runs/language
python -m trainers.language_modeling --output_dir=runs/language --sample="The "
"""

from trainers.engine.program import imported_late, run_program
from trainers.tasks.language.config import LanguageConfig

if __name__ == "__main__":
    run_program(LanguageConfig, imported_late("trainers.tasks.language.task", "train_or_sample"))
