"""Further axes of a sweep: any flag of its task, as `--sweep=weight_decay=0,1e-4`. Needs no TensorFlow."""

import dataclasses
import functools
import itertools
import math
import types
import typing
from collections.abc import Iterable
from typing import Any, ClassVar

from trainers.engine.config import SEED_AT_MOST, Config
from trainers.engine.flags import Settings, make_config, option
from trainers.results.methods import (
    FIELDS,
    FIRST_STEPS_OF,
    METHODS,
    RIVALS,
    TUNED_FLAGS,
    TUNED_WARMUPS,
    UNTUNED,
    Point,
    method_flags,
)
from trainers.system.errors import ConfigError, require
from trainers.tasks import CONFIGS

AXIS_RULE = "--sweep must be a flag of the task and its values, as --sweep=weight_decay=0,1e-4"
OWN_AXES = {**{name: f"--{name}s" for name in (*FIELDS, *TUNED_FLAGS)}, "first_steps": "--warmups=radam_nothing"}
TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

Axes = dict[str, tuple[Any, ...]]


def parse_axes(texts: Iterable[str], config_class: type[Config]) -> Axes:
    """The axes by name, in the order given, with values of the types in the task's config.

    >>> from trainers.engine.config import ExamplesConfig
    >>> parse_axes(["weight_decay=0,1e-4", "batch_size=64"], ExamplesConfig)
    {'weight_decay': (0.0, 0.0001), 'batch_size': (64,)}
    """
    axes: Axes = {}
    for text in texts:
        name, equals, listed = text.partition("=")
        require(equals and listed, AXIS_RULE, text)
        require(name not in axes, "--sweep must name a flag once", text)
        axes[name] = _axis_values(name, listed.split(","), config_class)
        require(len(set(axes[name])) == len(axes[name]), "--sweep must have no value twice", text)
    return axes


def _axis_values(name: str, texts: list[str], config_class: type[Config]) -> tuple[Any, ...]:
    require(name not in OWN_AXES, f"--sweep must be another flag; use {OWN_AXES.get(name)} for this one", name)
    require(name in config_class.__dataclass_fields__, AXIS_RULE, name)
    field = config_class.__dataclass_fields__[name]
    require(field.metadata["identity"] is not False, "--sweep must be a flag that changes the result of a run", name)
    kind = _value_type(typing.get_type_hints(config_class)[name])
    require(kind is not None, "--sweep must be a flag with one value", name)
    try:
        return tuple(TRUTHS[text.lower()] if kind is bool else kind(text) for text in texts)
    except (KeyError, ValueError) as error:
        raise ConfigError(f"--sweep={name} must have values as --{name} takes them. Received: {texts}") from error


