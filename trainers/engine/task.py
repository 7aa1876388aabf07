"""What your own code may implement: a task, and callbacks of its runs."""

import abc
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import keras

from trainers.engine.config import Config
from trainers.engine.data import Data, Source, fingerprint
from trainers.engine.folder import RunFolder


class Task(abc.ABC):
    """One experiment of the paper. A new task is a folder with a subclass and a line in `trainers.tasks`."""

    name: str
    config_class: type[Config]
    # The validation metric that decides which model is best.
    objective: str
    direction: str = "min"
    # Metrics that are fractions, which a program prints in %.
    fractions: tuple[str, ...] = ()
    # The unit of the weights of examples, for the speed in the records.
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
        """Computes the recorded metrics from the averages, such as a perplexity from a mean loss."""
        return dict(means)

    def extra_validation(self, config: Any, data: Any, model: keras.Model) -> Callable[[], dict[str, float]]:
        """A function that computes validation metrics of the current model that are not means over examples."""
        return dict

    def final_results(self, config: Any, data: Any, model: keras.Model, folder: RunFolder) -> dict[str, Any]:
        """Further results of the final model besides its validation metrics, such as a test score."""
        return {}

    def final_sources(self, config: Any, data: Any) -> Mapping[str, Source]:
        """Further data to evaluate the final model on, by the prefix that their metrics get in results.json."""
        return {} if data.test is None else {"test": data.test}

    def fingerprint(self, data: Any) -> str:
        """A short text that identifies the data, wherever they are stored."""
        return fingerprint([*data.train.contents(), *data.validation.contents()])

    def check_folder(self, folder: pathlib.Path, data: Any) -> None:
        """Raises a `DataError` if a run in this folder used other data, such as another vocabulary."""

    def fill_folder(self, folder: pathlib.Path, config: Any, data: Any) -> None:
        """Writes what a run keeps besides its records. Existing files are kept."""


class RunCallback:
    """The base class of callbacks: its methods do nothing. With several workers, only the chief calls them."""

    def begin(self, config: Mapping[str, Any], facts: Mapping[str, Any], step: int) -> None:
        """Called when the run starts or resumes, after `step` updates. `facts` are `resolved` in config.json."""

    def record(self, values: Mapping[str, Any]) -> None:
        """Called when a record is written, a line of metrics.jsonl."""

    def end(self, status: str, results: Mapping[str, Any]) -> None:
        """Called when the run ends or stops. `status` is that of the folder; there are results if it is `done`."""
