"""The warmups of the paper (linear and exponential, tuned and untuned, and RAdam's), and `Root`."""

import dataclasses
from typing import Any, Self

from tfwarmup import checks, factors
from tfwarmup.warmups.base import Warmup, registered


@dataclasses.dataclass(frozen=True, repr=False)
class Tuned(Warmup):
    """A warmup whose period is chosen by the user.

    Args:
        period: The period in updates.
        share, updates: Instead, its share of a run, and the number of updates of the run, see `tfwarmup.updates_of`.
    """

    period: float = None  # type: ignore[assignment]
    share: dataclasses.InitVar[float | None] = dataclasses.field(default=None, kw_only=True)
    updates: dataclasses.InitVar[float | None] = dataclasses.field(default=None, kw_only=True)

    def __post_init__(self, share: float | None, updates: float | None) -> None:
        super().__post_init__()
        received = f"period={self.period!r}, share={checks.shown(share)}, updates={checks.shown(updates)}"
        if (share is None) != (updates is None) or (share is None) == (self.period is None):
            raise ValueError(
                f"`{type(self).__name__}` needs `period`, or `share` and `updates`, the length of the run, which "
                f"`tfwarmup.updates_of` counts. Received: {received}"
            )
        if share is not None and updates is not None:
            if not (checks.is_number(share) and 0 < share <= 1):
                raise ValueError(f"`share` must be a number in (0, 1], such as 0.05. Received: {received}")
            self._set(period=share * checks.positive("updates", updates))
        self._set(period=checks.positive("period", self.period))


@registered
@dataclasses.dataclass(frozen=True, repr=False)
class Linear(Tuned):
    """omega_t = min(1, t / period).

    >>> Linear(period=2000)(500)
    0.25
    >>> round(Linear(period=2000, initial=0.2)(500), 12)
    0.4
    >>> Linear(share=0.05, updates=10_000)
    Linear(period=500.0)
    """

    @property
    def length(self) -> float:
        return self.period

    def _rule(self, t: Any) -> Any:
        return factors.linear(t, self.period)

    def _effective_period(self) -> float:
        return factors.linear_effective_period(self.period)


@registered
@dataclasses.dataclass(frozen=True, repr=False)
class Exponential(Tuned):
    """omega_t = 1 - exp(-t / period).

    >>> round(Exponential(period=1000)(1000), 6)
    0.632121
    """

    @property
    def length(self) -> float:
        return 2 * self.period

    def _rule(self, t: Any) -> Any:
        return factors.exponential(t, self.period)

    def _effective_period(self) -> float:
        return factors.exponential_effective_period(self.period)


@dataclasses.dataclass(frozen=True, repr=False)
class Untuned(Warmup):
    """A warmup that depends on the optimizer's beta_2. `None` means the beta_2 of the optimizer that uses it."""

    beta_2: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta_2 is not None:
            self._set(beta_2=checks.beta_2(self.beta_2))

    @property
    def length(self) -> float:
        return factors.untuned_linear_period(self._known_beta_2)

    @property
    def needs_beta_2(self) -> bool:
        return True

    def with_beta_2(self, beta_2: float) -> Self:
        if self.beta_2 is None:
            return dataclasses.replace(self, beta_2=beta_2)
        if self.beta_2 != beta_2:
            raise ValueError(f"An untuned warmup must have the `beta_2` of its optimizer, {beta_2}. Received: {self!r}")
        return self

    @property
    def _known_beta_2(self) -> float:
        if self.beta_2 is None:
            raise ValueError(
                f"`{type(self).__name__}` needs the `beta_2` of the optimizer that it is for. Received: beta_2=None"
            )
        return self.beta_2


@registered
@dataclasses.dataclass(frozen=True, repr=False)
class UntunedLinear(Untuned):
    """omega_t = min(1, t (1 - beta_2) / 2): linear over 2 / (1 - beta_2) updates, the paper's recommendation.

    >>> round(UntunedLinear(beta_2=0.999)(500), 12)
    0.25
    """

    def _rule(self, t: Any) -> Any:
        return factors.untuned_linear(t, self._known_beta_2)

    def _effective_period(self) -> float:
        return factors.linear_effective_period(self.length)


@registered
@dataclasses.dataclass(frozen=True, repr=False)
class UntunedExponential(Untuned):
    """omega_t = 1 - exp(-(1 - beta_2) t): exponential with the constant 1 / (1 - beta_2).

    >>> round(UntunedExponential(beta_2=0.999)(1000), 6)
    0.632121
    """

    def _rule(self, t: Any) -> Any:
        return factors.untuned_exponential(t, self._known_beta_2)

    def _effective_period(self) -> float:
        return factors.exponential_effective_period(factors.untuned_exponential_period(self._known_beta_2))


@registered
@dataclasses.dataclass(frozen=True, repr=False)
class Root(Untuned):
    """omega_t = sqrt(1 - beta_2^t), not in the paper: a schedule with about the effect of `Adam(gradient_init=True)`.

    Its effective period is about 0.61 / (1 - beta_2); that of the paper's untuned warmups is about 1 / (1 - beta_2).

    >>> round(Root(beta_2=0.99)(1), 12)
    0.1
    """

    @property
    def length(self) -> float:
        return 2 * factors.root_effective_period(self._known_beta_2)

    def _rule(self, t: Any) -> Any:
        return factors.root(t, self._known_beta_2)

    def _effective_period(self) -> float:
        return factors.root_effective_period(self._known_beta_2)


@registered
@dataclasses.dataclass(frozen=True, repr=False)
class Rectified(Untuned):
    """RAdam's fixed warmup, omega_t = sqrt((rho_t - 4)(rho_t - 2) rho_inf / ((rho_inf - 4)(rho_inf - 2) rho_t)).

    While rho_t <= rho_threshold, which at the paper's 4 means t <= 4, `first_steps` decides what happens: "nothing"
    (omega_t = 0), "constant_adam" (omega_5), "linear_adam" (a line to omega_5), or "momentum" (RAdam's own momentum
    steps, which need an optimizer of this package).

    >>> round(Rectified(beta_2=0.999)(2000), 6)
    0.82839
    """

    first_steps: str = "nothing"
    rho_threshold: float = 4.0

    def __post_init__(self) -> None:
        checks.choice("first_steps", self.first_steps, factors.FIRST_STEPS)
        self._set(rho_threshold=factors.checked_threshold(self.rho_threshold))
        super().__post_init__()
        if self.beta_2 is not None:
            factors.momentum_steps(self.beta_2, self.rho_threshold)  # refuses a beta_2 that is too small

    @property
    def momentum_steps(self) -> int:
        if self.first_steps != "momentum":
            return 0
        return factors.momentum_steps(self._known_beta_2, self.rho_threshold)

    def _rule(self, t: Any) -> Any:
        return factors.radam(t, self._known_beta_2, self.rho_threshold, self.first_steps)

    def _effective_period(self) -> float:
        return factors.radam_effective_period(self._known_beta_2, self.rho_threshold, self.first_steps)
