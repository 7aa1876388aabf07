"""Checks the files of `--flagfile` before absl reads them: absl only warns of a cycle, and waits forever for a pipe."""

import itertools
import os
from collections.abc import Iterable, Sequence

from trainers.engine.files import UnreadableError, read_text

NAMES = ("--flagfile", "-flagfile")


def check_flagfiles(arguments: Sequence[str], inside: tuple[str, ...] = ()) -> None:
    """Raises an `UnreadableError` for a file of flags that cannot be read or that contains itself.

    Args:
        arguments: A command line, or the lines of a file of flags.
        inside: The files of flags that contain these arguments.
    """
    for name in _named(arguments):
        path = os.path.realpath(os.path.expanduser(name.strip()))
        if path in inside:
            raise UnreadableError(f"--flagfile must not contain itself. Received: {name}, which is in {inside[-1]}")
        try:
            lines = read_text(path).splitlines()
        except UnreadableError as error:
            raise UnreadableError(f"--flagfile must be a text file of flags. Received: {name!r} ({error})") from error
        check_flagfiles([line.strip() for line in lines], (*inside, path))


def _named(arguments: Sequence[str]) -> Iterable[str]:
    for argument, following in itertools.zip_longest(arguments, arguments[1:], fillvalue=""):
        if argument == "--":
            return
        if argument in NAMES:
            yield following
        elif argument.startswith(tuple(f"{name}=" for name in NAMES)):
            yield argument.partition("=")[2]
