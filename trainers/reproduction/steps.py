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
from trainers.engine.task import Task
from trainers.gradient_analysis import analyse
from trainers.simulate import SimulationConfig, simulate
from trainers.sweeps.results import finished_trials
from trainers.sweeps.space import grid, sweep_config_class
from trainers.sweeps.sweep import sweep
from trainers.tasks import TASKS

CONFIGS = "configs"  # in the folder that the program is started in: a checkout
IMAGES, LANGUAGE, TRANSLATION = (
    TASKS[name] for name in ("image_classification", "language_modeling", "machine_translation")
)
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
        seconds: About how long it takes on two cores: only the time that is left is told by it.
        done: How much of it is done, as two numbers and what they count. Called while it runs.
    """

    name: str
    title: str
    task: str
    config_class: type[Settings]
    arguments: tuple[str, ...]
    work: Callable[[Any], str]
    seconds: float
    done: Callable[[Any], tuple[int, int, str] | None] = lambda _: None

    def config(self, folder: pathlib.Path, workers: int) -> Settings:
        more = [f"--output_dir={folder / self.name}"]
        if self.work is sweep:
            more += [f"--workers={workers}", "--noprogress"]
        return parse_arguments(self.config_class, [*self.arguments, *more])


def default_workers() -> int:
    return min(os.cpu_count() or 1, WORKERS_AT_MOST)


def sweep_step(name: str, title: str, task: Task, config: str, seconds: float) -> Step:
    """A sweep of a task with the flags of a config."""
    arguments = (f"--flagfile={CONFIGS}/{config}",)
    return Step(name, title, f"sweep of {task.name}", sweep_config_class(task), arguments, sweep, seconds, _trials_done)


def _trials_done(config: Any) -> tuple[int, int, str]:
    return len(finished_trials(pathlib.Path(config.output_dir))), len(grid(config)), "runs"


def _updates_done(config: Any) -> tuple[int, int, str] | None:
    """The updates of one training run, by its last whole record."""
    try:
        lines = (pathlib.Path(config.output_dir) / "metrics.jsonl").read_text().split("\n")
        return json.loads(lines[-2])["updates"], config.steps, "updates"
    except (OSError, ValueError, IndexError):
        return None


STEPS = (
    Step(
        name="warmups",
        title="warmup factors and their effective periods",
        task="effective_warmup",
        config_class=WarmupConfig,
        arguments=(),
        work=draw_warmups,
        seconds=2,
    ),
    Step(
        name="simulation",
        title="Adam's updates at a simulated minimum",
        task="simulate",
        config_class=SimulationConfig,
        arguments=("--iterations=10000",),
        work=simulate,
        seconds=7,
    ),
    Step(
        name="gradients",
        title="a training run, looked into",
        task="gradient_analysis",
        config_class=AnalysisConfig,
        arguments=(f"--flagfile={CONFIGS}/embedded/gradient_analysis.flags", "--noprogress"),
        work=analyse,
        seconds=12,
        done=_updates_done,
    ),
    sweep_step("digits", "rates and beta_2 on digits", IMAGES, "embedded/sweep_digits.flags", 175),
    sweep_step("resnet", "a residual network", IMAGES, "reproduce/resnet.flags", 40),
    sweep_step("language", "a Transformer language model", LANGUAGE, "reproduce/language.flags", 95),
    sweep_step("translation", "a Transformer translator", TRANSLATION, "reproduce/translation.flags", 215),
    sweep_step("first_steps", "RAdam with other first steps", IMAGES, "reproduce/first_steps.flags", 33),
    sweep_step("no_warmup", "the translator without warmup", TRANSLATION, "reproduce/no_warmup.flags", 130),
)
