"""Callbacks of a run, for integrations such as wandb, MLflow or notifications."""

from collections.abc import Mapping, Sequence
from typing import Any


class RunCallback:
    """The base class of callbacks: its methods do nothing. With several workers, only the chief calls them."""

    def begin(self, config: Mapping[str, Any], facts: Mapping[str, Any], step: int) -> None:
        """Called when the run starts or resumes, after `step` updates. `facts` are `resolved` in config.json."""

    def record(self, values: Mapping[str, Any]) -> None:
        """Called when a record is written, a line of metrics.jsonl."""

    def end(self, status: str, results: Mapping[str, Any]) -> None:
        """Called when the run ends or stops. `status` is that of the folder; there are results if it is `done`."""


class Callbacks(RunCallback):
    """Several callbacks, called in order."""

    def __init__(self, callbacks: Sequence[RunCallback] = ()) -> None:
        self.callbacks = tuple(callbacks)

    def begin(self, config: Mapping[str, Any], facts: Mapping[str, Any], step: int) -> None:
        for callback in self.callbacks:
            callback.begin(config, facts, step)

    def record(self, values: Mapping[str, Any]) -> None:
        for callback in self.callbacks:
            callback.record(values)

    def end(self, status: str, results: Mapping[str, Any]) -> None:
        for callback in self.callbacks:
            callback.end(status, results)
