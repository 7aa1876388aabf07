"""Sweeps learning rate, beta_2, warmup, seed and any other flag of a task, and prints the paper's table.

python -m trainers.sweep --flagfile=configs/embedded/sweep_digits.flags --output_dir=runs/sweep

In Python, `run` does the same, and `read` reads the results of either.
"""

import pathlib
import sys
from typing import TYPE_CHECKING, Any

from absl import flags

from trainers.engine.flags import make_config
from trainers.engine.program import complain, parse_flags, run_program
from trainers.results.layout import RESULTS
from trainers.sweeps.space import DEFAULT_TASK, sweep_config_class
from trainers.system.errors import ConfigError, require
from trainers.system.streams import quiet
from trainers.tasks import CONFIGS, register

if TYPE_CHECKING:
    import pandas

    from trainers.engine.task import Task


def sweep(settings: Any) -> str:
    """Runs what is not done yet, writes results.csv, summary.csv and summary.md, and returns the table.

    Raises:
        ConfigError, DataError: before anything is written.
        IncompleteError: Runs have failed, or have no result. The tables hold what there is.
    """
    with quiet():
        from trainers.evidence.summary import Tables
        from trainers.sweeps.sweep import run_sweep
    return run_sweep(settings, Tables)


def run(task: "Task | str", output_dir: str | pathlib.Path, **options: Any) -> "pandas.DataFrame":
    """Runs a sweep, or what is missing of it, and returns its table with a row for each run, as in results.csv.

    Args:
        task: The task to train: its name, or a `Task` object of your own.
        output_dir: The folder of the sweep.
        **options: Any flags of the sweep and of the task, without dashes. Lists may be any sequence, such as a range or
            an array, and `sweep` may be a dict of further axes, as in `sweep={"weight_decay": [0, 1e-4]}`.

    Raises:
        ConfigError, DataError: before anything is written.
        IncompleteError: Runs have failed, or have no result; `read` returns the others.
    """
    if not isinstance(task, str):
        register(task)
    name = task if isinstance(task, str) else task.name
    config_class = sweep_config_class(name)
    for flag in options:
        known = flag in config_class.__dataclass_fields__
        require(known, "Flags must be those of the sweep and of its task", flag)
    axes = options.get("sweep")
    if isinstance(axes, dict):
        commas = [value for values in axes.values() for value in values if "," in str(value)]
        require(not commas, "Values of `sweep` must have no comma", commas)
        options["sweep"] = [f"{axis}={','.join(map(str, values))}" for axis, values in axes.items()]
    values = {flag: list(value) if _is_sequence(value) else value for flag, value in options.items()}
    sweep(make_config(config_class, {"task": name, "output_dir": str(output_dir), **values}))
    return read(output_dir)


def read(output_dir: str | pathlib.Path) -> "pandas.DataFrame":
    """The table of a sweep, finished or not, with every number to the last bit."""
    from trainers.results.results_csv import read_frame  # pandas would slow every --help

    return read_frame(pathlib.Path(output_dir) / RESULTS)


def _is_sequence(value: Any) -> bool:
    return not isinstance(value, str | dict) and hasattr(value, "__iter__")


def named_task(arguments: list[str]) -> str:
    """The value of `--task`, which decides which other flags exist."""
    first: Any = flags.FlagValues()  # type: ignore[no-untyped-call]
    flags.DEFINE_string("task", DEFAULT_TASK, "", first)
    parse_flags(first, arguments, known_only=True)
    require(first.task in CONFIGS, f"--task must be one of {', '.join(CONFIGS)}", first.task)
    return str(first.task)


if __name__ == "__main__":
    try:
        task = named_task(sys.argv[1:])
    except ConfigError as error:
        sys.exit(complain(error))
    run_program(sweep_config_class(task), sweep)
