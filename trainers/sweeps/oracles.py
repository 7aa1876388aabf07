"""Which cell comes next: the oracles of keras-tuner, and a grid that can be resumed and shared by workers."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import keras_tuner
from keras_tuner.engine.trial import TrialStatus
from keras_tuner.oracles import BayesianOptimizationOracle, HyperbandOracle, RandomSearchOracle

from trainers.sweeps.cells import FIELDS, Cell
from trainers.sweeps.space import SweepSettings, grid


class GridOracle(keras_tuner.Oracle):
    """Hands out cells in order, each to whichever worker asks first.

    keras-tuner's own grid finds the next cell from those that have ended: it forgets some after a kill, and gives one
    at a time to any number of workers.
    """

    def __init__(self, cells: Iterable[Cell], **options: Any) -> None:
        self._waiting = list(cells)
        super().__init__(max_trials=len(self._waiting), **options)

    def populate_space(self, trial_id: str) -> dict[str, Any]:
        if not self._waiting:
            return {"status": TrialStatus.STOPPED, "values": None}
        return {"status": TrialStatus.RUNNING, "values": dataclasses.asdict(self._waiting.pop(0))}


def make_oracle(settings: Any, objective: keras_tuner.Objective) -> keras_tuner.Oracle:
    """The oracle of `--search`; with the same settings and results it asks for the same trials again."""
    options: dict[str, Any] = {
        "objective": objective,
        "hyperparameters": _space(settings),
        "seed": settings.seed,
        "max_consecutive_failed_trials": 10**9,  # a sweep goes on
    }
    if settings.search == "grid":
        return GridOracle(grid(settings), **options)
    if settings.search == "hyperband":
        return HyperbandOracle(max_epochs=settings.epochs, **options)
    kind = {"random": RandomSearchOracle, "bayesian": BayesianOptimizationOracle}[settings.search]
    return kind(max_trials=settings.trials, **options)


def _space(settings: SweepSettings) -> keras_tuner.HyperParameters:
    space = keras_tuner.HyperParameters()
    for name in FIELDS:
        space.Choice(name, list(getattr(settings, f"{name}s")))
    return space
