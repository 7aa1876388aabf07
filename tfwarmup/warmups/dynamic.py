"""A warmup that follows the updates of its optimizer."""

import dataclasses
from typing import Any, NoReturn

import numpy as np

from tfwarmup import factors
from tfwarmup.warmups.base import Warmup, registered
from tfwarmup.warmups.rules import Untuned

# How many updates of untuned linear warmup an update is worth: where it agrees with the next gradient, and elsewhere.
AGREES, DISAGREES = 2.0, 0.5


@registered
@dataclasses.dataclass(frozen=True, repr=False)
class Dynamic(Untuned):
    """Untuned linear warmup that speeds up while updates agree with the next gradients, and slows down otherwise.

        omega_t = min(1, (1 + p_{t-1}) (1 - beta_2) / 2)
        p_t = p_{t-1} + (2 if <g_t, u_{t-1}> > 0 else 1/2),    p_0 = 0, p_1 = 1

    u_t = [m_t / (1 - beta_1^t)] / [sqrt(v_t / (1 - beta_2^t)) + epsilon] is the update without its learning rate. While
    its scalar product with the next gradient is positive, the loss still falls along it: the step could have been
    longer. Where it is negative, the step went too far. The full rate is reached after about 1 / (1 - beta_2) updates
    at the earliest and 4 / (1 - beta_2) at the latest, and kept from then on.

    Only `tfwarmup.Adam` supports it, because it sees its own updates. Experimental: see docs/dynamic_warmup.md.

    >>> warmup, progress = Dynamic(beta_2=0.9), [0.0]
    >>> for agreement in (0.0, 0.3, 0.1, -0.2):
    ...     progress.append(float(warmup.advanced(progress[-1], agreement, np)))
    >>> progress
    [0.0, 1.0, 3.0, 5.0, 5.5]
    >>> [round(float(warmup.factor(p, np)), 6) for p in progress]
    [0.05, 0.1, 0.2, 0.3, 0.325]
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

    def advanced(self, progress: Any, agreement: Any, xp: Any) -> Any:
        """p_t, after p_{t-1} and the scalar product <g_t, u_{t-1}>."""
        speed = xp.where(agreement > 0, AGREES, DISAGREES)
        return progress + xp.where(progress > 0, speed, 1.0)  # nothing comes before the first update

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
