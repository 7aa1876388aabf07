"""Untuned warmup for Adam, and RAdam decomposed, for Keras."""

from tfwarmup.distribution import reduce_first
from tfwarmup.factors import FIRST_STEPS, WARMUPS, effective_warmup_period
from tfwarmup.optimizers import Adam, RAdam
from tfwarmup.schedules import (
    Delayed,
    ExponentialWarmup,
    LinearWarmup,
    RAdamWarmup,
    UntunedExponentialWarmup,
    UntunedLinearWarmup,
    Warmup,
    warm_up,
)
from tfwarmup.version import __version__

__all__ = [
    "FIRST_STEPS",
    "WARMUPS",
    "Adam",
    "Delayed",
    "ExponentialWarmup",
    "LinearWarmup",
    "RAdam",
    "RAdamWarmup",
    "UntunedExponentialWarmup",
    "UntunedLinearWarmup",
    "Warmup",
    "__version__",
    "effective_warmup_period",
    "reduce_first",
    "warm_up",
]
