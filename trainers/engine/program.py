"""A main in a few lines: flags in, exit code out."""

import sys

import keras
from absl import app, flags, logging

from trainers.engine.config import ConfigError, define_flags, read_flags
from trainers.engine.data import DataError
from trainers.engine.run import DivergedError, train
from trainers.engine.task import Task

BAD_INPUT, DIVERGED = 2, 3


def run_program(task: Task) -> None:
    """Defines the task's flags, parses them, trains, and exits: 0 done, 2 bad input, 3 diverged."""
    define_flags(task.config_class)
    for name in flags.FLAGS.flags_by_module_dict()[define_flags.__module__]:
        flags.FLAGS.register_key_flag_for_module(sys.argv[0], name)  # --help shows what the program itself defines
    app.run(lambda _: sys.exit(_train(task)), flags_parser=_parse)


def _parse(arguments: list[str]) -> list[str]:
    try:
        return flags.FLAGS(arguments)
    except flags.Error as error:
        sys.exit(complain(error))


def _train(task: Task) -> int:
    logging.set_verbosity(logging.WARNING)  # TensorFlow tells of every reduction it plans
    try:
        if keras.backend.backend() != "tensorflow":
            raise ConfigError(f"The trainers need KERAS_BACKEND=tensorflow. Received: {keras.backend.backend()}")
        config = read_flags(task.config_class)
        metrics = train(task, config)
    except (ConfigError, DataError) as error:
        return complain(error)
    except DivergedError as error:
        print(f"diverged: {error}", file=sys.stderr)
        return DIVERGED
    print(", ".join(f"{name} {value:.4g}" for name, value in metrics.items()))
    return 0


def complain(error: Exception) -> int:
    print("error: " + str(error).replace("\n", " "), file=sys.stderr)
    return BAD_INPUT
