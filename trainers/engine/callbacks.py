"""One seam for whatever else is to hear of a run: wandb, MLflow, a message to somebody."""

from collections.abc import Mapping, Sequence
from typing import Any


class RunCallback:
    """Hears of a run; a method that is not overridden does nothing. Only the chief of several workers tells."""

    def begin(self, config: Mapping[str, Any], facts: Mapping[str, Any], step: int) -> None:
        """The run begins, or goes on, after `step` updates. `facts` are those of `resolved` in config.json."""

    def record(self, values: Mapping[str, Any]) -> None:
        """A record was written: a line of metrics.jsonl."""

    def end(self, status: str, results: Mapping[str, Any]) -> None:
        """The run is over, for now; its status is that of the folder, and there are results if it is `done`."""


class Callbacks(RunCallback):
    """Several of them, told in their order."""

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
