"""A warmup that follows the updates of its optimizer."""

import dataclasses
from typing import Any, NoReturn

import numpy as np

from tfwarmup import factors
from tfwarmup.warmups.base import Warmup, registered
from tfwarmup.warmups.rules import Untuned

# While the slope is positive, progress grows by one part in so many memories of the first moment, 1 / (1 - beta_1).
MEMORIES = 5


@registered
@dataclasses.dataclass(frozen=True, repr=False)
class Dynamic(Untuned):
    """Untuned linear warmup that speeds up while the loss still falls along the updates.

        omega_t = min(1, (1 + p_{t-1}) (1 - beta_2) / 2)
        p_t = p_{t-1} + (max(1, p_{t-1} / n) if s_t > 0 else 1),    n = 5 / (1 - beta_1),    p_0 = 0
        s_t = beta_1 s_{t-1} + (1 - beta_1) cos(g_t, u_{t-1}),    s_1 = 0

    u_t = [m_t / (1 - beta_1^t)] / [sqrt(v_t / (1 - beta_2^t)) + epsilon] is the update without its learning rate, and
    s_t a running mean of the slope of the loss along the last update. A positive slope means that the last steps could
    have been longer: progress then grows by a factor of e in n updates. It never grows more slowly than in untuned
    linear warmup, and exactly as fast during the first n updates (50 at beta_1 = 0.9). The full rate is kept once it
    is reached.

    Only `tfwarmup.Adam` supports it, because it sees its own updates. How it compares: docs/dynamic_warmup.md.

    >>> warmup = Dynamic(beta_2=0.99)
    >>> [round(float(warmup.advanced(80.0, slope, 0.9, np)), 6) for slope in (0.1, -0.1)]
    [81.6, 81.0]
    >>> [round(float(warmup.factor(progress, np)), 6) for progress in (0.0, 81.6, 81.0)]
    [0.005, 0.413, 0.41]
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.initial:
            raise ValueError(f"A dynamic warmup has no initial factor. Received: initial={self.initial!r}")

    @property
    def length(self) -> float:
        self._refuse("Its length is not known in advance, so that no decay can wait for it")

    @property
    def first_factor(self) -> float:
        """omega_1."""
        return float(self.factor(0.0, np))

    def factor(self, progress: Any, xp: Any) -> Any:
        """omega_t, after the progress p_{t-1}; `xp` is numpy or `keras.ops`."""
        return xp.minimum((progress + 1) / factors.untuned_linear_period(self._known_beta_2), 1.0)

    def advanced(self, progress: Any, slope: Any, beta_1: float, xp: Any) -> Any:
        """p_t, from p_{t-1} and s_t."""
        fast = xp.maximum(progress * ((1 - beta_1) / MEMORIES), 1.0)
        return progress + xp.where(slope > 0, fast, 1.0)

    def _rule(self, t: Any) -> Any:
        self._refuse("It is no function of t")

    def _effective_period(self) -> float:
        self._refuse("Its effective period is not known in advance")

    def _refuse(self, what: str) -> NoReturn:
        raise ValueError(
            f"A dynamic warmup follows the updates of `tfwarmup.Adam(rate, warmup='dynamic')`. {what}: use "
            f"'untuned_linear' here, or another warmup that is a function of t. Received: {self!r}"
        )


class Reached(Warmup):
    """A factor that is known already, in the place of a warmup."""

    def __init__(self, factor: Any) -> None:
        self._set(value=factor)

    def __call__(self, t: Any) -> Any:
        return vars(self)["value"]
