"""Adam's update formula, shared by the optimizers, the probes and the simulation.

Everything that changes with t is in two numbers, rate_t and epsilon_t, so that one formula covers Adam, any warmup, and
RAdam's momentum steps:

    theta_t = theta_{t-1} - rate_t m_t / (sqrt(v_t) + epsilon_t)
"""

import math
from typing import Any, NamedTuple

from tfwarmup import factors
from tfwarmup.warmups import Warmup

# Momentum is Adam with an infinite epsilon: theta -= (rate S) m / (sqrt(v) + S) is theta -= rate m, to the last bit,
# while sqrt(v) < S / 2^25. S is a power of two, so that neither the product nor the quotient rounds.
MOMENTUM_EPSILON = 2.0**64


class Update(NamedTuple):
    """rate_t and epsilon_t of one update, and its learning rate omega_t * alpha."""

    rate: Any
    epsilon: Any
    warmed: Any


def update(
    alpha: Any, t: Any, warmup: Warmup, beta_1: float, beta_2: float, epsilon: float, warmup_start: Any = 0
) -> Update:
    """Returns the numbers of update t = 1, 2, 3, ... of Adam (equations 2 to 4 of the paper) or of RAdam.

    The paper's fraction is expanded by sqrt(1 - beta_2^t), so that v_t needs no bias correction.

    Args:
        alpha: The learning rate.
        t: The update, a number or a tensor.
        warmup: The warmup that alpha is multiplied by.
        beta_1, beta_2, epsilon: Adam's hyperparameters; epsilon is the paper's, added after the bias correction.
        warmup_start: The number of updates made before the warmup began.

    >>> from tfwarmup.warmups import NoWarmup
    >>> rate, epsilon_1, _ = update(1.0, 1, NoWarmup(), beta_1=0.9, beta_2=0.999, epsilon=1e-8)
    >>> round(float(rate), 9), round(float(epsilon_1), 13)  # sqrt(0.001) / 0.1 and 1e-8 sqrt(0.001)
    (0.316227766, 3.162e-10)
    """
    t, xp = factors.real(t)
    since = t - warmup_start
    warmed = alpha * warmup(since)
    root = xp.sqrt(one_minus_power(beta_2, t))
    unbiased = one_minus_power(beta_1, t)
    rate, epsilon = warmed * root / unbiased, epsilon * root
    if warmup.momentum_steps:
        is_momentum = since <= warmup.momentum_steps
        rate = xp.where(is_momentum, alpha / unbiased * MOMENTUM_EPSILON, rate)
        epsilon = xp.where(is_momentum, MOMENTUM_EPSILON, epsilon)
    return Update(rate, epsilon, warmed)


def one_minus_power(beta: float, t: Any) -> Any:
    """1 - beta^t, computed with expm1: in float32 the textbook form loses four digits at t = 1, beta = 0.999."""
    t, xp = factors.real(t)
    return -xp.expm1(t * math.log(beta)) if beta else xp.ones_like(t)
