"""The main function of all programs: flags in, exit code out. TensorFlow is imported when the work begins."""

import atexit
import dataclasses
import faulthandler
import functools
import importlib
import os
import re
import shutil
import sys
import textwrap
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from absl import flags, logging

from trainers.engine.config import Config
from trainers.engine.flags import Flags, FlagsT, Settings, make_config, read_config
from trainers.engine.workers import worker_of
from trainers.system import signals
from trainers.system.access import check_folder
from trainers.system.errors import ConfigError, DataError, DivergedError, IncompleteError, require, shortage
from trainers.system.files import UnreadableError, read_text
from trainers.system.streams import output_was_lost, protect_streams, quiet

if TYPE_CHECKING:
    from trainers.engine.task import RunCallback, Task

BAD_INPUT, DIVERGED, INCOMPLETE, OUTPUT_LOST = 2, 3, 4, 5
HELP = ("--help", "-help", "--helpfull", "--helpshort", "-h", "-?")


def run_program(config_class: type[Flags], work: Callable[[Any], str]) -> None:
    """Parses the flags of a config, calls `work`, prints what it returns, and exits.

    Exit codes: 0 done, 2 bad input or a machine without the memory or the disk space for it, 3 diverged, 4 incomplete
    (a sweep that lacks runs), 5 done but not all output could be printed, 130 stopped by Ctrl-C, 143 by SIGTERM.
    """
    if not config_class.trains:
        os.environ["KERAS_BACKEND"] = "numpy"  # Keras without TensorFlow starts in half the time
    protect_streams()
    if any(argument in HELP for argument in sys.argv[1:]):
        print(help_text(config_class, sys.modules["__main__"].__doc__ or ""), flush=True)
        return
    signals.listen()
    faulthandler.enable()
    flags.FLAGS.mark_as_parsed()  # logging must not wait for flags of absl's own
    logging.use_absl_handler()
    logging.set_verbosity(logging.WARNING)  # TensorFlow logs every reduction that it plans
    _leave(_exit_code(config_class, work))


def imported_late(module: str, name: str) -> Callable[[Any], str]:
    """Returns a function that imports its module when called: `--help` and bad flags do not wait for TensorFlow."""

    def call(config: Any) -> str:
        with quiet():
            function = getattr(importlib.import_module(module), name)
        return str(function(config))

    return call


def run_task(task: "Task", callbacks: "Sequence[RunCallback]" = ()) -> None:
    """Runs the program that trains a task.

    Args:
        task: Task to train.
        callbacks: Called at the run's start, its records and its end, see `trainers.engine.task.RunCallback`.
    """
    run_program(task.config_class, functools.partial(train_task, task, callbacks=callbacks))


def train_task(task: "Task", config: Config, callbacks: "Sequence[RunCallback]" = ()) -> str:
    """Prints a description of the run, trains, and returns the results and where they are."""
    with quiet():
        from trainers.engine.description import closing, describe_run, listed
        from trainers.engine.measurement import evaluate
        from trainers.engine.run import train
    if config.dry_run:
        return describe_run(task, config, say=functools.partial(print, flush=True))
    if config.evaluate_only:
        return listed(evaluate(task, config), task.fractions)
    results = train(task, config, say=functools.partial(print, flush=True), callbacks=callbacks)
    return closing(task, config, results)


