"""What a task is to the engine: data, a model, a loss and metrics, all by the example."""

import abc
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import keras

from trainers.engine.config import Config
from trainers.engine.data import Data, Source, fingerprint
from trainers.engine.records import RunFolder


class Task(abc.ABC):
    """One experiment of the paper. A new task is a folder with one of these and a line in `trainers.tasks`."""

    name: str
    config_class: type[Config]
    # The validation metric that decides which model is best.
    objective: str
    direction: str = "min"
    # Metrics that are fractions, which a program prints in %.
    fractions: tuple[str, ...] = ()
    # What the weights of examples count, for the records' speed.
    unit: str = "examples"

    @abc.abstractmethod
    def load(self, config: Any) -> Data:
        """The data, or a `DataError` that says what to do."""

    @abc.abstractmethod
    def build(self, config: Any, data: Any) -> keras.Model:
        """The model, freshly initialised."""

    @abc.abstractmethod
    def loss(self, config: Any, targets: Any, outputs: Any) -> Any:
        """The loss of each example, float32."""

    @abc.abstractmethod
    def metrics(self, config: Any, targets: Any, outputs: Any) -> Mapping[str, Any]:
        """Validation metrics of each example, float32; the engine averages them over all examples."""

    def summarize(self, means: Mapping[str, float]) -> dict[str, float]:
        """The recorded metrics from the averages: a perplexity from a mean loss, say."""
        return dict(means)

    def extra_validation(self, config: Any, data: Any, model: keras.Model) -> Callable[[], dict[str, float]]:
        """A function that tells validation metrics that are no means over examples, of the model as it then is."""
        return dict

    def final_results(self, config: Any, data: Any, model: keras.Model, folder: RunFolder) -> dict[str, Any]:
        """What else is to be said of the final model, beside its validation metrics: a test score, say."""
        return {}

    def final_sources(self, config: Any, data: Any) -> Mapping[str, Source]:
        """Further data to evaluate the final model on, by the prefix that their metrics get in results.json."""
        return {} if data.test is None else {"test": data.test}

    def fingerprint(self, data: Any) -> str:
        """A short text that tells these data from any other, wherever they are."""
        return fingerprint([*data.train.contents(), *data.validation.contents()])

    def check_folder(self, folder: pathlib.Path, data: Any) -> None:
        """Raises a `DataError` if a run in this folder had other data, a vocabulary say."""

    def fill_folder(self, folder: pathlib.Path, config: Any, data: Any) -> None:
        """Writes what a run is to keep besides its records; what is there already stays."""
