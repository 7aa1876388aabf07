"""What each task is judged by, in the unit in which every table, page and file tells it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Objective:
    """A metric and how it is told.

    Args:
        metric: Its name in the records of a run.
        label: What to call it, with its unit.
        direction: "min" or "max": which value is better.
        factor: How many of the unit make one of the records' numbers.
        unit: Of a difference between two values.
    """

    metric: str
    label: str
    direction: str
    factor: float = 1.0
    unit: str = ""

    def shown(self, value: float) -> float:
        """In the unit of the label: 0.07 is 7 %, not 7.000000000000001 %."""
        return value if self.factor == 1 else float(f"{value * self.factor:.15g}")


# Written down, not asked of the tasks: those bring TensorFlow with them, which takes longer than all of a report.
OBJECTIVES = {
    "image_classification": Objective("val_error", "validation error, %", "min", 100.0, "points"),
    "language_modeling": Objective("val_perplexity", "validation perplexity", "min", 1.0, "perplexity"),
    "machine_translation": Objective("val_bleu", "validation BLEU", "max", 1.0, "BLEU"),
}


def objective_named(task: str, metric: str, direction: str) -> Objective:
    """The objective of a task; of one's own, the metric as its records have it."""
    known = OBJECTIVES.get(task)
    if known is not None and known.metric == metric:
        return known
    return Objective(metric, metric.replace("val_", "validation "), direction)
