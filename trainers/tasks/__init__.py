"""The table of tasks. A new task is a folder and one line here. Reading the flags of a task needs no TensorFlow."""

import importlib
from typing import TYPE_CHECKING

from trainers.engine.config import Config
from trainers.tasks.images.config import ImageConfig
from trainers.tasks.language.config import LanguageConfig
from trainers.tasks.translation.config import TranslationConfig

if TYPE_CHECKING:
    from trainers.engine.task import Task

# The config class with the flags of each task, and the import path of the task itself.
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
    """Registers a custom task under its name, so that sweeps can find it."""
    CONFIGS[task.name] = task.config_class
    _tasks[task.name] = task


def load_task(name: str) -> "Task":
    """Returns the task called `name` in `CONFIGS`, the same object every time."""
    if name not in _tasks:
        module, _, class_name = _CLASSES[name].rpartition(".")
        _tasks[name] = getattr(importlib.import_module(module), class_name)()
    return _tasks[name]


def packed(name: str) -> "Task | str":
    """A task in the form in which it can be sent to another process: its name, or a custom task itself."""
    return name if name in _CLASSES else load_task(name)


def unpacked(task: "Task | str") -> str:
    """The name of a `packed` task, which is registered in this process from here on."""
    if isinstance(task, str):
        return task
    register(task)
    return task.name
