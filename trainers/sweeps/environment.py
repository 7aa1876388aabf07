"""The environment that trials are made with."""

from typing import Any

from trainers.engine.devices import intra_op_threads
from trainers.engine.machine import this_machine
from trainers.engine.records import git_revision, versions


def this_environment() -> dict[str, Any]:
    """The environment of the trials that this process runs."""
    return {
        "versions": versions(),
        "git_revision": git_revision(),
        "machine": this_machine(),
        "threads": intra_op_threads(),
    }
