"""The flags of the page. Needs no TensorFlow."""

import dataclasses

from trainers.engine.flags import Flags, option

TITLE = "Untuned warmup, measured"


@dataclasses.dataclass(frozen=True)
class ReportConfig(Flags):
    """What the page shows, and where it is written."""

    subject = "Page"

    runs: tuple[str, ...] = option((), "Folders that contain runs.", positional=True)
    output: str = option("report.html", "HTML file to write.")
    title: str = option(TITLE, "Title of the page.")
