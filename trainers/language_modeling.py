"""Trains a language model, or continues a text with one.

python -m trainers.language_modeling --flagfile=configs/embedded/language_modeling.flags --output_dir=runs/language
python -m trainers.language_modeling --output_dir=runs/language --sample="The "
"""

import json
import pathlib

from trainers.engine.program import run_program, train_task
from trainers.tasks import TASKS
from trainers.tasks.language_modeling import BASELINES, LanguageConfig
from trainers.tasks.text_sampling import sample_text


def train_or_sample(config: LanguageConfig) -> str:
    """What the program prints: the validation metrics with the baselines beside them, or a text."""
    if config.sample is not None:
        return sample_text(config)
    metrics = train_task(TASKS["language_modeling"], config)
    baselines = pathlib.Path(config.output_dir) / BASELINES
    if not baselines.exists():
        return metrics
    values = json.loads(baselines.read_text())
    return "baselines: " + ", ".join(f"{name} {value:.4g}" for name, value in values.items()) + f"\n{metrics}"


if __name__ == "__main__":
    run_program(LanguageConfig, train_or_sample)