def _exit_code(config_class: type[Flags], work: Callable[[Any], str]) -> int:
    try:
        config = parse_arguments(config_class, sys.argv[1:])
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
    """Checks the working directory, the backend, the folder and the cluster before TensorFlow is imported."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise ConfigError(
            "The working directory must exist: change to one that does. Received: a deleted one"
        ) from error
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


def parse_arguments(config_class: type[FlagsT], arguments: Sequence[str]) -> FlagsT:
    """The checked config that a command line describes, without the name of the program."""
    flag_values = _defined_flags(config_class)
    beside = parse_flags(flag_values, arguments)
    fields = dataclasses.fields(config_class)
    positional = [field.name for field in fields if field.metadata["positional"]]
    require(positional or not beside, "Arguments must be flags, --name=value", " ".join(beside))
    present = {name: flag_values[name].value for name in flag_values if flag_values[name].present}
    values = _repeated(config_class, present.pop("config", None)) | present
    return make_config(config_class, values | dict.fromkeys(positional, tuple(beside)))


def _defined_flags(config_class: type[Flags]) -> Any:
    """A flag for every field, with its value as text. It is converted and checked with the config, not by absl."""
    flag_values: Any = flags.FlagValues()  # type: ignore[no-untyped-call]
    types = typing.get_type_hints(config_class)
    for field in dataclasses.fields(config_class):
        if field.metadata["positional"]:
            continue
        if types[field.name] is bool:
            flags.DEFINE_bool(field.name, None, "", flag_values)
        elif field.metadata["repeated"]:
            flags.DEFINE_multi_string(field.name, None, "", flag_values)
        elif typing.get_origin(types[field.name]) is tuple:
            flags.DEFINE_list(field.name, None, "", flag_values)
        else:
            flags.DEFINE_string(field.name, None, "", flag_values)
    if issubclass(config_class, Settings):
        flags.DEFINE_string("config", None, "", flag_values)
    return flag_values


def parse_flags(flag_values: Any, arguments: Sequence[str], known_only: bool = False) -> list[str]:
    """Sets flags from a command line, and returns the arguments that are not flags."""
    try:
        parsed: list[str] = flag_values(["", *with_flagfiles(arguments)], known_only=known_only)
        return parsed[1:]
    except flags.UnrecognizedFlagError as error:
        hint = re.search(r"Did you mean: ([^?]*\S) *\?", str(error))
        meant = f"; did you mean --{hint[1]}?" if hint else ""
        raise ConfigError(f"Flags must be among those of --help. Received: --{error.flagname}{meant}") from error
    except flags.IllegalFlagValueError as error:  # only of a bool: all other values are text
        name, value = str(error).removeprefix("flag --").removesuffix(f": {error.__context__}").split("=", 1)
        raise ConfigError(f"--{name} must be true or false. Received: {value!r}") from error
    except flags.Error as error:
        raise ConfigError(str(error)) from error


def _repeated(config_class: type[Flags], path: str | None) -> dict[str, Any]:
    """The values of the run that `--config` repeats, if it is given."""
    if path is None:
        return {}
    names = {field.name for field in dataclasses.fields(config_class)}
    stored = read_config(path)
    known = {name: value for name, value in stored.items() if name in names}
    rule = "--config must be the config.json of a run of this program"
    require(known or not stored, rule, f"{path} with {', '.join(stored)}")
    return known


FLAGFILE_NAMES = ("--flagfile", "-flagfile")
COMMENTS = ("#", "//")


def with_flagfiles(arguments: Sequence[str], inside: tuple[str, ...] = ()) -> Iterator[str]:
    """The arguments, with the lines of a file in the place of its `--flagfile`.

    Args:
        arguments: A command line, or the lines of a file of flags.
        inside: The files of flags that contain these arguments.
    """
    left = iter(arguments)
    for argument in left:
        name, equals, place = argument.partition("=")
        if name in FLAGFILE_NAMES:
            yield from with_flagfiles(*_lines(place if equals else next(left, ""), inside))
        else:
            yield argument


def _lines(name: str, inside: tuple[str, ...]) -> tuple[list[str], tuple[str, ...]]:
    """The flags in a file, and the files that contain them; a `ConfigError` if it is unreadable or contains itself."""
    path = os.path.realpath(os.path.expanduser(name.strip()))
    if path in inside:
        raise ConfigError(f"--flagfile must not contain itself. Received: {name}, which is in {inside[-1]}")
    try:
        lines = [line.strip() for line in read_text(path).splitlines()]
    except UnreadableError as error:
        raise ConfigError(f"--flagfile must be a text file of flags. Received: {name!r} ({error})") from error
    return [line for line in lines if line and not line.startswith(COMMENTS)], (*inside, path)


WIDTH_AT_MOST, INDENT = 110, 8
SOURCES = {
    "flagfile": "File of flags, one per line; flags on the command line take precedence.",
    "config": "config.json of another run to repeat; flags on the command line take precedence.",
}


def help_text(config_class: type[Flags], description: str) -> str:
    """The description, then every flag with its default, its choices and its help."""
    lines = [textwrap.dedent(description).strip()]
    for subject, fields in by_subject(config_class).items():
        lines += ["", f"{subject}:", *(_flag_entry(field) for field in fields)]
    lines += ["", "Sources of flags:"]
    for name, text in SOURCES.items():
        if name != "config" or issubclass(config_class, Settings):
            lines.append(_help_entry(f"--{name}", text))
    return "\n".join(lines)


def by_subject(config_class: type[Flags]) -> dict[str, list[Any]]:
    """The fields of a config under the subjects of the classes that first declare them, the task's own first."""
    grouped: dict[str, list[Any]] = {}
    owners = [cls for cls in config_class.__mro__ if issubclass(cls, Flags)]
    first = {name: owner for owner in owners for name in owner.__annotations__}
    for owner in owners:
        for field in dataclasses.fields(config_class):
            if first[field.name] is owner:
                grouped.setdefault(owner.subject, []).append(field)
    return grouped


def _flag_entry(field: Any) -> str:
    if field.metadata["positional"]:
        return _help_entry(field.name, field.metadata["help"])
    choices = field.metadata["choices"]
    text = field.metadata["help"] + (f" One of: {', '.join(choices)}." if choices else "")
    return _help_entry(f"--{_with_default(field.name, field.default)}", text)


def _with_default(name: str, default: Any) -> str:
    """A flag as one would write it to get its default.

    >>> _with_default("xla", False), _with_default("seeds", (1, 2)), _with_default("steps", None)
    ('[no]xla (default: no)', 'seeds=1,2', 'steps')
    """
    if isinstance(default, bool):
        return f"[no]{name} (default: {'yes' if default else 'no'})"
    if isinstance(default, tuple):
        default = ",".join(map(str, default))
    return name if default in (None, "") else f"{name}={default}"


def _help_entry(flag: str, text: str) -> str:
    width = min(shutil.get_terminal_size().columns, WIDTH_AT_MOST)
    indent = " " * INDENT
    return f"    {flag}\n" + textwrap.fill(text, max(width, 40), initial_indent=indent, subsequent_indent=indent)
