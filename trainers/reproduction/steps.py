"""What a step of a reproduction is: a program of this project with a config, in a folder of its own."""

import dataclasses
import functools
import json
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from trainers.engine.config import TUNED_WARMUPS
from trainers.engine.flags import Settings, parse_arguments
from trainers.engine.program import imported_late
from trainers.sweeps.kept import known_results
from trainers.sweeps.results import AGAIN, finished_trials
from trainers.sweeps.space import SweepSettings, grid, sweep_config_class

CONFIGS = "configs"  # in the folder that the program is started in: a checkout
CACHE = "cache"  # in the folder of the reproduction: the data themselves may be read-only
WORKERS_AT_MOST = 4  # each needs about a gigabyte

NO_DATA: Mapping[str, str] = {}


@dataclasses.dataclass(frozen=True)
class Step:
    """One experiment.

    Args:
        name: Its name in `--only`, and that of its folder.
        title: What it is, in a few words.
        task: What its config.json says that it is.
        config_class: Its flags,
        arguments: and what is given for them.
        work: Runs it; what has been done before is not done again.
        seconds: About how long it takes on two cores: only the time that is left is told by it.
        done: How much of it is done, as two numbers and what they count. Called while it runs.
        folder: Its folder, where that has another name: that of a sweep which the step adds runs to.
        data: Flags whose values are files or folders below `--data`.
    """

    name: str
    title: str
    task: str
    config_class: type[Settings]
    arguments: tuple[str, ...]
    work: Callable[[Any], str]
    seconds: float
    done: Callable[[Any], tuple[int, int, str] | None] = lambda _: None
    folder: str = ""
    data: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def place(self) -> str:
        """The name of its folder."""
        return self.folder or self.name

    def config(self, folder: pathlib.Path, workers: int, data: str | None = None, known: str | None = None) -> Settings:
        more = [f"--output_dir={folder / self.place}"]
        if issubclass(self.config_class, SweepSettings):
            more += [f"--workers={workers}", "--noprogress"]
            if known and pathlib.Path(known, self.place).is_dir():
                more += [f"--known_results={pathlib.Path(known, self.place)}"]
        if self.data:
            more += [f"--{flag}={pathlib.Path(data or '', place)}" for flag, place in self.data.items()]
            more += [f"--cache_dir={folder / CACHE}"]
        return parse_arguments(self.config_class, [*self.arguments, *more])

    def missing_data(self, data: str | None) -> list[str]:
        """What it needs and `--data` does not have."""
        return [place for place in self.data.values() if data is None or not pathlib.Path(data, place).exists()]


def default_workers() -> int:
    return min(os.cpu_count() or 1, WORKERS_AT_MOST)


def sweep_step(
    name: str, title: str, task: str, seconds: float, config: str, folder: str = "", data: Mapping[str, str] = NO_DATA
) -> Step:
    """A sweep of a task with the flags of a config below configs/reproduce.

    With a `folder`, it is the sweep there and adds the runs of a tuned warmup: these alone are its own.
    """
    return Step(
        name,
        title,
        task=f"sweep of {task}",
        config_class=sweep_config_class(task),
        arguments=(f"--flagfile={CONFIGS}/reproduce/{config}.flags",),
        work=imported_late("trainers.sweeps.sweep", "sweep"),
        seconds=seconds,
        done=tuned_trials_done if folder else trials_done,
        folder=folder,
        data=data,
    )


def trials_done(config: Any) -> tuple[int, int, str]:
    """How many runs of a sweep have ended, of those that a config asks for; its folder may have others."""
    return _ended(config, _cell_names(config))


def tuned_trials_done(config: Any) -> tuple[int, int, str]:
    """The same of the runs with a tuned warmup."""
    return _ended(config, _cell_names(config, tuned=True))


def _ended(config: Any, asked: frozenset[str]) -> tuple[int, int, str]:
    ended = {trial.name.partition(AGAIN)[0] for trial in finished_trials(pathlib.Path(config.output_dir))}
    return len(asked & (ended | _known_names(config))), len(asked), "runs"


@functools.lru_cache
def _known_names(config: Any) -> frozenset[str]:
    return frozenset(result.name for result in known_results(config))


@functools.lru_cache
def _cell_names(config: Any, tuned: bool = False) -> frozenset[str]:
    return frozenset(cell.name for cell in grid(config) if not tuned or cell.warmup in TUNED_WARMUPS)


def updates_done(config: Any) -> tuple[int, int, str] | None:
    """The updates of one training run, by its last whole record."""
    try:
        lines = (pathlib.Path(config.output_dir) / "metrics.jsonl").read_text().split("\n")
        return json.loads(lines[-2])["updates"], config.steps, "updates"
    except (OSError, ValueError, IndexError):
        return None
