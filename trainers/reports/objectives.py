"""What each task is judged by, in the units of the paper's tables."""

import dataclasses
import re

from trainers.reports.folders import SWEEP_OF, Folder


@dataclasses.dataclass(frozen=True)
class Objective:
    """The name in the records, what to call it, which way is better, and how many of its units make one."""

    metric: str
    label: str
    direction: str
    factor: float = 1.0

    def shown(self, value: float) -> float:
        """In the unit of the label: 0.07 is 7 %, not 7.000000000000001 %."""
        return value if self.factor == 1 else float(f"{value * self.factor:.15g}")


# Written down, not asked of the tasks: those bring TensorFlow with them, which takes longer than all of a report.
OBJECTIVES = {
    "image_classification": Objective("val_error", "validation error, %", "min", 100.0),
    "language_modeling": Objective("val_perplexity", "validation perplexity", "min"),
    "machine_translation": Objective("val_bleu", "validation BLEU", "max"),
}


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
    return Objective(said[1], said[1].replace("val_", "validation "), "min" if said[2] == "lower" else "max")
