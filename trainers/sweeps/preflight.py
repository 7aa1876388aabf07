"""Checks before the first trial what every trial of a sweep needs: data, a batch that fits, and optimizers."""

import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainers.engine.checkpoint import model_file
from trainers.engine.config import Config
from trainers.engine.optimizers import bare_optimizer
from trainers.engine.reuse import Setups, is_reusable, without_values
from trainers.engine.setup import Beginning
from trainers.engine.task import Task
from trainers.results.layout import CONFIG, TRIALS
from trainers.results.methods import FIELDS, TUNED_FLAGS, Point
from trainers.results.trials import Result
from trainers.sweeps.space import trial_config
from trainers.system.errors import ConfigError
from trainers.system.files import UnreadableError, read_object


def check_cells(settings: Any, task: Task, cells: Sequence[Point], results: Iterable[Result], setups: Setups) -> None:
    """Raises a `ConfigError` or `DataError` if there are cells that cannot be run, or results made with other data.

    The setup made here for the first trial stays in `setups`.
    """
    finished = {_others(settings, result.values): result.trial for result in results if result.status != "failed"}
    for number, configs in enumerate(_config_groups(settings, cells)):
        first = configs[0]
        if first.init_from is not None:
            model_file(first.init_from, "--init_from")
        starts_soon = number == 0 and is_reusable(first)
        beginning = setups(first, task) if starts_soon else Beginning(first, task)
        for config in configs:
            bare_optimizer(config, beginning.plan.steps_per_epoch, beginning.plan.total_steps)
        trial = finished.get(_others(settings, {name: getattr(first, name) for name in settings.axes}))
        if trial is not None:
            _check_data(settings, trial, task.fingerprint(beginning.data))


def _others(settings: Any, values: Mapping[str, Any]) -> frozenset[tuple[str, Any]]:
    """The hyperparameters of a run that data may depend on and that differ from the settings of the sweep."""
    return frozenset(
        (name, value)
        for name, value in values.items()
        if name not in (*FIELDS, *TUNED_FLAGS) and value != getattr(settings, name, None)
    )


def _check_data(settings: Any, trial: str, data: str) -> None:
    """Raises a `ConfigError` if a finished trial had other data: a table must not mix them."""
    path = pathlib.Path(settings.output_dir) / TRIALS / trial / CONFIG
    try:
        theirs = read_object(path).get("data", data)
    except UnreadableError:  # only the result of the trial is needed
        return
    if theirs != data:
        raise ConfigError(
            "--output_dir must be new or hold runs with the same data. "
            f"Received: {settings.output_dir}, whose runs had other data than what is given now"
        )


def _config_groups(settings: Any, cells: Sequence[Point]) -> Iterable[list[Config]]:
    """The configs of cells, one for all seeds, in groups that need the same data and batches."""
    groups: dict[str, list[Config]] = {}
    for config in dict.fromkeys(trial_config(settings, {**cell.values, "seed": cells[0].seed}, "-") for cell in cells):
        groups.setdefault(str(without_values(config)), []).append(config)
    return groups.values()
