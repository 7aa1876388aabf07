"""The result of a run of a sweep: one line of JSON in the folder of its trial."""

import dataclasses
import json
import math
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainers.results.layout import AGAIN, RESULT, RESULTS, TRIALS
from trainers.results.methods import FIELDS
from trainers.system.errors import DataError
from trainers.system.files import UnreadableError, read_text

STATUSES = ("done", "diverged", "failed")

# The hyperparameters of a sweep, each with its values in order.
Grid = Mapping[str, Sequence[Any]]


@dataclasses.dataclass(frozen=True)
class Result:
    """One run: its hyperparameters and its outcome.

    `objective` is a finite number if and only if `status` is "done". A metric that is not finite is None.
    """

    trial: str  # the name of the run
    values: Mapping[str, Any]  # its hyperparameters, in order: learning_rate, beta_2, warmup, seed and any others
    status: str  # "done", "diverged" or "failed"
    objective: float | None  # the value that the sweep compares
    metrics: Mapping[str, float | None]  # other measured values
    seconds: float  # how long it took
    error: str = ""  # why it failed
    # Versions of packages, machine, revision and threads that it was made with, as far as known
    environment: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"`status` must be one of {', '.join(STATUSES)}. Received: status={self.status!r}")
        if (self.status == "done") != (_finite_number(self.objective) is not None):
            raise ValueError(
                "`objective` must be a finite number for status 'done', and None for the others. Received: "
                f"objective={self.objective}, status={self.status!r}"
            )
        object.__setattr__(self, "objective", _finite_number(self.objective))
        object.__setattr__(self, "metrics", {name: _finite_number(value) for name, value in self.metrics.items()})

    @classmethod
    def measured(
        cls,
        trial: str,
        values: Mapping[str, Any],
        objective: float,
        metrics: Mapping[str, float],
        seconds: float,
        environment: Mapping[str, Any] | None = None,
    ) -> "Result":
        """A run that was completed: done, or diverged if its objective is not a finite number.

        >>> Result.measured("0001", {"seed": 1}, float("nan"), {}, 2.5).status
        'diverged'
        """
        finite = _finite_number(objective)
        status = "diverged" if finite is None else "done"
        return cls(trial, values, status, finite, metrics, seconds, environment=environment or {})

    @classmethod
    def from_json(cls, line: str) -> "Result":
        return cls(**json.loads(line))

    @property
    def name(self) -> str:
        """The name of its cell."""
        return self.trial.partition(AGAIN)[0]

    def to_json(self) -> str:
        """One line; every float comes back exactly."""
        return json.dumps(dataclasses.asdict(self), allow_nan=False)


def read_result(folder: pathlib.Path) -> Result:
    """The result of a trial that has ended; raises a `DataError` if its file is damaged."""
    path = folder / RESULT
    try:
        result = Result.from_json(read_text(path))
        missing = [name for name in FIELDS if name not in result.values]
        if missing or not isinstance(result.seconds, int | float):
            raise UnreadableError(f"without {', '.join(missing) or 'seconds'}")
        if result.trial != folder.name:
            raise UnreadableError(f"the result of {result.trial}")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            f"A {RESULT} must be what a sweep has written: restore it, or remove it, and its run is taken from "
            f"{RESULTS} or made again. Received: {path} ({error})"
        ) from error
    return result


def each_once(results: Iterable[Result]) -> list[Result]:
    """One result per trial: the first that did not fail, or the first."""
    found: dict[str, Result] = {}
    for result in results:
        known = found.get(result.name)
        if known is None or (known.status == "failed" and result.status != "failed"):
            found[result.name] = result
    return list(found.values())


def finished_trials(folder: pathlib.Path) -> list[pathlib.Path]:
    """The folders of the trials that have a result."""
    return sorted(path.parent for path in (folder / TRIALS).glob(f"*/{RESULT}"))


def newest_folder(trials: pathlib.Path, name: str) -> pathlib.Path:
    """The folder where a trial is or will be. Older folders were taken over and are files now."""
    folder, number = trials / name, 2
    while (following := trials / f"{name}{AGAIN}{number}").exists():
        folder, number = following, number + 1
    return folder


def _finite_number(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None