def _value_type(hint: Any) -> Any:
    """The type of a flag's value, None for one that holds several."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(each for each in typing.get_args(hint) if each is not type(None))
    return hint if hint in (bool, int, float, str) else None


DEFAULT_TASK = "image_classification"
WORKERS_AT_MOST = 1024
SEARCHES = ("grid", "random", "bayesian", "hyperband")
TUNED_LISTS = tuple(f"{name}s" for name in TUNED_FLAGS)
LISTS = ("learning_rates", "beta_2s", "warmups", *TUNED_LISTS, "seeds")
Tuned = tuple[tuple[str, float], ...]  # the flag of a tuned warmup with its value; empty for any other warmup
GROWING = (*LISTS, "sweep", "search", "trials")  # flags that select the runs and do not change any of them


@dataclasses.dataclass(frozen=True)
class SweepSettings(Settings):
    """The flags of a sweep; a command combines them with those of the task.

    Flags that only select the runs are not part of the identity: runs can be added to a folder at any time.
    """

    subject = "Sweep"
    fixed_length: ClassVar[str] = "a sweep compares runs of one length"
    run_class: ClassVar[type[Config]] = Config  # of the task

    task: str = option(DEFAULT_TASK, "Task to train.", tuple(CONFIGS))
    learning_rates: tuple[float, ...] = option(
        (1e-4, 1e-3, 1e-2), "Values of --learning_rate.", above=0, identity=False
    )
    beta_2s: tuple[float, ...] = option((0.99, 0.997, 0.999), "Values of --beta_2.", above=0, below=1, identity=False)
    warmups: tuple[str, ...] = option(
        METHODS,
        "Values of --warmup, and of --first_steps as radam_nothing and so on; gi_adam is --gradient_init, stable_adam "
        "is --clip_update_rms, both without a warmup.",
        (*UNTUNED, *FIRST_STEPS_OF, *RIVALS, *TUNED_WARMUPS),
        identity=False,
    )
    warmup_periods: tuple[float, ...] = option(
        (), "Values of --warmup_period for linear and exponential among --warmups.", above=0, identity=False
    )
    seeds: tuple[int, ...] = option(
        (1, 2, 3), "Values of --seed; 1-10 is a range.", low=0, high=SEED_AT_MOST, identity=False
    )
    warmup_shares: tuple[float, ...] = option(
        (), "Values of --warmup_share for linear and exponential among --warmups.", above=0, high=1, identity=False
    )
    sweep: tuple[str, ...] = option(
        (), "A flag of the task and its values, as weight_decay=0,1e-4; may be repeated.", identity=False, repeated=True
    )
    search: str = option(
        "grid",
        "grid runs all combinations; the others search for the best cell, by the mean over --seeds, between the "
        "smallest and the largest rate, 1 - beta_2 and period or share.",
        SEARCHES,
        identity=False,
    )
    trials: int = option(20, "Cells that a random or bayesian search tries.", low=1, identity=False)
    workers: int = option(
        1,
        "Trials at once: 1 runs them in this process, more in processes that Ray starts on this machine.",
        low=1,
        high=WORKERS_AT_MOST,
        identity=False,
    )
    ray_address: str | None = option(
        None,
        "Ray cluster to run trials on: host:port, or auto for the one of this machine; by default, RAY_ADDRESS. As "
        "many trials run at once as it has room for, with --workers above 1 at most that many.",
        identity=False,
    )
    cpus_per_trial: float = option(1.0, "CPUs that Ray reserves for a trial.", above=0, identity=False)
    gpus_per_trial: float | None = option(
        None,
        "GPUs that Ray gives a trial; a fraction shares one. By default 1 on a cluster with GPUs, and on this machine "
        "an equal share for each of --workers.",
        identity=False,
    )
    worker_timeout: float = option(
        300.0,
        "Seconds without a response after which a worker loses its trial to another.",
        above=0,
        high=math.inf,
        identity=False,
    )
    threads: int = option(
        1, "Threads of each trial; 0: one per core, and then the last bits depend on the machine.", low=0, identity=True
    )
    save_models: bool = option(False, "Save best.keras and last.keras of every trial.", identity=False)

    def validate(self) -> None:
        super().validate()
        gpus = self.gpus_per_trial
        rule = "--gpus_per_trial must be a number in [0, 1] or a whole number"
        require(gpus is None or (gpus >= 0 and (gpus < 1 or gpus.is_integer())), rule, gpus)
        for name in LISTS:
            values = getattr(self, name)
            require(values or name in TUNED_LISTS, f"--{name} must have at least one value", values)
            require(len(set(values)) == len(values), f"--{name} must have no value twice", values)
        self._validate_tuned()
        if self.search not in ("random", "bayesian"):
            self.require_default("trials", "--search=random and bayesian", self.search)
        rule = "--evaluate_only is for a single run, not for a sweep"
        require(not getattr(self, "evaluate_only", False), rule, True)
        self.axes  # noqa: B018 - checked here

    def _validate_tuned(self) -> None:
        tuned = [name for name in self.warmups if name in TUNED_WARMUPS]
        rule = f"--warmups={','.join(tuned)} needs --warmup_periods or --warmup_shares"
        require(self.tuned_lists or not tuned, rule, ())
        for name, values in self.tuned_lists.items():
            require(tuned, f"--{name}s is for linear and exponential among --warmups", values)
        rule = "--warmup_periods and --warmup_shares exclude each other in a search"
        require(self.search == "grid" or len(self.tuned_lists) < 2, rule, self.tuned_lists)

    def identity(self) -> dict[str, Any]:
        """What the results of all runs depend on, without the single values that the lists replace."""
        return {name: value for name, value in super().identity().items() if name not in (*FIELDS, *TUNED_FLAGS)}

    @functools.cached_property
    def axes(self) -> Axes:
        """The further axes of `--sweep`."""
        return parse_axes(self.sweep, self.run_class)

    @property
    def tuned_lists(self) -> dict[str, list[float]]:
        """The values that tuned warmups are tried with, by the name of their flag."""
        lists = {name: list(getattr(self, f"{name}s")) for name in TUNED_FLAGS}
        return {name: values for name, values in lists.items() if values}

    @property
    def methods(self) -> list[tuple[str, Tuned]]:
        """The warmups; a tuned one appears once for each of its periods and shares."""
        tuned = [((name, value),) for name, values in self.tuned_lists.items() for value in values]
        return [(warmup, one) for warmup in self.warmups for one in (tuned if warmup in TUNED_WARMUPS else ((),))]


def sweep_config_class(task: str) -> type[Any]:
    """The config class of a sweep of a task, with the fields of the sweep and of the task."""
    config_class = CONFIGS[task]
    name = f"{config_class.__name__.removesuffix('Config')}SweepConfig"
    fields = [("task", str, option(task, "Task to train.", tuple(CONFIGS)))]
    namespace = {"run_class": config_class}
    return dataclasses.make_dataclass(
        name, fields, bases=(SweepSettings, config_class), frozen=True, namespace=namespace
    )


def grid(settings: Any) -> list[Point]:
    """All cells. Seeds change slowest, so that a sweep that is stopped has complete tables with fewer seeds.

    The further axes come next, because they may need another model or other data.
    """
    axes = settings.axes
    return [
        make_cell(settings, rate, beta_2, warmup, seed, tuned, dict(zip(axes, others, strict=True)))
        for seed, others, rate, beta_2, (warmup, tuned) in itertools.product(
            settings.seeds,
            list(itertools.product(*axes.values())),
            settings.learning_rates,
            settings.beta_2s,
            settings.methods,
        )
    ]


def make_cell(
    settings: Any, rate: float, beta_2: float, warmup: str, seed: int, tuned: Tuned, others: dict[str, Any]
) -> Point:
    base = tuple(name for name, value in others.items() if value == getattr(settings, name))
    return Point(rate, beta_2, warmup, seed, (*tuned, *others.items()), base)


def trial_config(settings: Any, values: dict[str, Any], folder: str) -> Config:
    """The config of the run with these hyperparameters."""
    config_class: type[Config] = settings.run_class
    fields = {field.name for field in dataclasses.fields(config_class)}
    base = {name: getattr(settings, name) for name in fields.difference(TUNED_FLAGS)}
    run = {**base, **values, **method_flags(values["warmup"]), "output_dir": folder, "progress": False}
    return make_config(config_class, run)


def base_values(settings: Any) -> dict[str, Any]:
    """The values of the further axes for runs that were made before these were added."""
    return {name: getattr(settings, name) for name in settings.axes}


def table_grid(settings: Any) -> dict[str, list[Any]]:
    """The values of every axis, in the order of the tables."""
    lists = {name: list(getattr(settings, f"{name}s")) for name in FIELDS}
    return {**lists, **settings.tuned_lists, **{name: list(values) for name, values in settings.axes.items()}}
