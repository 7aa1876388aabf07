"""What a reproduction consists of: the programs of this project, each with a config."""

import dataclasses
import json
import os
import pathlib
from collections.abc import Callable
from typing import Any

from trainers.analysis.measured_run import AnalysisConfig
from trainers.effective_warmup import WarmupConfig, draw_warmups
from trainers.engine.config import Settings, parse_arguments
from trainers.gradient_analysis import analyse
from trainers.simulate import SimulationConfig, simulate
from trainers.sweeps.space import grid, sweep_config_class
from trainers.sweeps.sweep import finished_trials, sweep
from trainers.tasks import TASKS

CONFIGS = "configs"  # in the folder that the program is started in: a checkout
WORKERS_AT_MOST = 4  # each needs about a gigabyte


@dataclasses.dataclass(frozen=True)
class Step:
    """One experiment, in a folder of its own.

    Args:
        name: Of its folder, and of `--only`.
        title: What it is, in a few words.
        task: What its config.json says that it is.
        config_class: Its flags,
        arguments: and what is given for them.
        work: Runs it; what has been done before is not done again.
        done: How much of it is done, as two numbers and what they count. Called while it runs.
        seconds: About how long it takes on two cores: only the time that is left is told by it.
    """

    name: str
    title: str
    task: str
    config_class: type[Settings]
    arguments: tuple[str, ...]
    work: Callable[[Any], str]
    done: Callable[[Any], tuple[int, int, str] | None]
    seconds: float

    def config(self, folder: pathlib.Path, workers: int) -> Settings:
        more = [f"--output_dir={folder / self.name}"]
        if self.work is sweep:
            more += [f"--workers={workers}", "--noprogress"]
        return parse_arguments(self.config_class, [*self.arguments, *more])


def default_workers() -> int:
    return min(os.cpu_count() or 1, WORKERS_AT_MOST)


def sweep_step(name: str, title: str, config: str, seconds: float, *more: str, task: str) -> Step:
    """A sweep with the flags of a config, and more."""
    arguments = (f"--flagfile={CONFIGS}/{config}", *more)
    config_class = sweep_config_class(TASKS[task])
    return Step(name, title, f"sweep of {task}", config_class, arguments, sweep, _trials_done, seconds)


def _trials_done(config: Any) -> tuple[int, int, str]:
    return len(finished_trials(pathlib.Path(config.output_dir))), len(grid(config)), "runs"


def _updates_done(config: Any) -> tuple[int, int, str] | None:
    """The updates of one training run, by its last whole record."""
    try:
        lines = (pathlib.Path(config.output_dir) / "metrics.jsonl").read_text().split("\n")
        return json.loads(lines[-2])["updates"], config.steps, "updates"
    except (OSError, ValueError, IndexError):
        return None


def _not_told(_: Any) -> None:
    return None


STEPS = (
    Step(
        *("warmups", "warmup factors and their effective periods", "effective_warmup"),
        *(WarmupConfig, (), draw_warmups, _not_told, 5),
    ),
    Step(
        *("simulation", "Adam's updates at a simulated minimum", "simulate"),
        *(SimulationConfig, ("--iterations=10000",), simulate, _not_told, 10),
    ),
    Step(
        *("gradients", "a training run, looked into", "gradient_analysis", AnalysisConfig),
        (f"--flagfile={CONFIGS}/embedded/gradient_analysis.flags", "--noprogress"),
        *(analyse, _updates_done, 35),
    ),
    sweep_step(
        *("digits", "the grid of rates and beta_2, on digits", "embedded/sweep_digits.flags", 70),
        task="image_classification",
    ),
    sweep_step(
        *("resnet", "a residual network", "reproduce/resnet.flags", 85),
        task="image_classification",
    ),
    sweep_step(
        *("language", "a Transformer language model", "reproduce/language.flags", 70),
        task="language_modeling",
    ),
    sweep_step(
        *("translation", "a Transformer translator", "reproduce/translation.flags", 170),
        task="machine_translation",
    ),
    sweep_step(
        *("first_steps", "RAdam with other first steps", "reproduce/first_steps.flags", 25),
        task="image_classification",
    ),
    sweep_step(
        *("no_warmup", "the translator without warmup", "reproduce/no_warmup.flags", 110),
        task="machine_translation",
    ),
)
