"""Command lines: the flags of a config class, their values, files of flags, and `--help`. Needs no TensorFlow."""

import dataclasses
import os
import re
import shutil
import textwrap
import typing
from collections.abc import Iterator, Sequence
from typing import Any

from absl import flags

from trainers.engine.flags import Flags, FlagsT, Settings, make_config, read_config
from trainers.system.errors import ConfigError, require
from trainers.system.files import UnreadableError, read_text

CONFIG_HELP = "config.json of another run to repeat; flags on the command line take precedence."


def parse_arguments(config_class: type[FlagsT], arguments: Sequence[str]) -> FlagsT:
    """Parses a command line into a config, without defining global flags."""
    values: Any = flags.FlagValues()  # type: ignore[no-untyped-call]
    define_flags(config_class, values)
    return read_flags(config_class, parse_flags(values, ["", *arguments]), values)


def parse_flags(flag_values: Any, arguments: Sequence[str], known_only: bool = False) -> list[str]:
    """Sets flags from a command line, and returns the arguments that are not flags."""
    try:
        parsed: list[str] = flag_values([arguments[0], *with_flagfiles(arguments[1:])], known_only=known_only)
        return parsed[1:]
    except flags.UnrecognizedFlagError as error:
        hint = re.search(r"Did you mean: ([^?]*\S) *\?", str(error))
        meant = f"; did you mean --{hint[1]}?" if hint else ""
        raise ConfigError(f"Flags must be among those of --help. Received: --{error.flagname}{meant}") from error
    except flags.IllegalFlagValueError as error:
        given = re.match(r"flag --(\w+)=(.*)", str(error).removesuffix(f": {error.__context__}"), re.DOTALL)
        if not given or given[1] not in flag_values:
            raise ConfigError(str(error)) from error
        raise ConfigError(f"--{given[1]} must be {_wanted(flag_values[given[1]])}. Received: {given[2]!r}") from error
    except flags.Error as error:
        raise ConfigError(str(error)) from error


def _wanted(flag: Any) -> str:
    if flag.parser.flag_type() == "bool":
        return "true or false"
    if flag.parser.flag_type() == "string enum":
        return f"one of {', '.join(flag.parser.enum_values)}"
    return str(flag.parser.syntactic_help)


def define_flags(config_class: type[Flags], flag_values: Any = flags.FLAGS) -> None:
    """Defines a flag for every field."""
    types = typing.get_type_hints(config_class)
    for field in _flag_fields(config_class):
        text, choices = field.metadata["help"], field.metadata["choices"]
        default: Any = field.default
        if choices:
            text = f"{text} One of: {', '.join(choices)}."
        kind = types[field.name]
        if kind is bool:
            flags.DEFINE_bool(field.name, default, text, flag_values)
        elif field.metadata["repeated"]:
            flags.DEFINE_multi_string(field.name, list(default), text, flag_values)
        elif typing.get_origin(kind) is tuple:
            flags.DEFINE_list(field.name, [str(value) for value in default], text, flag_values)
        elif int in (kind, *typing.get_args(kind)):
            flags.DEFINE(_number_parser(flags.IntegerParser, kind), field.name, default, text, flag_values)
        elif float in (kind, *typing.get_args(kind)):
            flags.DEFINE(_number_parser(flags.FloatParser, kind), field.name, default, text, flag_values)
        else:
            # Not an enum flag: the names are checked with everything else, before anything is written.
            flags.DEFINE_string(field.name, default, text, flag_values)
    if issubclass(config_class, Settings):
        flags.DEFINE_string("config", None, CONFIG_HELP, flag_values)


def _number_parser(parser_class: type[Any], kind: Any) -> Any:
    """For an optional number, `--name=` means `None`, which undoes the value of a flagfile."""

    class OrNothing(parser_class):
        def parse(self, argument: Any) -> Any:
            return None if argument == "" else super().parse(argument)

    return (OrNothing if type(None) in typing.get_args(kind) else parser_class)()


def read_flags(config_class: type[FlagsT], beside: Sequence[str], flag_values: Any = flags.FLAGS) -> FlagsT:
    """The checked config of parsed flags and the arguments `beside` them."""
    values = _repeated(config_class, flag_values)
    for field in _flag_fields(config_class):
        flag = flag_values[field.name]
        if flag.present or field.name not in values:
            values[field.name] = flag.value
    positional = [field.name for field in dataclasses.fields(config_class) if field.metadata["positional"]]
    require(positional or not beside, "Arguments must be flags, --name=value", " ".join(beside))
    return make_config(config_class, values | dict.fromkeys(positional, tuple(beside)))


def _flag_fields(config_class: type[Flags]) -> list[Any]:
    return [field for field in dataclasses.fields(config_class) if not field.metadata["positional"]]


def _repeated(config_class: type[Flags], flag_values: Any) -> dict[str, Any]:
    """The values of the run that `--config` repeats, if it is given."""
    if "config" not in flag_values or flag_values.config is None:
        return {}
    names = {field.name for field in dataclasses.fields(config_class)}
    stored = read_config(flag_values.config)
    known = {name: value for name, value in stored.items() if name in names}
    rule = "--config must be the config.json of a run of this program"
    require(known or not stored, rule, f"{flag_values.config} with {', '.join(stored)}")
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
        if argument == "--":
            yield argument
            break
        if name in FLAGFILE_NAMES:
            yield from with_flagfiles(*_lines(place if equals else next(left, ""), inside))
        else:
            yield argument
    yield from left


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
# The flag of absl that users need; its own list is long.
COMMON = {"flagfile": "File of flags, one per line; flags on the command line take precedence."}


def help_text(config_class: type[Flags], description: str) -> str:
    """The description, then every flag with its default, its choices and its help."""
    lines = [textwrap.dedent(description).strip()]
    for subject, fields in by_subject(config_class).items():
        lines += ["", f"{subject}:", *(_flag_entry(field) for field in fields)]
    common = COMMON | ({"config": CONFIG_HELP} if issubclass(config_class, Settings) else {})
    return "\n".join(
        [*lines, "", "Sources of flags:", *(_help_entry(f"--{name}", text) for name, text in common.items())]
    )


def by_subject(config_class: type[Flags]) -> dict[str, list[Any]]:
    """The fields of a config under the subjects of the classes that first declare them, the task's own first."""
    grouped: dict[str, list[Any]] = {}
    owners = [cls for cls in config_class.__mro__ if issubclass(cls, Flags)]
    for owner in owners:
        for field in dataclasses.fields(config_class):
            declaring = [cls for cls in owners if field.name in cls.__annotations__]
            if declaring[-1] is owner:
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
