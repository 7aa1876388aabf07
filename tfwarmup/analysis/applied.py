"""What an optimizer did in its last update: which update it was, at which rate, and how far each parameter moved.

All of it is read from the optimizer's own state, as plain numbers and numpy arrays. It is the same on every backend,
and exact with several steps per execution, skipped steps and accumulated gradients.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from tfwarmup import checks, compat
from tfwarmup.analysis.samples import ParameterSample, checked_sample
from tfwarmup.compat import unwrapped, updates_made
from tfwarmup.optimizers import Adam
from tfwarmup.schedules import warmup_schedules


class Applied(NamedTuple):
    """The last update's number t = 1, 2, 3, ..., its learning rate, warmup included, and its warmup factor."""

    t: int
    rate: float
    warmup_factor: float


def applied_rate(optimizer: Any, t: int | None = None) -> Applied:
    """Returns (t, rate, warmup factor) of the last update of any Keras optimizer; (0, 0.0, 0.0) before the first.

    In RAdam's momentum phase the rate is alpha itself and the factor is 0: those steps are not Adam's.

    Args:
        optimizer: Any Keras optimizer with one learning rate, also inside a `LossScaleOptimizer`.
        t: `updates_made(optimizer)`, if it is known already.

    >>> from tfwarmup import LinearWarmup
    >>> optimizer = keras.optimizers.Adam(LinearWarmup(1e-3, period=10))
    >>> optimizer.apply([ops.ones(2)], [keras.Variable([0.0, 0.0])])
    >>> applied_rate(optimizer)
    Applied(t=1, rate=0.0001, warmup_factor=0.1)
    """
    optimizer = unwrapped(optimizer)
    if not compat.has_one_learning_rate(optimizer):
        rule = "The applied rate needs a Keras optimizer with one learning rate."
        raise ValueError(f"{rule} Received: optimizer={type(optimizer).__name__}")
    t = updates_made(optimizer) if t is None else t
    if t == 0:
        return Applied(0, 0.0, 0.0)
    rate, own = _rate(optimizer, t), _own_factor(optimizer, t)
    scale = 1.0 if _is_momentum(optimizer, t) else own
    return Applied(t, rate * scale, own * _scheduled_factor(optimizer, t))


def mismatched_betas(optimizer: Any) -> list[str]:
    """A message for each untuned warmup in the learning rate that was made for a beta_2 other than the optimizer's.

    A schedule does not see its optimizer, so this is the first place where both are known.
    """
    optimizer = unwrapped(optimizer)
    own = compat.second_moment_beta_2(optimizer)
    messages: list[str] = []
    if own is None:
        return messages
    for schedule in warmup_schedules(compat.learning_rate_of(optimizer)):
        try:
            schedule.warmup.with_beta_2(own)
        except ValueError as error:
            messages.append(str(error))
    return messages


def update_magnitudes(optimizer: Any, m: Any, v: Any, m_before: Any = None, t: int | None = None) -> np.ndarray:
    """|update| / alpha of the last update, from the moments after it, by the optimizer's own formula.

    The warmup factor is included, weight decay is not. alpha is the learning rate without the warmup factor.

    Args:
        optimizer: Adam, AdamW or Nadam of Keras, or `tfwarmup.Adam` or `tfwarmup.RAdam`; also inside a
            `LossScaleOptimizer`.
        m: First moments, an array.
        v: Second moments of the same parameters, see `second_moments`: the maxima for AMSGrad.
        m_before: The first moments before the update. Nadam needs them, since its update contains the gradient itself.
        t: `updates_made(optimizer)`, if it is known already.

    >>> optimizer = keras.optimizers.Adam(1e-3, epsilon=0.0)
    >>> optimizer.apply([ops.ones(1)], [keras.Variable([0.0])])
    >>> update_magnitudes(optimizer, *(ops.convert_to_numpy(x[0]) for x in moments(optimizer))).round(4)
    array([1.], dtype=float32)
    """
    optimizer = unwrapped(optimizer)
    formula, t = update_formula(optimizer), updates_made(optimizer) if t is None else t
    if t == 0:
        raise ValueError("Update magnitudes need an optimizer that has made an update. Received: iterations=0")
    m, v = np.asarray(m), np.asarray(v)
    if m.shape != v.shape:
        raise ValueError(f"`m` and `v` must have the same shape. Received: {m.shape} and {v.shape}")
    magnitudes: np.ndarray = np.abs(formula(optimizer, t, m, v, m_before)) * _scheduled_factor(optimizer, t)
    return magnitudes


