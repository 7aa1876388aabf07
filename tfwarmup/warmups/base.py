"""The base class of all warmups, and `NoWarmup`."""

import dataclasses
from typing import Any, Self

import keras

from tfwarmup import checks, factors

registered = keras.saving.register_keras_serializable("tfwarmup")


@dataclasses.dataclass(frozen=True, repr=False)
class Warmup:
    """A warmup: call it with the update t = 1, 2, 3, ... and it returns omega_t, the factor of the learning rate.

    t may be a number, a numpy array or a tensor, as in `tfwarmup.factors`.

    Args:
        initial: The factor to rise from, in [0, 1). With it, omega_t is `1 - (1 - initial) (1 - omega_t)`.
    """

    initial: float = dataclasses.field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        self._set(initial=checks.fraction("initial", self.initial))

    def __call__(self, t: Any) -> Any:
        """omega_t, in [0, 1]."""
        factor = self._rule(t)
        return 1 - (1 - self.initial) * (1 - factor) if self.initial else factor

    def __repr__(self) -> str:
        names = [field.name for field in sorted(dataclasses.fields(self), key=lambda field: bool(field.kw_only))]
        return checks.as_call(self, {name: getattr(self, name) for name in names})

    @property
    def effective_period(self) -> float:
        """T(omega), the sum over t >= 1 of 1 - omega_t: the number of full updates that the warmup costs."""
        return (1 - self.initial) * self._effective_period()

    @property
    def length(self) -> float:
        """The length of the warmup in updates, for a decay that starts after it.

        For a warmup that approaches 1 but never reaches it, this is the length of the linear warmup whose effective
        period is about the same.
        """
        raise NotImplementedError

    @property
    def momentum_steps(self) -> int:
        """The number of first updates that are momentum steps instead of Adam's. Only `Rectified` has any."""
        return 0

    @property
    def needs_beta_2(self) -> bool:
        """Whether the warmup depends on the optimizer's beta_2."""
        return False

    def with_beta_2(self, beta_2: float) -> "Warmup":
        """Returns this warmup for an optimizer with `beta_2`. Raises a `ValueError` if it was made for another one."""
        return self

    def get_config(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)

    def _rule(self, t: Any) -> Any:
        """omega_t without the initial factor."""
        raise NotImplementedError

    def _effective_period(self) -> float:
        """The effective period without the initial factor."""
        raise NotImplementedError

    def _set(self, **values: Any) -> None:
        # The only way to replace an argument by its checked value in a frozen dataclass.
        for name, value in values.items():
            object.__setattr__(self, name, value)


@registered
@dataclasses.dataclass(frozen=True, repr=False)
class NoWarmup(Warmup):
    """omega_t = 1: no warmup, the control.

    >>> NoWarmup()(1)
    1.0
    """

    def __post_init__(self) -> None:
        if self.initial:
            raise ValueError(f"`NoWarmup` takes no initial factor. Received: initial={self.initial!r}")

    @property
    def length(self) -> float:
        return 0.0

    def _rule(self, t: Any) -> Any:
        return factors.none(t)

    def _effective_period(self) -> float:
        return 0.0
