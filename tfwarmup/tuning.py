"""A keras-tuner search space of learning rate, beta_2 and warmup.

keras-tuner is not imported: `hp` is anything with its `Choice`, `Fixed` and `Float`.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from keras.optimizers.schedules import LearningRateSchedule

from tfwarmup import checks, warmups
from tfwarmup.optimizers import Adam, RAdam
from tfwarmup.schedules import warms_up
from tfwarmup.warmups import Warmup

_RADAM_OPTIONS = ("first_steps", "rho_threshold")


@dataclasses.dataclass(frozen=True)
class LogRange:
    """All numbers from `low` to `high`, searched on a logarithmic scale (for beta_2, that of 1 - beta_2).

    >>> LogRange(1e-4, 1e-2)
    LogRange(low=0.0001, high=0.01)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        checks.positive("low", self.low)
        checks.positive("high", self.high)
        if self.low >= self.high:
            raise ValueError(f"`low` must be < `high`. Received: low={self.low}, high={self.high}")


def warmup_space(
    hp: Any,
    learning_rate: float | Iterable[float] | LogRange = (1e-4, 1e-3, 1e-2),
    beta_2: float | Iterable[float] | LogRange = (0.99, 0.997, 0.999),
    warmup: Any = ("untuned_exponential", "untuned_linear", "radam"),
    *,
    period: float | Iterable[float] | LogRange | None = None,
    decay: Callable[[float], float | LearningRateSchedule] | None = None,
    prefix: str = "",
    **options: Any,
) -> Adam:
    """Declares `learning_rate`, `beta_2` and `warmup`, and returns an optimizer with the values drawn.

    The defaults are the paper's grid for ImageNet. Several choices become a `Choice`, a single value becomes `Fixed`,
    a `LogRange` becomes a `Float`. A range of beta_2 is declared as `one_minus_beta_2`, because 1 - beta_2 spans orders
    of magnitude.

    Args:
        hp: The `HyperParameters` that keras-tuner passes to `build_model`.
        learning_rate: A number > 0, several, or a `LogRange`.
        beta_2: A number in (0, 1), several, or a `LogRange`; with "radam", above 0.6.
        warmup: A name of `tfwarmup.WARMUPS`, an object of `tfwarmup.warmups`, or several of these. "radam" gives
            `tfwarmup.RAdam`, the others `tfwarmup.Adam`.
        period: For "linear" and "exponential" by name: their period, several, or a `LogRange`. It is declared too.
        decay: A function that turns the rate drawn into a schedule, if the rate is to decay.
        prefix: A prefix for the names of the hyperparameters, for several optimizers in one search.
        **options: Arguments of both optimizers (`beta_1`, `epsilon`, `weight_decay`, clipping); `first_steps` and
            `rho_threshold` go to RAdam only.

    >>> class First:  # stands for keras-tuner's HyperParameters, drawing the first choice
    ...     def Choice(self, name, values, ordered):
    ...         return values[0]
    >>> optimizer = warmup_space(First(), weight_decay=1e-4)
    >>> type(optimizer).__name__, optimizer.warmup
    ('Adam', UntunedExponential(beta_2=0.99))
    """
    rates, betas, rules = _numbers(learning_rate), _numbers(beta_2), _by_name(warmup)
    periods = None if period is None else _numbers(period)
    radam_options = {name: options.pop(name) for name in _RADAM_OPTIONS if name in options}
    _check("learning_rate", rates, lambda rate: checks.positive("learning_rate", rate))
    _check("beta_2", betas, checks.beta_2)
    _check("period", periods, lambda value: value is None or checks.positive("period", value))
    _check_warmups(rules, betas, periods, radam_options)
    _check_decay(decay)
    rate = _declare_number(hp, f"{prefix}learning_rate", rates)
    second = _declare_beta_2(hp, prefix, betas)
    name = _declare(hp, f"{prefix}warmup", tuple(rules) if len(rules) > 1 else next(iter(rules)), ordered=False)
    drawn = None if periods is None else _declare_number(hp, f"{prefix}period", periods)
    base = rate if decay is None else _decaying(decay, rate)
    if rules[name] == "radam":
        return RAdam(base, beta_2=second, **radam_options, **options)
    takes_period = rules[name] in warmups.WARMUPS and warmups.takes_period(name)
    return Adam(base, beta_2=second, warmup=rules[name], period=drawn if takes_period else None, **options)


