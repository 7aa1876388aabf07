"""A step of a reproduction: one of this project's programs with a config and a folder."""

import dataclasses
import functools
import json
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from trainers.engine.flags import Settings
from trainers.engine.program import parse_arguments
from trainers.results.layout import AGAIN, RECORDS, RESULTS
from trainers.results.methods import TUNED_WARMUPS
from trainers.results.results_csv import read_table
from trainers.results.trials import finished_trials
from trainers.sweeps.space import SweepSettings, grid, sweep_config_class

CONFIGS = "configs"  # relative to the working directory, a checkout
CACHE = "cache"  # in the folder of the reproduction, because the data may be read-only
WORKERS_AT_MOST = 4  # each needs about a gigabyte

NO_DATA: Mapping[str, str] = {}


@dataclasses.dataclass(frozen=True)
class Step:
    """One experiment.

    Args:
        name: The name of the step in `--only`, and of its folder.
        title: A description in a few words.
        program: The module that is run, which does not repeat what is already done.
        task: The task in its config.json.
        config_class: The class of its flags.
        arguments: The flags on its command line.
        seconds: Approximate time on two cores, used only to estimate the time left.
        done: Returns how much is done, as (done, total, unit). Called while the step runs.
        folder: Its folder, if not `name`: that of the sweep that the step adds runs to.
        data: Flags whose values are files or folders below `--data`.
    """

    name: str
    title: str
    program: str
    task: str
    config_class: type[Settings]
    arguments: tuple[str, ...]
    seconds: float
    done: Callable[[Any], tuple[int, int, str] | None] = lambda _: None
    folder: str = ""
    data: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def place(self) -> str:
        """The name of its folder."""
        return self.folder or self.name

    def flags(self, folder: pathlib.Path, workers: int, data: str | None = None) -> list[str]:
        """The command line of its program."""
        more = [f"--output_dir={folder / self.place}"]
        if self.is_sweep:
            more += [f"--workers={workers}", "--noprogress"]
        if self.data:
            more += [f"--{flag}={pathlib.Path(data or '', place)}" for flag, place in self.data.items()]
            more += [f"--cache_dir={folder / CACHE}"]
        return [*self.arguments, *more]

    @property
    def is_sweep(self) -> bool:
        return issubclass(self.config_class, SweepSettings)

    def config(self, folder: pathlib.Path, workers: int, data: str | None = None) -> Settings:
        return parse_arguments(self.config_class, self.flags(folder, workers, data))

    def missing_data(self, data: str | None) -> list[str]:
        """The files and folders that it needs and `--data` lacks."""
        return [place for place in self.data.values() if data is None or not pathlib.Path(data, place).exists()]


def default_workers() -> int:
    return min(os.cpu_count() or 1, WORKERS_AT_MOST)


def sweep_step(
    name: str, title: str, task: str, seconds: float, config: str, folder: str = "", data: Mapping[str, str] = NO_DATA
) -> Step:
    """A sweep of a task with the flags of a config below configs/reproduce.

    With a `folder`, it adds the runs of a tuned warmup to the sweep there, and counts only these.
    """
    return Step(
        name,
        title,
        program="trainers.sweep",
        task=f"sweep of {task}",
        config_class=sweep_config_class(task),
        arguments=(f"--flagfile={CONFIGS}/reproduce/{config}.flags",),
        seconds=seconds,
        done=tuned_trials_done if folder else trials_done,
        folder=folder,
        data=data,
    )


def trials_done(config: Any) -> tuple[int, int, str]:
    """How many of the runs that a config asks for have ended; the folder may contain others."""
    return _ended(config, _cell_names(config))


def tuned_trials_done(config: Any) -> tuple[int, int, str]:
    """The same for runs with a tuned warmup."""
    return _ended(config, _cell_names(config, tuned=True))


def _ended(config: Any, asked: frozenset[str]) -> tuple[int, int, str]:
    folder = pathlib.Path(config.output_dir)
    ended = {trial.name.partition(AGAIN)[0] for trial in finished_trials(folder)}
    if (folder / RESULTS).exists():
        ended |= {result.name for result in read_table(folder / RESULTS)}
    return len(asked & ended), len(asked), "runs"


@functools.lru_cache
def _cell_names(config: Any, tuned: bool = False) -> frozenset[str]:
    return frozenset(cell.name for cell in grid(config) if not tuned or cell.warmup in TUNED_WARMUPS)


def updates_done(config: Any) -> tuple[int, int, str] | None:
    """The updates of a training run so far, from its last complete record."""
    try:
        lines = (pathlib.Path(config.output_dir) / RECORDS).read_text().split("\n")
        return json.loads(lines[-2])["updates"], config.steps, "updates"
    except (OSError, ValueError, IndexError):
        return None
