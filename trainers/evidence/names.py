"""What data, sweeps and methods are called on a page."""

from collections.abc import Mapping
from typing import Any

from trainers.evidence.margins import data_name
from trainers.figures.look import style_of
from trainers.reports.reading import Sweep

# Data sets and models by their names in a config. Others are called by these names.
DATA = {
    "digits": "4,000 digits",
    "mnist": "MNIST",
    "emnist": "EMNIST's digits",
    "imagenette": "800 photographs",
    "pydoc": "Python's language reference",
    "numbers": "numbers in words",
    "wikitext-2": "WikiText-2",
    "multi30k": "Multi30k",
}
MODELS = {"mlp": "200-100-50 network", "small_resnet": "small residual network"}
OF_TASKS = {"language_modeling": "small Transformer", "machine_translation": "small Transformer"}


def data_title(config: Mapping[str, Any]) -> str:
    """
    >>> data_title({"dataset": "wikitext", "data_dir": "/data/wikitext-2"}), data_title({"dataset": "cifar10"})
    ('WikiText-2', 'cifar10')
    """
    name = data_name(config)
    return DATA.get(name, name)


def sweep_title(sweep: Sweep) -> str:
    """The model and the data of a sweep."""
    config = sweep.folder.config
    model = str(config.get("model") or "")
    parts = [MODELS.get(model, model) or OF_TASKS.get(sweep.task, sweep.task), data_title(config)]
    return ", ".join(part for part in parts if part)


def method_title(method: str) -> str:
    """
    >>> method_title("untuned_linear"), method_title("radam")
    ('untuned linear', 'RAdam')
    """
    label = style_of(method).label
    return label if label.startswith("RAdam") else label[0].lower() + label[1:]
