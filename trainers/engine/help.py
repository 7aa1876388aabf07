"""The text of `--help`: a program's own description, and its flags by subject. Needs no TensorFlow."""

import dataclasses
import shutil
import textwrap
from typing import Any

from trainers.engine.flags import CONFIG_HELP, Flags, Settings

WIDTH_AT_MOST, INDENT = 110, 8
# The flag of absl that users need; its own list is long.
COMMON = {"flagfile": "File of flags, one per line; flags on the command line take precedence."}


def help_text(config_class: type[Flags], description: str) -> str:
    """The description, then every flag with its default, its choices and its help."""
    lines = [textwrap.dedent(description).strip()]
    for subject, fields in by_subject(config_class).items():
        lines += ["", f"{subject}:", *(_flag(field) for field in fields)]
    common = COMMON | ({"config": CONFIG_HELP} if issubclass(config_class, Settings) else {})
    return "\n".join([*lines, "", "Sources of flags:", *(_entry(f"--{name}", text) for name, text in common.items())])


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


def _flag(field: Any) -> str:
    if field.metadata["positional"]:
        return _entry(field.name, field.metadata["help"])
    choices = field.metadata["choices"]
    text = field.metadata["help"] + (f" One of: {', '.join(choices)}." if choices else "")
    return _entry(f"--{_with_default(field.name, field.default)}", text)


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


def _entry(flag: str, text: str) -> str:
    width = min(shutil.get_terminal_size().columns, WIDTH_AT_MOST)
    indent = " " * INDENT
    return f"    {flag}\n" + textwrap.fill(text, max(width, 40), initial_indent=indent, subsequent_indent=indent)