def _by_name(warmup: Any) -> dict[str, Any]:
    """The warmups by name: keras-tuner chooses between names, not objects."""
    several = isinstance(warmup, Iterable) and not isinstance(warmup, str)
    rules = list(warmup) if several else [warmup]
    names = [rule if isinstance(rule, str) else repr(rule) for rule in rules]
    _check_choices("warmup", tuple(names))
    return dict(zip(names, rules, strict=True))


def _numbers(value: Any) -> Any:
    """Choices as floats: keras-tuner takes choices of one type only, and no numpy scalars."""

    def plain(number: Any) -> Any:
        return float(number) if checks.is_number(number) else number

    if isinstance(value, LogRange):
        return value
    several = isinstance(value, Iterable) and not isinstance(value, str)
    return tuple(plain(number) for number in value) if several else plain(value)


def _ends(value: Any) -> tuple[Any, ...]:
    """The values to check: every choice, the ends of a range, or the single value."""
    if isinstance(value, LogRange):
        return (value.low, value.high)
    return value if isinstance(value, tuple) else (value,)


def _check_choices(name: str, value: Any) -> None:
    if value == ():
        raise ValueError(f"`{name}` must have at least one choice. Received: {name}=()")
    if isinstance(value, tuple) and len(set(value)) < len(value):
        raise ValueError(f"`{name}` must have choices that differ. Received: {name}={value}")


def _check(name: str, value: Any, check: Callable[[Any], Any]) -> None:
    for number in _ends(value):
        check(number)
    _check_choices(name, value)


def _check_warmups(rules: dict[str, Any], betas: Any, periods: Any, radam_options: dict[str, Any]) -> None:
    """Creates every warmup that can be drawn, with every beta_2 to check."""
    tuned = [name for name, rule in rules.items() if isinstance(rule, str) and rule in ("linear", "exponential")]
    if periods is not None and not tuned:
        raise ValueError(
            f"`period` is for warmups 'linear' and 'exponential'. Received: period={periods}, {list(rules)}"
        )
    for name, rule in rules.items():
        options = radam_options if name == "radam" else {"period": _ends(periods)[0] if name in tuned else None}
        made: Warmup = warmups.get(rule, **options)
        for beta_2 in _ends(betas):
            made.with_beta_2(beta_2)


def _check_decay(decay: Any) -> None:
    # A schedule is callable too, and would take the rate for a step.
    if decay is not None and (not callable(decay) or isinstance(decay, LearningRateSchedule)):
        raise ValueError(f"`decay` must be a function that turns a rate into a schedule. Received: decay={decay!r}")


def _declare(hp: Any, name: str, value: Any, ordered: bool) -> Any:
    if isinstance(value, tuple):
        return hp.Choice(name, list(value), ordered=ordered)
    return hp.Fixed(name, value)


def _declare_number(hp: Any, name: str, value: Any) -> Any:
    if isinstance(value, LogRange):
        return hp.Float(name, value.low, value.high, sampling="log")
    return _declare(hp, name, value, ordered=True)


def _declare_beta_2(hp: Any, prefix: str, value: Any) -> Any:
    if isinstance(value, LogRange):
        # keras-tuner's "reverse_log" mirrors low..high, not 0..1: from 0.9 to 0.9999 it is all but uniform.
        return 1 - _declare_number(hp, f"{prefix}one_minus_beta_2", LogRange(1 - value.high, 1 - value.low))
    return _declare_number(hp, f"{prefix}beta_2", value)


def _decaying(decay: Callable[[float], float | LearningRateSchedule], rate: float) -> float | LearningRateSchedule:
    base = decay(rate)
    if warms_up(base):
        raise ValueError(f"`decay` must be without a warmup: two would multiply. Received: {type(base).__name__}")
    return base