def moments(optimizer: Any) -> tuple[list[Any], list[Any]]:
    """The first and second moments of a built Adam-like optimizer, one per variable of the model."""
    optimizer = unwrapped(optimizer)
    return compat.first_moments(optimizer), compat.second_moments(optimizer)


def second_moments(optimizer: Any) -> list[Any]:
    """The second moments that the update divides by: with AMSGrad, their maxima so far."""
    optimizer = unwrapped(optimizer)
    is_amsgrad = getattr(optimizer, "amsgrad", False)
    return compat.largest_second_moments(optimizer) if is_amsgrad else compat.second_moments(optimizer)


def check_moments(optimizer: Any) -> None:
    """Refuses an optimizer without both of Adam's moments."""
    optimizer = unwrapped(optimizer)
    if not isinstance(optimizer, _WITH_MOMENTS):
        raise ValueError(
            "Moments need Adam, AdamW, Nadam or Lamb of Keras, or `tfwarmup.Adam` or `tfwarmup.RAdam`. Received: "
            f"optimizer={type(optimizer).__name__}"
        )


class Moments(NamedTuple):
    """First and second moments, and the second moments that the update divides by."""

    m: np.ndarray
    v: np.ndarray
    divisors: np.ndarray


class SampledMoments:
    """The moments of a sample of parameters, read from the optimizer once per update and shared by probes.

    Args:
        sample, seed: The `count` and the `seed` of the `ParameterSample`.
    """

    def __init__(self, sample: int | None = None, seed: int = 0) -> None:
        self.sample, self.seed = checked_sample(sample), checks.integer("seed", seed, least=0)
        self._optimizer: Any = None

    def prepare(self, model: Any) -> None:
        """Chooses the parameters of a model whose weights exist."""
        self._t = -1
        if self._optimizer is not unwrapped(model.optimizer):
            self._parameters = ParameterSample(model.trainable_variables, self.sample, self.seed)
            self._optimizer = None

    def read(self, optimizer: Any, t: int) -> Moments:
        """The moments after update t, the last one made."""
        if self._optimizer is None:  # after the first update, when every optimizer has its variables
            self._optimizer = unwrapped(optimizer)
            self._read = self._parameters.reader(*self._variables())
        if t != self._t:
            rows = self._read()
            self._t, self._values = t, Moments(rows[0], rows[1], rows[-1])
        return self._values

    def _variables(self) -> list[list[Any]]:
        optimizer = self._optimizer
        lists = [*moments(optimizer), *([second_moments(optimizer)] if getattr(optimizer, "amsgrad", False) else [])]
        places = [compat.variable_index(optimizer, variable) for variable in self._parameters.variables]
        return [[variables[place] for place in places] for variables in lists]


# A function of the optimizer, t, m, v and the m before the update: the update without its learning rate.
Formula = Callable[[Any, int, Any, Any, Any], Any]


def update_formula(optimizer: Any) -> Formula:
    """The formula of the optimizer's update without its learning rate; an error if it is not known."""
    optimizer = unwrapped(optimizer)
    # A subclass with its own `update_step` is a different optimizer, whatever it inherits from.
    owner = next((cls for cls in type(optimizer).__mro__ if "update_step" in vars(cls)), None)
    if owner not in _FORMULAS:
        raise ValueError(
            "Update magnitudes need an optimizer whose update is that of Adam, AdamW or Nadam of Keras, or of "
            f"`tfwarmup.Adam` or `tfwarmup.RAdam`. Received: optimizer={type(optimizer).__name__}"
        )
    if getattr(optimizer, "clip_update_rms", False):
        raise ValueError(
            "Update magnitudes need an optimizer whose update follows from its moments: `clip_update_rms` also "
            f"divides it by a number that is not stored. Received: {optimizer!r}"
        )
    return _FORMULAS[owner]


def needs_gradient(optimizer: Any) -> bool:
    """Whether the update contains the gradient itself, so that the moments before it are needed as well."""
    return update_formula(optimizer) is _nadam_update


