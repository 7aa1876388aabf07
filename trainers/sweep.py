"""Sweeps learning rate, beta_2, warmup and seed of a task, and prints the paper's table.

python -m trainers.sweep --flagfile=configs/embedded/sweep_digits.flags --output_dir=runs/sweep
"""

import sys
from typing import Any

from absl import flags

from trainers.engine.flags import ConfigError, parse_flags
from trainers.engine.program import complain, imported_late, run_program
from trainers.sweeps.space import DEFAULT_TASK, sweep_config_class
from trainers.tasks import CONFIGS


def named_task(arguments: list[str]) -> str:
    """The value of `--task`, which decides which other flags exist."""
    first: Any = flags.FlagValues()  # type: ignore[no-untyped-call]
    flags.DEFINE_enum("task", DEFAULT_TASK, list(CONFIGS), "Task to train.", flag_values=first)
    parse_flags(first, arguments, known_only=True)
    return str(first.task)


if __name__ == "__main__":
    try:
        task = named_task(sys.argv)
    except ConfigError as error:
        sys.exit(complain(error))
    run_program(sweep_config_class(task), imported_late("trainers.sweeps.sweep", "sweep"))
