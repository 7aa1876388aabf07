"""What a sweep is judged by, as its folder tells."""

import re

from trainers.evidence.objectives import OBJECTIVES, Objective, objective_named
from trainers.reports.folders import SWEEP_OF, Folder


def objective_of(folder: Folder) -> Objective:
    """The objective of a sweep; that of a task nobody knows here is told by the sweep's own summary."""
    task = folder.task.removeprefix(SWEEP_OF)
    if task in OBJECTIVES:
        return OBJECTIVES[task]
    summary = folder.path / "summary.md"
    heading = summary.read_text().partition("\n")[0] if summary.exists() else ""
    said = re.search(r": (.+), (lower|higher) is better", heading)
    if said is None:
        return Objective("", "objective, taken to be better if lower", "min")
    metric = said[1].replace("validation ", "val_")
    return objective_named(task, metric, "min" if said[2] == "lower" else "max")
