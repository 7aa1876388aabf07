"""The tasks: what each is judged by, the smallest difference that matters, and what models and data are called.

The margins were fixed before the runs that they judge. docs/evidence.md has every change.
"""

import dataclasses
import fnmatch
import pathlib
import shlex
from collections.abc import Mapping
from typing import Any

DIRECTIONS = ("min", "max")


@dataclasses.dataclass(frozen=True)
class Objective:
    """A metric and how to show it."""

    metric: str  # its name in the records of a run
    label: str  # what to call it, with its unit
    direction: str  # "min" or "max": which value is better
    factor: float = 1.0  # what to multiply a recorded value by to get the unit of the label
    unit: str = ""  # the unit of a difference between two values

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise ValueError(f"`direction` must be one of {', '.join(DIRECTIONS)}. Received: {self.direction!r}")

    def shown(self, value: float) -> float:
        """Converts a value to the unit of the label: 0.07 is 7 %, not 7.000000000000001 %."""
        return value if self.factor == 1 else float(f"{value * self.factor:.15g}")


@dataclasses.dataclass(frozen=True)
class KnownTask:
    """A task of this project; repeated here because the tasks import TensorFlow, which takes longer than a report."""

    title: str  # its name in words
    objective: Objective  # what its runs are compared by
    paper_data: str  # what the paper calls its data
    paper_set: str  # the name of the same data in a config
    model: str = ""  # what to call its model; empty where a config names one of several


IMAGES, LANGUAGE, TRANSLATION = "image_classification", "language_modeling", "machine_translation"
TASKS = {
    IMAGES: KnownTask(
        "Image classification",
        Objective("val_error", "validation error, %", "min", 100.0, "points"),
        "ImageNet",
        "imagenet2012",
    ),
    LANGUAGE: KnownTask(
        "Language modelling",
        Objective("val_perplexity", "validation perplexity", "min", 1.0, "perplexity"),
        "WikiText-103",
        "wikitext103",
        "small Transformer",
    ),
    TRANSLATION: KnownTask(
        "Machine translation",
        Objective("val_bleu", "validation BLEU", "max", 1.0, "BLEU"),
        "WMT16 English-German",
        "wmt16_translate/de-en",
        "small Transformer",
    ),
}
OBJECTIVES = {name: task.objective for name, task in TASKS.items()}


def objective_named(task: str, metric: str, direction: str) -> Objective:
    """The objective of a task; for a custom task, the metric as it is recorded."""
    known = OBJECTIVES.get(task)
    if known is not None and known.metric == metric:
        return known
    return Objective(metric, metric.replace("val_", "validation "), direction)


@dataclasses.dataclass(frozen=True)
class Margin:
    """Two methods whose means differ by less than the margin are equally good."""

    task: str  # the name of the task
    data: str  # a pattern of names of data sets, for `fnmatch`
    size: float  # the margin in the unit of the task's objective; in percent of its mean if `relative`
    unit: str  # the unit of `size`
    relative: bool = False  # whether `size` is a percentage of the mean over all cells

    def absolute(self, mean: float) -> float:
        """The margin in the unit of the objective.

        >>> Margin("language_modeling", "*", 1.0, "%", relative=True).absolute(60.0)
        0.6
        """
        return self.size * abs(mean) / 100 if self.relative else self.size

    def fits(self, task: str, data: str) -> bool:
        return task == self.task and fnmatch.fnmatchcase(data.lower(), self.data)

    @property
    def text(self) -> str:
        """
        >>> Margin("machine_translation", "*", 0.5, "BLEU").text
        '±0.5 BLEU'
        """
        return f"±{self.size:g} {self.unit}{' of the mean' if self.relative else ''}".rstrip()


# The first one that fits is used. docs/evidence.md says why a smaller difference would not matter, and this one might.
MARGINS = (
    Margin(IMAGES, "digits", 0.2, "points"),
    Margin(IMAGES, "*mnist*", 0.1, "points"),
    Margin(IMAGES, "imagenette*", 1.0, "points"),
    Margin(IMAGES, "imagenet2012*", 0.3, "points"),
    Margin(IMAGES, "*", 0.5, "points"),
    Margin(LANGUAGE, "*", 1.0, "%", relative=True),
    Margin(TRANSLATION, "numbers", 1.0, "BLEU"),
    Margin(TRANSLATION, "*", 0.5, "BLEU"),
)
# Values of --dataset that name the form of the data, not the data set.
_FORMS = ("folder", "text", "wikitext")


def margin_of(task: str, data: str) -> Margin | None:
    """The margin for a data set; None for a task that the table does not have.

    >>> margin_of("image_classification", "digits").text, margin_of("wine_quality", "wine")
    ('±0.2 points', None)
    """
    return next((each for each in MARGINS if each.fits(task, data)), None)


def data_name(config: Mapping[str, Any]) -> str:
    """The name of the data of a run: that of a data set, or of the folder with the files.

    >>> data_name({"dataset": "wikitext", "data_dir": "/data/wikitext-2/"})
    'wikitext-2'
    >>> data_name({"dataset": "text", "source": "/data/multi30k/train.en.gz"})
    'multi30k'
    """
    dataset = str(config.get("dataset") or "")
    if dataset in _FORMS:
        if config.get("data_dir"):
            return pathlib.PurePath(str(config["data_dir"])).name or dataset
        if config.get("source"):
            return pathlib.PurePath(str(config["source"])).parent.name or dataset
    return dataset


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


def task_title(name: str) -> str:
    """
    >>> task_title("language_modeling"), task_title("wine")
    ('Language modelling', 'wine')
    """
    return TASKS[name].title if name in TASKS else name


def data_title(config: Mapping[str, Any]) -> str:
    """
    >>> data_title({"dataset": "wikitext", "data_dir": "/data/wikitext-2"}), data_title({"dataset": "cifar10"})
    ('WikiText-2', 'cifar10')
    """
    name = data_name(config)
    return DATA.get(name, name)


@dataclasses.dataclass(frozen=True)
class Terms:
    """What a table is judged by."""

    margin: Margin | None = None  # the smallest difference that matters; None if none was fixed
    unit: str = ""  # the unit of a difference
    command: str = ""  # the command that runs the same sweep again, to which --seeds is added; empty if it is not known


def sweep_command(task: str, config: str) -> str:
    """The command that runs a sweep again with the flags in its config.json.

    >>> sweep_command("language_modeling", "runs/my sweep/config.json")
    "python -m trainers.sweep --task=language_modeling --config='runs/my sweep/config.json'"
    """
    return f"python -m trainers.sweep --task={task} --config={shlex.quote(config)}"
