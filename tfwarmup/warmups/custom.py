"""A warmup given as a function of t."""

import dataclasses
from collections.abc import Callable
from typing import Any, Self

import keras
import numpy as np
from keras.optimizers.schedules import LearningRateSchedule

from tfwarmup import checks, factors
from tfwarmup.warmups.base import Warmup, registered


@registered
@dataclasses.dataclass(frozen=True, repr=False)
class Custom(Warmup):
    """A warmup given as a function of t. To load a saved one, register the function with Keras.

    Args:
        function: Returns omega_t in [0, 1] for t = 1, 2, 3, ... It receives floats and float tensors, in a compiled
            train step without a value: write it with `keras.ops` and plain arithmetic, not with `if` and `min`.
        period: The length of the warmup in updates, for a decay that starts after it.

    >>> @keras.saving.register_keras_serializable("docs")
    ... def square_root(t):
    ...     return keras.ops.minimum(1.0, keras.ops.sqrt(t / 100.0))
    >>> round(float(Custom(square_root)(25.0)), 6)
    0.5
    """

    function: Callable[[Any], Any]
    period: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.period is not None:
            self._set(period=checks.positive("period", self.period))
        _check_function(self.function)

    @property
    def length(self) -> float:
        if self.period is None:
            raise ValueError(f"The length of a custom warmup must be given as `period`. Received: {self!r}")
        return self.period

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "function": keras.saving.serialize_keras_object(self.function)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        function = config["function"]
        if not callable(function):
            function = keras.saving.deserialize_keras_object(function)
        return cls(**{**config, "function": function})

    def _rule(self, t: Any) -> Any:
        real, _ = factors.real(t)  # Keras counts steps in integers, which TensorFlow does not divide by a float
        if isinstance(real, np.ndarray) and real.ndim:
            return np.array([float(self.function(one)) for one in real.tolist()])
        return self.function(float(real) if isinstance(real, np.ndarray) else real)

    def _effective_period(self) -> float:
        """Sums 1 - omega_t until the terms are negligible."""
        total, first = 0.0, 1
        while first < _LONGEST:
            block = np.arange(float(first), 2.0 * first)
            missing = float(np.sum(1 - self._rule(block)))
            total, first = total + missing, 2 * first
            if first > 1000 and missing <= 1e-9 * max(total, 1.0):
                return total
        raise ValueError(
            f"The effective period needs a warmup that reaches 1 within {_LONGEST} updates. Received: {self!r}"
        )


# The most updates that a custom warmup is summed over: a minute of Python.
_LONGEST = 2**22


def _check_function(function: Any) -> None:
    rule = "A custom warmup must be a function of t with values in [0, 1]."
    if not callable(function) or isinstance(function, (type, LearningRateSchedule)):
        raise ValueError(f"{rule} Received: {checks.shown(function)}")
    for t in (1.0, 2.0, 1e3, 1e6):
        try:
            value = float(function(t))
        except Exception as error:
            raise ValueError(f"{rule} Received: {checks.shown(function)}, which at t={t} raised {error!r}") from error
        if not 0 <= value <= 1:
            raise ValueError(f"{rule} Received: {checks.shown(function)}, which is {value} at t={t}")
    try:
        _trace(function)
    except Exception as error:
        raise ValueError(
            "A custom warmup must also take a tensor that has no value yet, as in a compiled train step: write it with "
            "`keras.ops` and plain arithmetic, such as `keras.ops.minimum(1.0, t / 10)`, without `if`, `min` and "
            f"`float`. Received: {checks.shown(function)}, which raised {checks.shown(error)}"
        ) from error


def _trace(function: Callable[[Any], Any]) -> None:
    """Calls the function as a compiled train step does; torch does not compile it."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.function(function, autograph=False).get_concrete_function(tf.TensorSpec((), tf.float32))
    elif keras.backend.backend() == "jax":
        import jax

        jax.eval_shape(function, np.float32(1))
