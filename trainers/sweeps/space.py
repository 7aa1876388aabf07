"""What a sweep runs: every learning rate with every beta_2, warmup and seed, or a search among them."""

import dataclasses
import itertools
import math
from typing import Any, ClassVar

from trainers.engine.config import Config, Settings, make_config, option, require
from trainers.engine.task import Task
from trainers.sweeps.cells import FIRST_STEPS_OF, METHODS, UNTUNED, Cell, method_flags
from trainers.tasks import TASKS

DEFAULT_TASK = "image_classification"
SEARCHES = ("grid", "random", "bayesian", "hyperband")


@dataclasses.dataclass(frozen=True)
class SweepSettings(Settings):
    """The flags of a sweep; those of the task that it sweeps stand beside them."""

    fixed_length: ClassVar[str] = "a sweep compares runs of one length"

    task: str = option(DEFAULT_TASK, "What to train.", tuple(TASKS))
    learning_rates: tuple[float, ...] = option((1e-4, 1e-3, 1e-2), "Values of --learning_rate.")
    beta_2s: tuple[float, ...] = option((0.99, 0.997, 0.999), "Values of --beta_2.")
    warmups: tuple[str, ...] = option(
        METHODS, "Values of --warmup, and of --first_steps as radam_nothing and so on.", (*UNTUNED, *FIRST_STEPS_OF)
    )
    seeds: tuple[int, ...] = option((1, 2, 3), "Values of --seed.")
    search: str = option("grid", "grid runs all of them; the others look for the best among them.", SEARCHES)
    trials: int = option(20, "Trials of a search other than grid.")
    workers: int = option(1, "Processes on this machine that run trials.", identity=False)
    save_models: bool = option(False, "Save best.keras and last.keras of every trial.", identity=False)
    retry_failed: bool = option(False, "Run trials again that ended with an error.", identity=False)

    def validate(self) -> None:
        super().validate()
        for name in ("trials", "workers"):
            require(getattr(self, name) >= 1, f"--{name} must be an integer >= 1", getattr(self, name))
        for name in ("learning_rates", "beta_2s", "warmups", "seeds"):
            values = getattr(self, name)
            require(values, f"--{name} must have at least one value", values)
            require(len(set(values)) == len(values), f"--{name} must have no value twice", values)
        require(all(0 < b < 1 for b in self.beta_2s), "--beta_2s must be in (0, 1)", self.beta_2s)
        rates = self.learning_rates
        require(all(0 < rate < math.inf for rate in rates), "--learning_rates must be numbers > 0", rates)


def sweep_config_class(task: Task) -> type[Any]:
    """The config of a sweep of a task: its own fields and those of the task."""
    name = f"{task.config_class.__name__.removesuffix('Config')}SweepConfig"
    fields = [("task", str, option(task.name, "What to train.", tuple(TASKS)))]
    bases = (SweepSettings, task.config_class)
    return dataclasses.make_dataclass(name, fields, bases=bases, frozen=True)


def grid(settings: SweepSettings) -> list[Cell]:
    """All cells. Seeds change slowest: a sweep that is stopped has whole tables of fewer seeds."""
    products = itertools.product(settings.seeds, settings.learning_rates, settings.beta_2s, settings.warmups)
    return [Cell(rate, beta_2, warmup, seed) for seed, rate, beta_2, warmup in products]


def trial_config(settings: Any, cell: Cell, folder: str, **others: Any) -> Config:
    """The config of the run that a cell stands for."""
    task = TASKS[settings.task]
    fields = {field.name for field in dataclasses.fields(task.config_class)}
    values = {name: getattr(settings, name) for name in fields}
    values |= {
        **dataclasses.asdict(cell),
        **method_flags(cell.warmup),
        "output_dir": folder,
        "progress": False,
        **others,
    }
    return make_config(task.config_class, values)
