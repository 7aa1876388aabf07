"""The program of the language model: training or sampling."""

import json
import pathlib

from trainers.engine.program import train_task
from trainers.tasks.language.config import LanguageConfig
from trainers.tasks.language.sampling import sample_text
from trainers.tasks.language.task import BASELINES


def train_or_sample(config: LanguageConfig) -> str:
    """Trains a model, or continues a text. Returns what to print: baselines and validation metrics, or the text."""
    if config.sample is not None:
        return sample_text(config)
    metrics = train_task("language_modeling", config)
    baselines = pathlib.Path(config.output_dir) / BASELINES
    if not baselines.exists():
        return metrics
    values = json.loads(baselines.read_text())
    return "baselines: " + ", ".join(f"{name} {value:.4g}" for name, value in values.items()) + f"\n{metrics}"
