"""The flags of the program that keeps results. Needs no TensorFlow."""

import dataclasses

from trainers.engine.flags import Flags, option


@dataclasses.dataclass(frozen=True)
class KeepConfig(Flags):
    """Which results to keep, and where."""

    subject = "Results"

    runs: tuple[str, ...] = option((), "Folders that contain sweeps or gradient analyses.", positional=True)
    output: str = option("docs/results", "Folder that gets one subfolder per run or sweep.")
