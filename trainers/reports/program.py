"""The program around the page: folders in, one file out."""

import pathlib
import sys

from absl import app, flags

from trainers.engine.checkpoint import atomic_file
from trainers.engine.config import ConfigError, require
from trainers.reports.page import TITLE, make_page
from trainers.reports.reading import read_runs

# Each flag with its default and what it means.
FLAGS = {"output": ("report.html", "File of the page."), "title": (TITLE, "Title of the page.")}
BAD_INPUT = 2  # as everywhere in the trainers; their own program brings TensorFlow


def write_report(roots: list[str], output: str, title: str = TITLE) -> str:
    """Writes the page of all runs at or below some folders, whole or not at all, and returns what to say."""
    path = pathlib.Path(output)
    require(path.name and not path.is_dir(), "--output must name a file", output)
    require(path.parent.is_dir(), "--output must be in a folder that exists", output)
    runs = read_runs(roots)
    page = make_page(runs, title)
    try:
        with atomic_file(path) as file:
            file.write(page.encode(errors="replace"))  # a file's name need not be text
    except OSError as error:
        raise ConfigError(
            f"--output must be a file that can be written. Received: {output!r} ({error.strerror})"
        ) from error
    return f"written: {path}"


def main() -> None:
    """Parses `RUNS... --output --title`. Exit codes: 0 done, 2 bad input."""
    for name, (default, text) in FLAGS.items():
        flags.DEFINE_string(name, default, text, module_name=sys.argv[0])
    app.run(_run, flags_parser=_parse)


def _parse(arguments: list[str]) -> list[str]:
    try:
        return flags.FLAGS(arguments)
    except flags.Error as error:
        sys.exit(_complain(error))


def _run(arguments: list[str]) -> None:
    try:
        print(write_report(arguments[1:], flags.FLAGS.output, flags.FLAGS.title))
    except ConfigError as error:
        sys.exit(_complain(error))


def _complain(error: Exception) -> int:
    print("error: " + str(error).replace("\n", " "), file=sys.stderr)
    return BAD_INPUT
