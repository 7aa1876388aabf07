"""The claims about the warmup factors: computed with the library, no run needed."""

from collections.abc import Callable, Sequence

import numpy as np

from tfwarmup.factors import momentum_steps
from trainers.figures.paper import BETAS, period
from trainers.reports.claims import Claim, Kind, judged, of_kind
from trainers.reports.words import per_cent
from trainers.results.methods import DRAWN

# Evenly spaced in log(1 - beta_2), from the paper's 0.8 to beyond any practical value.
RHO_BETAS = [float(beta_2) for beta_2 in 1 - np.geomspace(0.2, 1e-6, 301)]
TRAINED = (0.98, 0.999)  # the smallest and the largest beta_2 that the paper trains with
NEARLY = 0.15


def warmup_claims() -> list[Claim]:
    return of_kind(Kind.ARITHMETIC, [momentum_claim(momentum_steps), period_claim(gap)])


def momentum_claim(steps: Callable[[float], int]) -> Claim:
    """RAdam's first phase is four steps, whatever beta_2."""
    counts = {steps(beta_2) for beta_2 in RHO_BETAS}
    found = " or ".join(str(count) for count in sorted(counts))
    return judged(
        "RAdam is four steps of momentum, then Adam with a fixed warmup: for 0.8 ≤ β₂ < 1, ρₜ ≤ 4 exactly when t ≤ 4.",
        "4 steps (its fact 1)",
        f"{found} steps at {len(RHO_BETAS)} values of β₂ from 0.8 to 0.999999",
        "4 steps at each of them",
        counts == {4},
    )


def period_claim(gap_at: Callable[[float], float]) -> Claim:
    """How far apart the effective warmup periods are, relative to the smallest."""
    widest = max(BETAS, key=gap_at)
    trained = _largest(gap_at, [*TRAINED, *(b for b in BETAS if TRAINED[0] < b < TRAINED[1])])
    return judged(
        "The effective warmup periods of RAdam and of the two rules of thumb are nearly identical across all practical "
        "values of β₂.",
        "“nearly identical” (figure 3)",
        f"{per_cent(gap_at(0.999), 1)} apart at 0.999, at most {per_cent(trained, 1)} from 0.98 to 0.999, and "
        f"{per_cent(gap_at(widest))} at β₂ = {widest:.4g}, the widest from 0.9 to 0.9999",
        f"at most {per_cent(NEARLY)} apart wherever the paper trains: β₂ from 0.98 to 0.999",
        trained <= NEARLY,
    )


def gap(beta_2: float) -> float:
    """The ratio of the largest effective period to the smallest, minus one."""
    periods = [period(name, beta_2) for name in DRAWN]
    return max(periods) / min(periods) - 1


def _largest(gap_at: Callable[[float], float], betas: Sequence[float]) -> float:
    return max(gap_at(beta_2) for beta_2 in betas)
