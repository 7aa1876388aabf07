"""Untuned warmup for Adam, and RAdam decomposed, for Keras."""

import importlib
from typing import Any

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

# Modules that `import tfwarmup` leaves alone until somebody asks for them: `from tfwarmup import probes`.
_ON_DEMAND = {
    "probes": "tfwarmup.analysis.probes",
    "simulation": "tfwarmup.analysis.simulation",
    "tuning": "tfwarmup.tuning",
}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return importlib.import_module(_ON_DEMAND[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
