"""The report program: reads folders of runs and writes one page. Its flags need neither TensorFlow nor matplotlib."""

import dataclasses
import os
import pathlib
import stat
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainers.engine.flags import Flags, option
from trainers.system.errors import ConfigError, require
from trainers.system.files import atomic_file
from trainers.system.streams import quiet

if TYPE_CHECKING:
    from trainers.reports.sections import Report

TITLE = "Untuned warmup, measured"
DOCTYPE = b"<!doctype html"


@dataclasses.dataclass(frozen=True)
class ReportConfig(Flags):
    """What the page shows, and where it is written."""

    subject = "Page"

    runs: tuple[str, ...] = option((), "Folders that contain runs.", positional=True)
    output: str = option("report.html", "HTML file to write.")
    title: str = option(TITLE, "Title of the page.")


def report(config: ReportConfig) -> str:
    """Writes the page and returns a message that says where."""
    return write_report(config.runs, config.output, config.title)


def write_report(roots: Sequence[str], output: str, title: str = TITLE) -> str:
    """Writes the page of all runs at or below some folders, atomically, and returns a message."""
    problems = write_page(roots, output, title).runs.problems
    return "\n".join([*(f"left out: {problem}" for problem in problems), f"written: {output}"])


def write_page(roots: Sequence[str], output: str, title: str = TITLE) -> "Report":
    """Writes the page and returns what it shows."""
    with quiet():  # imports matplotlib and statistics, which takes seconds: --help and bad flags do not wait for them
        from trainers.reports.page import make_page
        from trainers.reports.sections import make_report
        from trainers.results.runs import read_runs

    path = checked_output(output)
    made = make_report(read_runs(roots))
    page = make_page(made.sections, title)
    try:
        with atomic_file(path) as file:
            file.write(page.encode(errors="replace"))  # a file name need not be valid text
    except OSError as error:
        raise ConfigError(
            f"--output must be a file that can be written. Received: {output!r} ({error.strerror})"
        ) from error
    return made


def checked_output(output: str) -> pathlib.Path:
    """Returns the file to write, with links followed; raises `ConfigError` if a page must not replace it."""
    try:
        require(output and not os.path.isdir(output), "--output must name a file", output)
        path = pathlib.Path(output).resolve(strict=os.path.exists(output))
        kind = os.stat(path).st_mode if os.path.exists(path) else None
        require(path.parent.is_dir(), "--output must be in a folder that exists", output)
        require(kind is None or stat.S_ISREG(kind), "--output must be a file, not a device, a pipe or a socket", output)
        require(kind is None or _is_page(path), "--output must be new, or a page to be replaced", output)
    except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"--output must be a file that can be written. Received: {output!r} ({reason})") from error
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"--output must name a file. Received: {output!r}") from error
    return path


def _is_page(path: pathlib.Path) -> bool:
    """Whether a file is a page, or empty: somebody may have created it to reserve the name."""
    with path.open("rb") as file:
        beginning = file.read(1000).lstrip().lower()
    return not beginning or beginning.startswith(DOCTYPE)
