"""What a task is to the engine: data, a model, a loss and metrics, all by the example."""

import abc
import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import keras

from trainers.engine.config import Config
from trainers.engine.data import Source, fingerprint
from trainers.engine.records import RunFolder


@dataclasses.dataclass(frozen=True)
class Data:
    """The two halves of a task's data, and what the model needs to know of it."""

    train: Source
    validation: Source
    details: Any = None


class Task(abc.ABC):
    """One experiment of the paper. A new task is a module with one of these and a line in `trainers.tasks.TASKS`."""

    name: str
    config_class: type[Config]
    metric_names: tuple[str, ...]
    # The validation metric that decides which model is best.
    objective: str
    direction: str = "min"
    # What the weights of examples count, for the records' speed.
    unit: str = "examples"

    @abc.abstractmethod
    def load(self, config: Any) -> Data:
        """The data, or a `DataError` that says what to do."""

    @abc.abstractmethod
    def build(self, config: Any, data: Data) -> keras.Model:
        """The model, freshly initialised."""

    @abc.abstractmethod
    def loss(self, config: Any, targets: Any, outputs: Any) -> Any:
        """The loss of each example, float32."""

    @abc.abstractmethod
    def metrics(self, targets: Any, outputs: Any) -> Mapping[str, Any]:
        """Validation metrics of each example, float32; the engine averages them over all examples."""

    def summarize(self, means: Mapping[str, float]) -> dict[str, float]:
        """The recorded metrics from the averages: a perplexity from a mean loss, say."""
        return dict(means)

    def judge(self, config: Any, data: Data, model: keras.Model) -> Callable[[], dict[str, float]]:
        """A function that tells validation metrics that are no means over examples, of the model as it then is."""
        return dict

    def conclude(self, config: Any, data: Data, model: keras.Model, folder: RunFolder) -> dict[str, Any]:
        """What else is to be said of the final model, beside its validation metrics: a test score, say."""
        return {}

    def fingerprint(self, data: Data) -> str:
        """A short text that tells these data from any other, wherever they are."""
        return fingerprint([*data.train.contents(), *data.validation.contents()])

    def check_folder(self, folder: pathlib.Path, data: Data) -> None:
        """Raises a `DataError` if a run in this folder had other data, a vocabulary say."""

    def fill_folder(self, folder: pathlib.Path, config: Any, data: Data) -> None:
        """Writes what a run is to keep besides its records; what is there already stays."""
