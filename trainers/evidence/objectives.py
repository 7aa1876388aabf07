"""What each task is judged by, in the unit of all tables, pages and files."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Objective:
    """A metric and how to show it.

    Args:
        metric: Its name in the records of a run.
        label: What to call it, with its unit.
        direction: "min" or "max": which value is better.
        factor: What to multiply a recorded value by to get the unit of the label.
        unit: The unit of a difference between two values.
    """

    metric: str
    label: str
    direction: str
    factor: float = 1.0
    unit: str = ""

    def shown(self, value: float) -> float:
        """Converts a value to the unit of the label: 0.07 is 7 %, not 7.000000000000001 %."""
        return value if self.factor == 1 else float(f"{value * self.factor:.15g}")


# Repeated here because the tasks import TensorFlow, which takes longer than a whole report.
OBJECTIVES = {
    "image_classification": Objective("val_error", "validation error, %", "min", 100.0, "points"),
    "language_modeling": Objective("val_perplexity", "validation perplexity", "min", 1.0, "perplexity"),
    "machine_translation": Objective("val_bleu", "validation BLEU", "max", 1.0, "BLEU"),
}


def objective_named(task: str, metric: str, direction: str) -> Objective:
    """The objective of a task; for a custom task, the metric as it is recorded."""
    known = OBJECTIVES.get(task)
    if known is not None and known.metric == metric:
        return known
    return Objective(metric, metric.replace("val_", "validation "), direction)