def _paper_adam_update(optimizer: Any, t: int, m: Any, v: Any, _: Any) -> Any:
    """`tfwarmup.Adam` and `tfwarmup.RAdam`: the formula that they use themselves."""
    numbers = optimizer.update_numbers(1.0, t, _warmup_start(optimizer), optimizer.applied_factor)
    return m * float(numbers.rate) / (np.sqrt(v) + float(numbers.epsilon))


def _keras_adam_update(optimizer: Any, t: int, m: Any, v: Any, _: Any) -> Any:
    """Keras' Adam and AdamW: epsilon before the bias correction."""
    step = compat.adam_step(optimizer, t)
    power_1, power_2 = (_keras_power(optimizer, beta, step) for beta in (optimizer.beta_1, optimizer.beta_2))
    return m * float(np.sqrt(1 - power_2) / (1 - power_1)) / (np.sqrt(v) + optimizer.epsilon)


def _nadam_update(optimizer: Any, t: int, m: Any, v: Any, m_before: Any) -> Any:
    """Keras' Nadam; the gradient is what the update added to the first moment."""
    if m_before is None:
        raise ValueError("The update of Nadam contains the gradient: `m_before` must be given. Received: m_before=None")
    beta_1, t = optimizer.beta_1, compat.adam_step(optimizer, t)
    gradient = (m - m_before * beta_1) / (1 - beta_1)
    now, later = (beta_1 * (1 - 0.5 * 0.96**step) for step in (t, t + 1))
    product = compat.nadam_product(optimizer)
    if product == 1.0:
        # On JAX, Keras does not count this variable as the optimizer's state, so that `fit` never stores it and every
        # update starts from 1.
        product = now
    m_hat = m * (later / (1 - product * later)) + gradient * ((1 - now) / (1 - product))
    unbiased = float(1 - _keras_power(optimizer, optimizer.beta_2, t))
    return m_hat / (np.sqrt(v / unbiased) + optimizer.epsilon)


_FORMULAS: dict[type, Formula] = {
    keras.optimizers.Adam: _keras_adam_update,
    keras.optimizers.Nadam: _nadam_update,
    Adam: _paper_adam_update,
}
_WITH_MOMENTS = (*compat.built_in_optimizers("Adam", "Nadam", "Lamb"), Adam)


def _keras_power(optimizer: Any, beta: float, t: int) -> Any:
    """beta^t rounded as Keras does it, in the variables' precision: in float32 1 - 0.999 is off by 1e-5."""
    dtype = next(m.dtype for m in compat.first_moments(optimizer) if m is not None)
    # Computed by the backend: numpy's float32 power differs in the last bit on some processors.
    power = ops.power(ops.cast(beta, dtype), ops.cast(t, dtype))
    wide = "float64" if dtype == "float64" else "float32"
    return np.dtype(wide).type(ops.convert_to_numpy(ops.cast(power, wide)))


def _rate(optimizer: Any, t: int) -> float:
    """The learning rate of update t as the optimizer got it, a warmup schedule included."""
    rate = optimizer.rate_at(t) if isinstance(optimizer, Adam) else compat.rate_at(optimizer, t)
    return float(rate) if isinstance(rate, (int, float)) else compat.number(rate)


def _scheduled_factor(optimizer: Any, t: int) -> float:
    """The warmup factor of update t from schedules in the learning rate."""
    step = compat.last_step(optimizer, t)
    schedules = warmup_schedules(compat.learning_rate_of(optimizer))
    return math.prod(float(schedule.warmup_factor(step)) for schedule in schedules)


def _own_factor(optimizer: Any, t: int) -> float:
    """The warmup factor of update t that the optimizer itself applied; 0 for a momentum step."""
    if not isinstance(optimizer, Adam):
        return 1.0
    if optimizer.applied_factor is not None:
        return float(optimizer.applied_factor)
    return 0.0 if _is_momentum(optimizer, t) else float(optimizer.warmup(t - _warmup_start(optimizer)))


def _is_momentum(optimizer: Any, t: int) -> bool:
    return isinstance(optimizer, Adam) and t - _warmup_start(optimizer) <= optimizer.warmup.momentum_steps


def _warmup_start(optimizer: Adam) -> int:
    # Updates before a restart belong to an earlier warmup, whose start is not stored.
    return int(compat.number(optimizer.warmup_start))
