"""The table of tasks: a new one is a module and a line."""

from trainers.engine.task import Task
from trainers.tasks.image_classification import ImageClassification
from trainers.tasks.language_modeling import LanguageModeling
from trainers.tasks.machine_translation import MachineTranslation

TASKS: dict[str, Task] = {task.name: task for task in (ImageClassification(), LanguageModeling(), MachineTranslation())}
