"""The objective of a sweep, read from its folder."""

import re

from trainers.evidence.objectives import OBJECTIVES, Objective, objective_named
from trainers.reports.folders import SWEEP_OF, Folder


def objective_of(folder: Folder) -> Objective:
    """The objective of a sweep; for an unknown task, it is read from the sweep's own summary."""
    task = folder.task.removeprefix(SWEEP_OF)
    if task in OBJECTIVES:
        return OBJECTIVES[task]
    summary = folder.path / "summary.md"
    heading = summary.read_text().partition("\n")[0] if summary.exists() else ""
    said = re.search(r": (.+), (lower|higher) is better", heading)
    if said is None:
        return Objective("", "objective (assumed: lower is better)", "min")
    metric = said[1].replace("validation ", "val_")
    return objective_named(task, metric, "min" if said[2] == "lower" else "max")
