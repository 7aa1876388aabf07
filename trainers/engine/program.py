"""The main function of all programs: flags in, exit code out. TensorFlow is imported when the work begins."""

import atexit
import errno
import functools
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from absl import app, flags, logging

from trainers.engine.cluster import worker_of
from trainers.engine.command_line import define_flags, help_text, parse_flags, read_flags
from trainers.engine.config import Config
from trainers.engine.flags import Flags, Settings
from trainers.system import signals
from trainers.system.access import check_folder
from trainers.system.errors import ConfigError, DataError, DivergedError, IncompleteError
from trainers.system.streams import output_was_lost, protect_streams, quiet

if TYPE_CHECKING:
    from trainers.engine.callbacks import RunCallback
    from trainers.engine.task import Task


BAD_INPUT, DIVERGED, INCOMPLETE, OUTPUT_LOST = 2, 3, 4, 5
HELP = ("--help", "-help", "--helpfull", "--helpshort", "-h", "-?")


def run_program(config_class: type[Flags], work: Callable[[Any], str]) -> None:
    """Parses the flags of a config, calls `work`, prints what it returns, and exits.

    Exit codes: 0 done, 2 bad input or a machine without the memory or the disk space for it, 3 diverged, 4 incomplete
    (a sweep that lacks runs), 5 done but not all output could be printed, 130 stopped by Ctrl-C, 143 by SIGTERM.
    """
    protect_streams()
    if any(argument in HELP for argument in sys.argv[1:]):
        print(help_text(config_class, sys.modules["__main__"].__doc__ or ""), flush=True)
        return
    signals.listen()
    define_flags(config_class)
    app.run(lambda arguments: _leave(_exit_code(config_class, work, arguments[1:])), flags_parser=_parse)


def imported_late(module: str, name: str) -> Callable[[Any], str]:
    """Returns a function that imports its module when called: `--help` and bad flags do not wait for TensorFlow."""

    def call(config: Any) -> str:
        with quiet():
            function = getattr(importlib.import_module(module), name)
        result: str = function(config)
        return result

    return call


def run_task(task: "Task", callbacks: "Sequence[RunCallback]" = ()) -> None:
    """Runs the program that trains a task.

    Args:
        task: Task to train.
        callbacks: Called at the run's start, its records and its end, see `trainers.engine.callbacks.RunCallback`.
    """
    run_program(task.config_class, functools.partial(train_task, task, callbacks=callbacks))


def train_task(task: "Task", config: Config, callbacks: "Sequence[RunCallback]" = ()) -> str:
    """Prints a description of the run, trains, and returns the results and where they are."""
    with quiet():
        from trainers.engine.description import closing, listed
        from trainers.engine.evaluation import evaluate
        from trainers.engine.run import train
    if config.dry_run:
        from trainers.engine.dry_run import describe_run

        return describe_run(task, config, say=functools.partial(print, flush=True))
    if config.evaluate_only:
        return listed(evaluate(task, config), task.fractions)
    results = train(task, config, say=functools.partial(print, flush=True), callbacks=callbacks)
    return closing(task, config, results)


def _parse(arguments: list[str]) -> list[str]:
    try:
        parsed = [arguments[0], *parse_flags(flags.FLAGS, arguments)]
    except ConfigError as error:
        sys.exit(complain(error))
    # A custom task has imported TensorFlow, which makes absl look for GPUs next, with messages: look quietly first.
    if tensorflow := sys.modules.get("tensorflow"):
        with quiet():
            tensorflow.config.list_physical_devices("GPU")
    return parsed


def _exit_code(config_class: type[Flags], work: Callable[[Any], str], beside: Sequence[str]) -> int:
    logging.set_verbosity(logging.WARNING)  # TensorFlow logs every reduction that it plans
    try:
        config = read_flags(config_class, beside)
        _check_surroundings(config)
        print(work(config), flush=True)
    except (ConfigError, DataError) as error:
        return complain(error)
    except DivergedError as error:
        print(f"diverged: {error}", file=sys.stderr)
        return DIVERGED
    except IncompleteError as error:
        print(error.said)
        print(f"incomplete: {error}. {error.advice}", file=sys.stderr)
        return INCOMPLETE
    except signals.StopRequested as stop:
        print(f"stopped by {stop}: run the same command again to resume", file=sys.stderr)
        return stop.exit_code
    except Exception as error:
        lacking = shortage(error)
        if not lacking:
            raise
        return complain(lacking)
    return OUTPUT_LOST if output_was_lost() else 0


def _check_surroundings(config: Flags) -> None:
    """Checks the backend, the folder and the cluster before TensorFlow is imported."""
    if not isinstance(config, Settings):
        return
    if config.trains and os.environ["KERAS_BACKEND"] != "tensorflow":
        raise ConfigError(f"The trainers need KERAS_BACKEND=tensorflow. Received: {os.environ['KERAS_BACKEND']}")
    check_folder(config.output_dir)
    if isinstance(config, Config):
        worker_of(config)


def _leave(code: int) -> NoReturn:
    """Ends the process without unloading TensorFlow and all other modules, which would take a second or two."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def complain(problem: Exception | str) -> int:
    print("error: " + str(problem).replace("\n", " "), file=sys.stderr, flush=True)
    return BAD_INPUT


# Other system errors are bugs of these programs.
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM)
DISK_RULE = "The disk must have space left; free some and run the same command again to resume"
# TensorFlow and HDF5 report a full disk only in the text of an error.
DISK_WORDS = ("No space left on device", "Disk quota exceeded")


def shortage(error: BaseException) -> str:
    """The message for an error that is due to the machine; empty for any other."""
    first = str(error).strip().partition("\n")[0]
    if isinstance(error, OSError) and error.errno in DISK:
        place = f" ({error.filename})" if error.filename else ""
        return f"{DISK_RULE}. Received: {error.strerror}{place}"
    if any(words in str(error) for words in DISK_WORDS):
        return f"{DISK_RULE}. Received: {first}"
    if isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError":
        return (
            "The run must fit into memory: try a smaller model, a smaller batch or a larger --accumulate. "
            f"Received: {first or 'out of memory'}"
        )
    return ""
