"""A main in a few lines: flags in, exit code out."""

import atexit
import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import keras
from absl import app, flags, logging

from trainers.engine import signals
from trainers.engine.config import Config, ConfigError, Flags, Settings, define_flags, read_flags
from trainers.engine.errors import DataError, DivergedError

if TYPE_CHECKING:
    from trainers.engine.task import Task  # brings TensorFlow, which not every program needs

BAD_INPUT, DIVERGED = 2, 3


def run_program(config_class: type[Flags], work: Callable[[Any], str]) -> None:
    """Defines a config's flags, parses them, works, prints what the work returns, and exits.

    Exit codes: 0 done, 2 bad input, 3 diverged, 130 stopped by Ctrl-C, 143 by SIGTERM.
    """
    signals.listen()
    define_flags(config_class)
    for name in flags.FLAGS.flags_by_module_dict()[define_flags.__module__]:
        flags.FLAGS.register_key_flag_for_module(sys.argv[0], name)  # --help shows what the program itself defines
    app.run(lambda arguments: _leave(_exit_code(config_class, work, arguments[1:])), flags_parser=_parse)


def run_task(task: "Task") -> None:
    """The program that trains a task."""
    run_program(task.config_class, functools.partial(train_task, task))


def train_task(task: "Task", config: Config) -> str:
    """Prints what the run is, trains, and returns the results with where they are."""
    from trainers.engine.description import closing  # brings TensorFlow too
    from trainers.engine.run import train

    results = train(task, config, say=functools.partial(print, flush=True))
    return closing(task, config, results)


def _parse(arguments: list[str]) -> list[str]:
    try:
        return flags.FLAGS(arguments)
    except flags.Error as error:
        sys.exit(complain(error))


def _exit_code(config_class: type[Flags], work: Callable[[Any], str], beside: Sequence[str]) -> int:
    logging.set_verbosity(logging.WARNING)  # TensorFlow tells of every reduction it plans
    try:
        if issubclass(config_class, Settings) and keras.backend.backend() != "tensorflow":
            raise ConfigError(f"The trainers need KERAS_BACKEND=tensorflow. Received: {keras.backend.backend()}")
        print(work(read_flags(config_class, beside)))
    except (ConfigError, DataError) as error:
        return complain(error)
    except DivergedError as error:
        print(f"diverged: {error}", file=sys.stderr)
        return DIVERGED
    except signals.StopRequested as stop:
        print(f"stopped by {stop}: the same command goes on from here", file=sys.stderr)
        return stop.exit_code
    return 0


def _leave(code: int) -> NoReturn:
    """Ends the process, but does not first take TensorFlow and all other modules apart: that takes a second or two."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def complain(error: Exception) -> int:
    print("error: " + str(error).replace("\n", " "), file=sys.stderr)
    return BAD_INPUT
