"""Untuned warmup for Adam, and RAdam decomposed, for Keras."""

import importlib
from typing import Any

from tfwarmup import factors, warmups
from tfwarmup.decays import InverseSqrtDecay, Plateau, schedule
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

# Imported on first use, not by `import tfwarmup`: `from tfwarmup import probes`. A module, or a name in a module.
_ON_DEMAND = {
    "CriticalRate": "tfwarmup.analysis.critical",
    "LogRate": "tfwarmup.analysis.probes",
    "WarmupCheck": "tfwarmup.analysis.warmup_check",
    "critical_rate": "tfwarmup.analysis.critical",
    "describe": "tfwarmup.analysis.forecast",
    "plot": "tfwarmup.analysis.warmup_figure",
    "probes": "tfwarmup.analysis.probes",
    "simulation": "tfwarmup.analysis.simulation",
    "tuning": "tfwarmup.tuning",
    "updates_of": "tfwarmup.analysis.forecast",
}

__all__ = [
    "FIRST_STEPS",
    "WARMUPS",
    "Adam",
    "ExponentialWarmup",
    "InverseSqrtDecay",
    "LinearWarmup",
    "Plateau",
    "RAdam",
    "RAdamWarmup",
    "UntunedExponentialWarmup",
    "UntunedLinearWarmup",
    "WarmupSchedule",
    "__version__",
    "effective_warmup_period",
    "factors",
    "reduce_first",
    "restart_warmup",
    "schedule",
    "warm_up",
    "warmup_factor",
    "warmups",
    *_ON_DEMAND,
]


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_ON_DEMAND[name])
    return getattr(module, name, module)


def __dir__() -> list[str]:
    return __all__
