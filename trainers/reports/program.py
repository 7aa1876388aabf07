"""The program around the page: folders in, one file out."""

import dataclasses
import pathlib
from collections.abc import Sequence

from trainers.engine.config import ConfigError, Flags, option, require
from trainers.engine.files import atomic_file
from trainers.reports.page import TITLE, make_page
from trainers.reports.reading import read_runs


@dataclasses.dataclass(frozen=True)
class ReportConfig(Flags):
    """What stands on the page, and where."""

    runs: tuple[str, ...] = option((), "Folders of runs, or of folders of runs.", positional=True)
    output: str = option("report.html", "File of the page.")
    title: str = option(TITLE, "Title of the page.")


def report(config: ReportConfig) -> str:
    """Writes the page and says where."""
    return write_report(config.runs, config.output, config.title)


def write_report(roots: Sequence[str], output: str, title: str = TITLE) -> str:
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
