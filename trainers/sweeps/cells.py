"""The runs of a sweep: their hyperparameters, and what a method is among the flags of a run. Needs no TensorFlow."""

import dataclasses

from tfwarmup import FIRST_STEPS, WARMUPS
from tfwarmup.warmups import takes_period

METHODS = ("untuned_exponential", "untuned_linear", "radam")  # the columns of the paper's tables
UNTUNED = tuple(name for name in WARMUPS if not takes_period(name))
# The paper's ablation: RAdam with something else in the place of its momentum steps.
FIRST_STEPS_OF = {f"radam_{rule}": rule for rule in FIRST_STEPS if rule != "momentum"}


@dataclasses.dataclass(frozen=True)
class Cell:
    """The hyperparameters of one run."""

    learning_rate: float
    beta_2: float
    warmup: str
    seed: int

    @property
    def name(self) -> str:
        """The name of its folder: different for different cells.

        >>> Cell(1e-3, 0.99, "radam", 2).name
        'rate-0.001_beta-0.99_radam_seed-2'
        """
        return f"rate-{self.learning_rate!r}_beta-{self.beta_2!r}_{self.warmup}_seed-{self.seed}"


FIELDS = tuple(field.name for field in dataclasses.fields(Cell))


def method_flags(method: str) -> dict[str, str]:
    """What a method of a sweep is called among the flags of a run.

    >>> method_flags("none"), method_flags("radam_nothing")
    ({'warmup': 'none'}, {'warmup': 'radam', 'first_steps': 'nothing'})
    """
    if method in FIRST_STEPS_OF:
        return {"warmup": "radam", "first_steps": FIRST_STEPS_OF[method]}
    return {"warmup": method}
