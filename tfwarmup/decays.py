"""A whole schedule in one call: warmup, plateau and a decay that ends with the run."""

from typing import Any

import keras
from keras.optimizers.schedules import CosineDecay, LearningRateSchedule, PolynomialDecay

from tfwarmup import checks, factors, warmups
from tfwarmup.schedules import WarmupSchedule, deserialized, registered, updates_after


@registered
class Plateau(LearningRateSchedule):
    """Holds the first rate of any schedule for a number of updates, then follows the schedule.

    >>> [float(Plateau(PolynomialDecay(1.0, 10, 0.0), updates=20)(step)) for step in (0, 20, 25)]
    [1.0, 1.0, 0.5]
    """

    def __init__(self, schedule: LearningRateSchedule, updates: float) -> None:
        super().__init__()
        self.schedule, self.updates = schedule, checks.not_negative("updates", updates)

    def __call__(self, step: Any) -> Any:
        return self.schedule(updates_after(step, self.updates))

    def get_config(self) -> dict[str, Any]:
        return {"schedule": keras.saving.serialize_keras_object(self.schedule), "updates": self.updates}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Plateau":
        return cls(**{**config, **deserialized(config, "schedule")})


@registered
class InverseSqrtDecay(LearningRateSchedule):
    """learning_rate sqrt(period / (period + step)), for a warmup of that period and `decay_after_warmup`.

    >>> float(InverseSqrtDecay(1.0, period=10)(30))
    0.5
    """

    def __init__(self, learning_rate: float, period: float) -> None:
        super().__init__()
        self.learning_rate = checks.not_negative("learning_rate", learning_rate)
        self.period = checks.positive("period", period)

    def __call__(self, step: Any) -> Any:
        return self.learning_rate * factors.inverse_sqrt(step, self.period)

    def get_config(self) -> dict[str, Any]:
        return {"learning_rate": self.learning_rate, "period": self.period}


def schedule(
    learning_rate: float,
    updates: int | None = None,
    warmup: Any = "untuned_linear",
    *,
    decay: str = "cosine",
    end: float = 0.0,
    decay_share: float = 0.2,
    steps_per_update: int = 1,
    **options: Any,
) -> WarmupSchedule:
    """Returns a schedule with a warmup, and a decay after it that ends with the run.

    Its parts are a warmup and schedules of Keras and this package: `schedule(...).learning_rate` is the decay.

    Args:
        learning_rate: The rate after the warmup, a number.
        updates: The number of updates of the run, see `updates_of`.
        warmup: A name of `tfwarmup.WARMUPS`, an object of `tfwarmup.warmups`, or a function of t.
        decay: "cosine", "linear", "wsd" (a plateau and a linear decay), "inverse_sqrt" or "constant".
        end: The rate of the last update, for "cosine", "linear" and "wsd".
        decay_share: The share of the run that the decay of "wsd" takes.
        steps_per_update: See `WarmupSchedule`.
        **options: Arguments of a warmup given by its name: `beta_2`, `period`, `share`, `initial`.

    >>> rate = schedule(1e-3, updates=10_000, warmup="linear", share=0.1, decay="wsd")
    >>> [round(float(rate(t - 1)), 6) for t in (500, 1000, 8000, 9000, 10_000)]
    [0.0005, 0.001, 0.001, 0.0005, 0.0]
    """
    rule = warmups.get(warmup, **options, **({"updates": updates} if options.get("share") is not None else {}))
    peak, updates = checks.positive("learning_rate", learning_rate), checks.integer("updates", updates, least=1)
    falling = updates * checks.positive("decay_share", decay_share) if decay == "wsd" else 0.0
    rest = updates - rule.length
    if rest <= 0 or rest < falling:
        raise ValueError(
            "Warmup and decay must fit in the run: `updates` must be larger, or the warmup shorter. Received: "
            f"updates={updates}, {rule!r} of {rule.length:g} updates, a decay of {falling:g} updates"
        )
    parts: dict[str, Any] = {
        "cosine": lambda: CosineDecay(peak, rest, alpha=end / peak),
        "linear": lambda: PolynomialDecay(peak, rest, end),
        "wsd": lambda: Plateau(PolynomialDecay(peak, falling, end), rest - falling),
        "inverse_sqrt": lambda: InverseSqrtDecay(peak, rule.length or 1.0),
        "constant": lambda: peak,
    }
    part = parts[checks.choice("decay", decay, parts)]
    if checks.not_negative("end", end) > (0.0 if decay in ("inverse_sqrt", "constant") else peak):
        rule_of_end = "`end` must be at most `learning_rate`, and 0 for inverse_sqrt and constant"
        raise ValueError(f"{rule_of_end}. Received: end={end}, learning_rate={peak}, decay={decay!r}")
    return WarmupSchedule(part(), rule, decay_after_warmup=decay != "constant", steps_per_update=steps_per_update)
