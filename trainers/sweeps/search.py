"""Searches for the best cell with keras-tuner's oracles. The score of a cell is the mean over its seeds."""

import collections
import itertools
import math
from typing import Any

import keras_tuner
from keras_tuner.engine.trial import Trial, TrialStatus
from keras_tuner.oracles import BayesianOptimizationOracle, HyperbandOracle, RandomSearchOracle

from trainers.results.methods import TUNED_WARMUPS, Point
from trainers.results.trials import Result
from trainers.sweeps.private import without_files
from trainers.sweeps.space import make_cell

EPOCHS = "tuner/epochs"  # Hyperband's name for the length of a trial
UNITS = 27  # that Hyperband divides --steps into, 3 ** 3
DIGITS = 3  # of a drawn number; more would only make names long
DISTANCE = "one_minus_beta_2"
NO_SEED = 2**31 - 1  # in place of 0, which keras-tuner takes for no seed


class SearchSource:
    """The runs of a search: one per seed for each cell that an oracle draws.

    The same settings and results lead to the same cells.
    """

    def __init__(self, settings: Any, objective: str, direction: str) -> None:
        self.settings, self.direction = settings, direction
        self.objective = keras_tuner.Objective(objective, direction)
        self.oracle = _make_oracle(settings, self.objective)
        self.total = settings.trials * len(settings.seeds) if settings.search != "hyperband" else None
        self.planned: dict[str, Point] = {}
        self._waiting: collections.deque[Point] = collections.deque()
        self._open: dict[str, tuple[Trial, list[Point], dict[str, Result | None]]] = {}
        self._worst: float | None = None
        self._names = itertools.count()

    def next(self) -> Point | None:
        if not self._waiting:
            trial = self.oracle.create_trial(f"cell{next(self._names)}")
            if trial.status != TrialStatus.RUNNING:
                return None
            cells = [self._cell(trial.hyperparameters.values, seed) for seed in self.settings.seeds]
            self._open[trial.trial_id] = (trial, cells, {})
            self.planned |= {cell.name: cell for cell in cells}
            self._waiting.extend(cells)
        return self._waiting.popleft()

    def ended(self, cell: Point, result: Result | None) -> None:
        if result is not None and result.objective is not None:
            worst = max if self.direction == "min" else min
            self._worst = result.objective if self._worst is None else worst(self._worst, result.objective)
        for identifier, (trial, cells, results) in list(self._open.items()):
            if cell in cells:
                results[cell.name] = result
                if len(results) == len(cells):
                    del self._open[identifier]
                    self._score(trial, list(results.values()))

    def _score(self, trial: Trial, results: list[Result | None]) -> None:
        """Reports the mean over seeds to the oracle. A run that diverged counts as the worst value so far."""
        ended = [result for result in results if result is not None and result.status != "failed"]
        values = [self._worst if result.objective is None else result.objective for result in ended]
        known = [value for value in values if value is not None]
        trial.status = TrialStatus.COMPLETED if len(known) == len(results) else TrialStatus.FAILED
        if trial.status == TrialStatus.COMPLETED:
            score = math.fsum(known) / len(known)
            self.oracle.update_trial(trial.trial_id, {self.objective.name: score})
        self.oracle.end_trial(trial)

    def _cell(self, values: dict[str, Any], seed: int) -> Point:
        others = {name: values[name] for name in self.settings.axes}
        if EPOCHS in values:
            others |= _length(self.settings, values[EPOCHS])
        is_tuned = values["warmup"] in TUNED_WARMUPS
        tuned = tuple((name, _rounded(values[name])) for name in self.settings.tuned_lists if is_tuned)
        beta_2 = round(1 - _rounded(values[DISTANCE]), 12)
        rate = _rounded(values["learning_rate"])
        return make_cell(self.settings, rate, beta_2, values["warmup"], seed, tuned, others)


def _make_oracle(settings: Any, objective: keras_tuner.Objective) -> keras_tuner.Oracle:
    options: dict[str, Any] = {
        "objective": objective,
        "hyperparameters": _space(settings),
        "seed": settings.seed or NO_SEED,
        "max_consecutive_failed_trials": 10**9,  # a sweep continues after failures
    }
    kind, length = {
        "random": (RandomSearchOracle, {"max_trials": settings.trials}),
        "bayesian": (BayesianOptimizationOracle, {"max_trials": settings.trials}),
        "hyperband": (HyperbandOracle, {"max_epochs": _units(settings)}),
    }[settings.search]
    oracle = without_files(kind)(**length, **options)
    oracle.verbose = 0
    return oracle


def _units(settings: Any) -> int:
    """What Hyperband calls epochs: the epochs of a run, or parts of its steps."""
    return int(settings.epochs if settings.steps is None else min(settings.steps, UNITS))


def _length(settings: Any, units: int) -> dict[str, int]:
    """The flag that sets the length of a run to `units` of Hyperband."""
    if settings.steps is None:
        return {"epochs": units}
    return {"steps": math.ceil(settings.steps * units / _units(settings))}


def _space(settings: Any) -> keras_tuner.HyperParameters:
    space = keras_tuner.HyperParameters()
    _log_range(space, "learning_rate", settings.learning_rates)
    _log_range(space, DISTANCE, [1 - beta_2 for beta_2 in settings.beta_2s])
    space.Choice("warmup", list(settings.warmups))
    tuned = [name for name in settings.warmups if name in TUNED_WARMUPS]
    if tuned:
        with space.conditional_scope("warmup", tuned):
            for name, values in settings.tuned_lists.items():
                _log_range(space, name, values)
    for name, values in settings.axes.items():
        space.Choice(name, list(values))
    return space


def _log_range(space: keras_tuner.HyperParameters, name: str, values: Any) -> None:
    low, high = min(values), max(values)
    if low == high:
        space.Fixed(name, low)
    else:
        space.Float(name, low, high, sampling="log")


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
