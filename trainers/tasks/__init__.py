"""The table of tasks: a new one is a folder and a line. TensorFlow is imported with a task, not with its flags."""

import importlib
from typing import TYPE_CHECKING

from trainers.engine.config import Config
from trainers.tasks.images.config import ImageConfig
from trainers.tasks.language.config import LanguageConfig
from trainers.tasks.translation.config import TranslationConfig

if TYPE_CHECKING:
    from trainers.engine.task import Task

# The flags of every task by its name, and where the task itself is.
CONFIGS: dict[str, type[Config]] = {
    "image_classification": ImageConfig,
    "language_modeling": LanguageConfig,
    "machine_translation": TranslationConfig,
}
_CLASSES = {
    "image_classification": "trainers.tasks.images.task.ImageClassification",
    "language_modeling": "trainers.tasks.language.task.LanguageModeling",
    "machine_translation": "trainers.tasks.translation.task.MachineTranslation",
}
_tasks: dict[str, "Task"] = {}


def register(task: "Task") -> None:
    """Makes a task of one's own known by its name, to sweeps above all."""
    CONFIGS[task.name] = task.config_class
    _tasks[task.name] = task


def load_task(name: str) -> "Task":
    """The task of a name in `CONFIGS`: the same object every time."""
    if name not in _tasks:
        module, _, class_name = _CLASSES[name].rpartition(".")
        _tasks[name] = getattr(importlib.import_module(module), class_name)()
    return _tasks[name]
