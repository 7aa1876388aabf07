"""The runs of a sweep: their hyperparameters, and the flags that stand for a method. Needs no TensorFlow."""

import dataclasses
import urllib.parse
from collections.abc import Mapping
from typing import Any

from trainers.engine.config import FIRST_STEPS, TUNED_WARMUPS, WARMUPS

METHODS = ("untuned_exponential", "untuned_linear", "radam")  # the columns of the paper's tables
UNTUNED = tuple(name for name in WARMUPS if name not in TUNED_WARMUPS)
# The paper's ablation: RAdam with something else in place of its momentum steps.
FIRST_STEPS_OF = {f"radam_{rule}": rule for rule in FIRST_STEPS if rule != "momentum"}
# Other ways to hold back the first updates, instead of a warmup.
RIVALS = {"gi_adam": "gradient_init", "stable_adam": "clip_update_rms"}
FIELDS = ("learning_rate", "beta_2", "warmup", "seed")  # the paper's axes
PERIOD = "warmup_period"


@dataclasses.dataclass(frozen=True)
class Cell:
    """The hyperparameters of one run: those of the paper's axes, and others by the names of their flags."""

    learning_rate: float
    beta_2: float
    warmup: str
    seed: int
    others: tuple[tuple[str, Any], ...] = ()
    base: tuple[str, ...] = ()  # names in `others` whose value is the one that runs have without the axis

    @property
    def values(self) -> dict[str, Any]:
        """All hyperparameters, in order."""
        return {**{name: getattr(self, name) for name in FIELDS}, **dict(self.others)}

    @property
    def name(self) -> str:
        """The name of its folder, which is unique and stays the same when an axis is added.

        >>> Cell(1e-3, 0.99, "radam", 2).name
        'rate-0.001_beta-0.99_radam_seed-2'
        >>> Cell(1e-3, 0.99, "linear", 2, (("warmup_period", 30.0), ("model", "a/b"))).name
        'rate-0.001_beta-0.99_linear_seed-2_warmup_period-30.0_model-a%2Fb'
        """
        parts = [f"rate-{self.learning_rate!r}", f"beta-{self.beta_2!r}", self.warmup, f"seed-{self.seed}"]
        parts += [f"{name}-{_quoted(value)}" for name, value in self.others if name not in self.base]
        return "_".join(parts)


def method_flags(method: str) -> dict[str, Any]:
    """The flags of a run with a method of a sweep.

    >>> method_flags("none"), method_flags("radam_nothing")
    ({'warmup': 'none'}, {'warmup': 'radam', 'first_steps': 'nothing'})
    >>> method_flags("gi_adam")
    {'warmup': 'none', 'gradient_init': True}
    """
    if method in RIVALS:
        return {"warmup": "none", RIVALS[method]: True}
    if method in FIRST_STEPS_OF:
        return {"warmup": "radam", "first_steps": FIRST_STEPS_OF[method]}
    return {"warmup": method}


def method_label(values: Mapping[str, Any]) -> str:
    """The method of a run, with the period of a tuned warmup: the column of the run in the tables.

    >>> method_label({"warmup": "radam"}), method_label({"warmup": "linear", "warmup_period": 30.0})
    ('radam', 'linear 30')
    """
    period = values.get(PERIOD)
    # All digits: two periods must not share a column.
    return str(values["warmup"]) if period is None else f"{values['warmup']} {period:.15g}"


def _quoted(value: Any) -> str:
    return urllib.parse.quote(value, safe="") if isinstance(value, str) else repr(value)
