"""Untuned warmup for Adam, and RAdam decomposed, for Keras."""

import importlib
from typing import Any

from tfwarmup import warmups
from tfwarmup.distribution import reduce_first
from tfwarmup.factors import FIRST_STEPS
from tfwarmup.optimizers import Adam, RAdam
from tfwarmup.schedules import (
    ExponentialWarmup,
    LinearWarmup,
    RAdamWarmup,
    UntunedExponentialWarmup,
    UntunedLinearWarmup,
    WarmupSchedule,
)
from tfwarmup.version import __version__
from tfwarmup.warming import restart_warmup, warm_up, warmup_factor
from tfwarmup.warmups import WARMUPS, effective_warmup_period

__all__ = [
    "FIRST_STEPS",
    "WARMUPS",
    "Adam",
    "ExponentialWarmup",
    "LinearWarmup",
    "RAdam",
    "RAdamWarmup",
    "UntunedExponentialWarmup",
    "UntunedLinearWarmup",
    "WarmupSchedule",
    "__version__",
    "effective_warmup_period",
    "reduce_first",
    "restart_warmup",
    "warm_up",
    "warmup_factor",
    "warmups",
]

# Modules that are imported on first use, not by `import tfwarmup`: `from tfwarmup import probes`.
_ON_DEMAND = {
    "probes": "tfwarmup.analysis.probes",
    "simulation": "tfwarmup.analysis.simulation",
    "tuning": "tfwarmup.tuning",
}
_CLASSES_ON_DEMAND = {"WarmupCheck": "tfwarmup.analysis.warmup_check"}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return importlib.import_module(_ON_DEMAND[name])
    if name in _CLASSES_ON_DEMAND:
        return getattr(importlib.import_module(_CLASSES_ON_DEMAND[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
