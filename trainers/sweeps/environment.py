"""What trials were made with, and how to say that a table mixes several."""

from typing import Any

from trainers.engine.devices import intra_op_threads
from trainers.engine.machine import this_machine
from trainers.engine.records import git_revision, versions


def this_environment() -> dict[str, Any]:
    """That of a trial which this process runs."""
    return {
        "versions": versions(),
        "git_revision": git_revision(),
        "machine": this_machine(),
        "threads": intra_op_threads(),
    }
