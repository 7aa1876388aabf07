"""The flags of the page. Needs no TensorFlow."""

import dataclasses

from trainers.engine.flags import Flags, option

TITLE = "Untuned warmup, measured"


@dataclasses.dataclass(frozen=True)
class ReportConfig(Flags):
    """What stands on the page, and where."""

    subject = "Page"

    runs: tuple[str, ...] = option((), "Folders that contain runs.", positional=True)
    output: str = option("report.html", "File of the page.")
    title: str = option(TITLE, "Title of the page.")
