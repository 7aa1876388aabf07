"""A line that says how many trials of a sweep are done, the best so far, and the time left."""

from typing import Any

from tqdm import tqdm

from trainers.evidence.objectives import Objective
from trainers.sweeps.results import Result


class Progress:
    """The progress line.

    Args:
        objective: What the runs are compared by.
        total: Total number of runs, if known.
        done: Number of runs that were done before.
        shown: Whether to show the line.
    """

    def __init__(self, objective: Objective, total: int | None, done: int, shown: bool) -> None:
        self.best: float | None = None
        self._objective = objective
        self._bar = tqdm(total=total, initial=done, unit="trial", desc="sweep", disable=not shown)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: Any) -> None:
        self._bar.close()

    def finished(self, result: Result) -> None:
        choose = min if self._objective.direction == "min" else max
        if result.objective is not None:
            self.best = result.objective if self.best is None else choose(self.best, result.objective)
        self._bar.set_postfix_str(
            "" if self.best is None else f"best {self._objective.label} {self._objective.shown(self.best):.4g}"
        )
        self._bar.update(1)
