"""Sweeps over learning rate, beta_2, warmup, seed and any other flag: runs, tables, comparisons.

`run` does in Python what `python -m trainers.sweep` does on a command line. `read` reads the results of either.
"""

import contextlib
import csv
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

    from trainers.engine.task import Task


def run(task: "Task | str", output_dir: str | pathlib.Path, **flags: Any) -> "pandas.DataFrame":
    """Runs a sweep, or what is missing of it, and returns its table with a row for each run, as in results.csv.

    Args:
        task: The task to train: its name, or a `Task` object of your own.
        output_dir: The folder of the sweep.
        **flags: Any flags of the sweep and of the task, without dashes. Lists may be any sequence, such as a range or
            an array, and `sweep` may be a dict of further axes, as in `sweep={"weight_decay": [0, 1e-4]}`.

    Raises:
        ConfigError, DataError: before anything is written.
        IncompleteError: Runs have failed, or have no result; `read` returns the others.
    """
    from trainers.engine.flags import make_config, require
    from trainers.sweeps.space import sweep_config_class
    from trainers.sweeps.sweep import sweep
    from trainers.tasks import register

    if not isinstance(task, str):
        register(task)
    name = task if isinstance(task, str) else task.name
    config_class = sweep_config_class(name)
    for flag in flags:
        known = flag in config_class.__dataclass_fields__
        require(known, "Flags must be those of the sweep and of its task", flag)
    axes = flags.get("sweep")
    if isinstance(axes, dict):
        commas = [value for values in axes.values() for value in values if "," in str(value)]
        require(not commas, "Values of `sweep` must have no comma", commas)
        flags["sweep"] = [f"{axis}={','.join(map(str, values))}" for axis, values in axes.items()]
    values = {flag: list(value) if _is_sequence(value) else value for flag, value in flags.items()}
    sweep(make_config(config_class, {"task": name, "output_dir": str(output_dir), **values}))
    return read(output_dir)


def read(output_dir: str | pathlib.Path) -> "pandas.DataFrame":
    """The table of a sweep, finished or not, with every number to the last bit."""
    import pandas

    with (pathlib.Path(output_dir) / "results.csv").open(newline="") as file:
        headings, *rows = csv.reader(file)
    columns = zip(*rows, strict=True) if rows else [()] * len(headings)
    return pandas.DataFrame({name: _column(texts) for name, texts in zip(headings, columns, strict=True)})


def _is_sequence(value: Any) -> bool:
    return not isinstance(value, str | dict) and hasattr(value, "__iter__")


def _column(texts: Sequence[str]) -> list[Any]:
    """A column as integers, as floats with NaN where one is missing, as booleans, or as strings.

    >>> _column(["1", "2"]), _column(["0.5", ""]), _column(["True", "False"]), _column(["none", ""])
    ([1, 2], [0.5, nan], [True, False], ['none', ''])
    """
    if texts and set(texts) <= {"True", "False"}:
        return [text == "True" for text in texts]
    for convert in (int, lambda text: float(text or "nan")):
        if any(texts):
            with contextlib.suppress(ValueError):
                return [convert(text) for text in texts]
    return list(texts)
