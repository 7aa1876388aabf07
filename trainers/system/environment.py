"""What a result was made with: versions of packages, the revision of this project, the machine."""

import contextlib
import functools
import importlib.metadata
import os
import pathlib
import platform
import subprocess
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


PACKAGES = ("tensorflow", "keras", "numpy", "tensorflow-datasets", "keras-hub", "keras-tuner")


@functools.cache
def versions() -> dict[str, str]:
    """The versions of the packages that a result depends on."""
    found = {}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


@functools.cache
def git_revision() -> str | None:
    command = ["git", "-C", str(pathlib.Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
