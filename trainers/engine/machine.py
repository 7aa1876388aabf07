"""The machine of a run, recorded so that its numbers can be interpreted later."""

import functools
import os
import pathlib
import platform
from typing import Any

CPUINFO = pathlib.Path("/proc/cpuinfo")


@functools.cache
def this_machine() -> dict[str, Any]:
    """Cores, processor and Python; nothing that names the machine or its user."""
    return {"cores": os.cpu_count(), "processor": _processor(), "python": platform.python_version()}


def _processor() -> str:
    """The name of the processor on Linux; elsewhere, that of its architecture."""
    lines = CPUINFO.read_text().splitlines() if CPUINFO.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
