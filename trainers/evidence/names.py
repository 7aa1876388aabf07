"""What data, sweeps and methods are called on a page."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

from trainers.evidence.margins import data_name
from trainers.figures.look import style_of
from trainers.reports.reading import Sweep

# Data sets, tasks and models by their names in a config. Others are called by these names.
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
TASKS = {
    "image_classification": "Image classification",
    "language_modeling": "Language modelling",
    "machine_translation": "Machine translation",
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
    """The model and the data of a sweep; the name of its folder if the data are not known."""
    config, task = sweep.folder.config, sweep.task
    model = str(config.get("model") or "")
    what = MODELS.get(model, model) or OF_TASKS.get(task) or TASKS.get(task, task)
    return f"{what}, {data_title(config) or sweep.folder.name}"


def distinct(titles: Sequence[str], sources: Sequence[str], kinds: Sequence[Any] | None = None) -> list[str]:
    """Titles, each followed by its source where another one, of the same kind if there are kinds, is the same.

    >>> distinct(["MNIST", "EMNIST", "MNIST"], ["a", "b", "c"])
    ['MNIST, a', 'EMNIST', 'MNIST, c']
    """
    keys = [*zip(titles, kinds or titles, strict=True)]
    counts = collections.Counter(keys)
    return [
        f"{title}, {source}" if counts[key] > 1 else title
        for title, source, key in zip(titles, sources, keys, strict=True)
    ]


def upper_first(text: str) -> str:
    """
    >>> upper_first("small Transformer, WikiText-2")
    'Small Transformer, WikiText-2'
    """
    return text[:1].upper() + text[1:]


def method_title(method: str) -> str:
    """
    >>> method_title("untuned_linear"), method_title("gi_adam")
    ('untuned linear', 'GI-Adam')
    """
    label = style_of(method).label
    return label if "Adam" in label else label[0].lower() + label[1:]
