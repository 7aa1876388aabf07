"""The warmup that flags describe."""

from tfwarmup import warmups
from tfwarmup.warmups import Warmup

WARMUP_FLAGS = ("warmup", "warmup_period", "first_steps")


def flags_warmup(warmup: str, warmup_period: float | None, first_steps: str) -> Warmup:
    """The values of `--warmup`, `--warmup_period` and `--first_steps` as one object.

    >>> flags_warmup("radam", None, "nothing")
    Rectified()
    """
    if warmup == "radam":
        return warmups.get("radam", first_steps=first_steps, period=warmup_period)
    return warmups.get(warmup, period=warmup_period)
