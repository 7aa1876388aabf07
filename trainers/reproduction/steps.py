"""The steps of the two reproductions: each is one of this project's programs with a config and a folder."""

import dataclasses
import functools
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from trainers.analysis.config import AnalysisConfig
from trainers.engine.flags import Settings
from trainers.engine.program import parse_arguments
from trainers.figures.config import SimulationConfig, WarmupConfig
from trainers.results.layout import AGAIN, RECORDS, RESULTS
from trainers.results.methods import TUNED_WARMUPS
from trainers.results.tasks import IMAGES, LANGUAGE, TRANSLATION
from trainers.results.trials import finished_trials
from trainers.sweeps.space import SweepSettings, grid, sweep_config_class

CONFIGS = "configs"  # relative to the working directory, a checkout
CACHE = "cache"  # in the folder of the reproduction, because the data may be read-only
WORKERS_AT_MOST = 4  # each needs about a gigabyte


@dataclasses.dataclass(frozen=True)
class Step:
    """One experiment."""

    name: str  # the name of the step in `--only`, and of its folder
    title: str  # a description in a few words
    program: str  # the module of `trainers` that is run, which does not repeat what is already done
    config_class: Any  # the class of its flags
    seconds: float  # approximate time on two cores, used only to estimate the time left
    arguments: tuple[str, ...] = ()  # the flags on its command line
    folder: str = ""  # its folder, if not `name`: that of the sweep to which it adds runs with a tuned warmup
    # Flags whose values are files or folders below `--data`
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

    @property
    def task(self) -> str:
        """The task in its config.json."""
        return f"sweep of {self.config_class.task}" if self.is_sweep else self.program

    def done(self, config: Any) -> tuple[int, int, str] | None:
        """How much is done, as (done, total, unit), also while the step runs."""
        return trials_done(config, tuned=bool(self.folder)) if self.is_sweep else updates_done(config)

    def config(self, folder: pathlib.Path, workers: int, data: str | None = None) -> Settings:
        config: Settings = parse_arguments(self.config_class, self.flags(folder, workers, data))
        return config

    def missing_data(self, data: str | None) -> list[str]:
        """The files and folders that it needs and `--data` lacks."""
        return [place for place in self.data.values() if data is None or not pathlib.Path(data, place).exists()]


def default_workers() -> int:
    return min(os.cpu_count() or 1, WORKERS_AT_MOST)


def sweep_step(name: str, title: str, task: str, seconds: float, config: str, folder: str = "", **data: str) -> Step:
    """A sweep of a task with the flags of a config below configs/reproduce."""
    arguments = (f"--flagfile={CONFIGS}/reproduce/{config}.flags",)
    return Step(name, title, "sweep", sweep_config_class(task), seconds, arguments, folder, data)


def trials_done(config: Any, tuned: bool = False) -> tuple[int, int, str]:
    """How many of the runs that a config asks for have ended; the folder may contain others.

    Args:
        config: The settings of the sweep.
        tuned: Whether to count only runs with a tuned warmup.
    """
    folder, asked = pathlib.Path(config.output_dir), _cell_names(config, tuned)
    ended = {trial.name.partition(AGAIN)[0] for trial in finished_trials(folder)}
    if (folder / RESULTS).exists():
        from trainers.results.results_csv import read_table  # pandas would slow every --help

        ended |= {result.name for result in read_table(folder / RESULTS)}
    return len(asked & ended), len(asked), "runs"


@functools.lru_cache
def _cell_names(config: Any, tuned: bool) -> frozenset[str]:
    return frozenset(cell.name for cell in grid(config) if not tuned or cell.warmup in TUNED_WARMUPS)


def updates_done(config: Any) -> tuple[int, int, str] | None:
    """The updates of a training run so far, from its last complete record; None if it writes none."""
    try:
        lines = (pathlib.Path(config.output_dir) / RECORDS).read_text().split("\n")
        return json.loads(lines[-2])["updates"], config.steps, "updates"
    except (OSError, ValueError, IndexError):
        return None


MULTI30K = {
    "source": "multi30k/train.en.gz",
    "target": "multi30k/train.de.gz",
    "validation_source": "multi30k/val.en.gz",
    "validation_target": "multi30k/val.de.gz",
}


class Plans(NamedTuple):
    """Steps in the order in which they run. A step in both plans has one folder, to which the full plan adds runs."""

    quick: tuple[Step, ...]
    full: tuple[Step, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.name for step in (*self.quick, *self.full)))

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.place for step in (*self.quick, *self.full)))


COMPUTED = (
    Step("warmups", "warmup factors and their effective periods", "effective_warmup", WarmupConfig, 2),
    Step(
        "simulation",
        "Adam's updates at a simulated minimum",
        "simulate",
        SimulationConfig,
        7,
        ("--iterations=10000",),
    ),
    Step(
        "gradients",
        "gradients and updates of a training run",
        "gradient_analysis",
        AnalysisConfig,
        12,
        (f"--flagfile={CONFIGS}/embedded/gradient_analysis.flags", "--noprogress"),
    ),
)
QUICK = (
    *COMPUTED,
    sweep_step("digits", "rates and beta_2 on digits", IMAGES, 233, "digits"),
    sweep_step("resnet", "a residual network", IMAGES, 53, "resnet"),
    sweep_step("language", "a Transformer language model", LANGUAGE, 127, "language"),
    sweep_step("translation", "a Transformer translator", TRANSLATION, 287, "translation"),
    sweep_step("first_steps", "RAdam with other first steps", IMAGES, 33, "first_steps"),
)
# The steps that decide most per minute come first.
FULL = (
    *COMPUTED,
    sweep_step("first_steps", "RAdam with other first steps", IMAGES, 345, "full/first_steps"),
    sweep_step("language", "a Transformer language model", LANGUAGE, 255, "full/language"),
    sweep_step("digits", "rates and beta_2 on digits", IMAGES, 775, "full/digits"),
    Step(
        "gradients_emnist",
        "gradients and updates of a training run on EMNIST",
        "gradient_analysis",
        AnalysisConfig,
        170,
        (f"--flagfile={CONFIGS}/measured/emnist_analysis.flags", "--measure_every=0", "--noprogress"),
        data={"data_dir": "emnist"},
    ),
    sweep_step("translation", "a Transformer translator", TRANSLATION, 960, "full/translation"),
    sweep_step(
        "translation_first_steps", "the translator's first steps", TRANSLATION, 600, "full/translation_first_steps"
    ),
    sweep_step("mnist", "beta_2 on MNIST", IMAGES, 800, "full/mnist", data_dir="mnist"),
    sweep_step("emnist", "beta_2 on EMNIST", IMAGES, 960, "full/emnist", data_dir="emnist"),
    sweep_step("resnet", "a residual network", IMAGES, 760, "full/resnet"),
    sweep_step("digits_tuned", "tuned warmup on digits", IMAGES, 970, "full/digits_tuned", "digits"),
    sweep_step("language_tuned", "tuned warmup, language model", LANGUAGE, 320, "full/language_tuned", "language"),
    sweep_step(
        "translation_tuned", "tuned warmup, translator", TRANSLATION, 1200, "full/translation_tuned", "translation"
    ),
    sweep_step("wikitext2", "a language model of WikiText-2", LANGUAGE, 3500, "full/wikitext2", data_dir="wikitext-2"),
    sweep_step("multi30k", "a translator of Multi30k", TRANSLATION, 6300, "full/multi30k", **MULTI30K),
    sweep_step("imagenette", "photographs", IMAGES, 1600, "full/imagenette", data_dir="imagenette"),
)
PLANS = Plans(QUICK, FULL)
