"""Adds a warmup to an existing optimizer, or restarts it in the middle of training."""

from collections.abc import Callable
from typing import Any, TypeVar

from keras.optimizers.schedules import LearningRateSchedule

from tfwarmup import checks, compat, warmups
from tfwarmup.optimizers import Adam
from tfwarmup.schedules import WarmupSchedule, warms_up, warmup_schedules
from tfwarmup.warmups import Warmup

OptimizerT = TypeVar("OptimizerT")


def warm_up(
    optimizer: OptimizerT,
    warmup: Any = "untuned_linear",
    *,
    period: float | None = None,
    beta_2: float | None = None,
    decay_after_warmup: bool = False,
    **options: Any,
) -> OptimizerT:
    """Adds a warmup to an existing optimizer, in place, and returns the optimizer. Call it before `compile`.

    beta_2, the learning rate (or schedule) and the accumulation steps are read from the optimizer, also inside a
    `LossScaleOptimizer`. Each member of a `MultiOptimizer` gets the warmup for its own beta_2.

    The learning rate becomes a schedule, which Keras does not let callbacks set. With `ReduceLROnPlateau` or
    `LearningRateScheduler`, use `tfwarmup.Adam(rate, warmup=...)` instead: its learning rate stays a variable.

    Args:
        optimizer: Any Keras optimizer that has made no update yet. The untuned warmups and "radam" need an optimizer
            with a second moment, such as Adam.
        warmup: A name of `tfwarmup.WARMUPS`, an object of `tfwarmup.warmups`, or a function of t.
        period: The warmup period, for "linear" and "exponential" by name.
        beta_2: The discount factor of the second moment, for your own optimizer class.
        decay_after_warmup: Whether a decay in the learning rate waits for the warmup, and counts updates from its end.
        **options: Other arguments of a warmup given by its name, such as `initial`.

    >>> import keras
    >>> optimizer = warm_up(keras.optimizers.AdamW(1e-3, beta_2=0.98))
    >>> round(float(optimizer.learning_rate), 8)  # of the first of 2 / (1 - 0.98) = 100 updates
    1e-05
    """
    rule = warmups.get(warmup, period=period, **options)
    members = compat.checked_members(optimizer)
    # All are checked before the first is changed.
    for change in [_begin(member, rule, beta_2, decay_after_warmup) for member in members]:
        change()
    return optimizer


def restart_warmup(
    model: Any, warmup: Any = None, *, period: float | None = None, beta_2: float | None = None, **options: Any
) -> None:
    """Restarts the warmup of a compiled model at the next update: for fine-tuning, a new phase or a higher rate.

    The moments of the optimizer are kept. It also works from a callback during `fit`. In your own training loop, call
    `optimizer.restart_warmup()` of `tfwarmup.Adam` or `tfwarmup.RAdam`; with another optimizer, trace the train step
    again after `restart_warmup(model)`.

    Args:
        model: A compiled model. If its optimizer has no warmup yet, `warmup` must be given.
        warmup: See `warm_up`. By default, the warmup that the optimizer already has.
        period: See `warm_up`.
        beta_2: See `warm_up`.
        **options: See `warm_up`.

    >>> import keras
    >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> model.compile(warm_up(keras.optimizers.Adam(1e-3, beta_2=0.9)), loss="mse")
    >>> _ = model.fit(keras.ops.ones((40, 1)), keras.ops.ones((40, 1)), batch_size=1, verbose=0)
    >>> round(float(warmup_factor(model.optimizer)), 6)
    1.0
    >>> restart_warmup(model)
    >>> round(float(warmup_factor(model.optimizer)), 6)  # 1 of 20 updates
    0.05
    """
    if not hasattr(model, "make_train_function") or getattr(model, "optimizer", None) is None:
        raise ValueError(
            "`restart_warmup` needs a compiled model, since its train function must use the new warmup. "
            f"Received: {checks.shown(model)}"
        )
    given = {"period": period, "beta_2": beta_2, **options}
    if warmup is None and any(value is not None for value in given.values()):
        raise ValueError(f"These belong to a new warmup, which must be given. Received: warmup=None, {given}")
    rule = None if warmup is None else warmups.get(warmup, period=period, **options)
    compat.sync_state(model)
    for change in [_restart(member, rule, beta_2) for member in compat.checked_members(model.optimizer)]:
        change()
    if model.train_function is not None:
        model.make_train_function(force=True)


def warmup_factor(optimizer: Any) -> Any:
    """Returns omega_t, the warmup factor of an optimizer's next update; 1 without a warmup.

    The optimizer may be wrapped in a `LossScaleOptimizer`, as `compile` does under mixed_float16.

    >>> round(float(warmup_factor(Adam(1e-3, warmup="untuned_linear"))), 8)
    0.0005
    """
    members = compat.checked_members(optimizer)
    if len(members) > 1:
        raise ValueError(
            "`warmup_factor` needs an optimizer with one learning rate; ask each of `optimizer.optimizers`. Received: "
            f"{type(optimizer).__name__}"
        )
    factor: Any = 1.0
    for schedule in warmup_schedules(compat.learning_rate_of(members[0])):
        factor = factor * schedule.warmup_factor(compat.step_counter(members[0]))
    return factor * members[0].warmup_factor if isinstance(members[0], Adam) else factor


def _begin(optimizer: Any, rule: Warmup, beta_2: float | None, decay_after_warmup: bool) -> Callable[[], None]:
    """Returns a function that gives an optimizer its first warmup. Errors are raised here, before anything changes."""
    if compat.is_built(optimizer):
        raise ValueError(
            "`warm_up` needs an optimizer that has not been used: a train function that exists would not see the "
            "warmup. To warm up a model that has been trained or loaded, use `restart_warmup(model)`. Received: "
            f"{type(optimizer).__name__} after {compat.updates_made(optimizer)} updates"
        )
    _refuse_schedule_free(optimizer)
    if isinstance(optimizer, Adam) and not isinstance(optimizer.warmup, warmups.NoWarmup):
        raise ValueError(f"`warm_up` needs an optimizer without a warmup: two would multiply. Received: {optimizer!r}")
    rate = _rate(optimizer)
    fitted = _fitted(rule, optimizer, beta_2)
    if isinstance(optimizer, Adam):
        return _own_warmup(optimizer, fitted, decay_after_warmup)
    steps = compat.accumulation_steps(optimizer)
    schedule = WarmupSchedule(rate, fitted, decay_after_warmup=decay_after_warmup, steps_per_update=steps)
    return lambda: setattr(optimizer, "learning_rate", schedule)


def _own_warmup(optimizer: Adam, fitted: Warmup, decay_after_warmup: bool) -> Callable[[], None]:
    """The learning rate of this package's optimizers stays a variable, which callbacks can set."""
    new = optimizer.fitted(fitted, decay_after_warmup)

    def change() -> None:
        optimizer.__dict__["decay_after_warmup"] = decay_after_warmup
        if not isinstance(new, warmups.NoWarmup):
            optimizer.begin_warmup(new)

    return change


def _restart(optimizer: Any, rule: Warmup | None, beta_2: float | None) -> Callable[[], None]:
    """Returns a function that restarts the optimizer's warmup. Errors are raised here, before anything changes."""
    raw = compat.learning_rate_of(optimizer)
    old = raw if isinstance(raw, WarmupSchedule) else None
    own = optimizer.warmup if isinstance(optimizer, Adam) and not warms_up(raw) else None
    new = (own or getattr(old, "warmup", None)) if rule is None else _fitted(rule, optimizer, beta_2)
    if new is None or (own is not None and isinstance(new, warmups.NoWarmup)):
        raise ValueError(
            "`restart_warmup` needs an optimizer with a warmup, or a `warmup` for it. Received: "
            f"{type(optimizer).__name__} with learning_rate={checks.shown(raw)}, warmup={rule}"
        )
    if own is not None:
        return _own_warmup(optimizer, new, optimizer.decay_after_warmup)
    _refuse_schedule_free(optimizer)
    rate = _rate(optimizer) if old is None else old.learning_rate
    schedule = WarmupSchedule(
        rate,
        new,
        decay_after_warmup=old is not None and old.decay_after_warmup,
        steps_per_update=compat.accumulation_steps(optimizer),
        start=compat.updates_made(optimizer),
    )
    return lambda: setattr(optimizer, "learning_rate", schedule)


def _fitted(rule: Any, optimizer: Any, beta_2: float | None) -> Warmup:
    """The warmup with the beta_2 of its optimizer, if it needs one."""
    if not rule.needs_beta_2:
        if beta_2 is not None:
            raise ValueError(f"{rule!r} takes no `beta_2`. Received: beta_2={checks.shown(beta_2)}")
        return rule  # type: ignore[no-any-return]
    own = compat.second_moment_beta_2(optimizer)
    if own is None and beta_2 is None and rule.beta_2 is None:
        raise ValueError(
            "An untuned warmup needs the `beta_2` of the optimizer's second moment, which Adam, AdamW, Nadam, Lamb "
            "and Muon have. For your own optimizer, pass that number as `beta_2`; without a second moment, use "
            "warmup='linear' or 'exponential' with a `period`. Received: "
            f"optimizer={type(optimizer).__name__}"
        )
    for known in (own, beta_2):
        if known is not None:
            rule = rule.with_beta_2(checks.beta_2(known))
    return rule  # type: ignore[no-any-return]


def _rate(optimizer: Any) -> float | LearningRateSchedule:
    rate = compat.learning_rate_of(optimizer)
    if isinstance(rate, LearningRateSchedule):
        return rate
    if callable(rate):
        raise ValueError(
            "A warmup needs an optimizer whose learning rate is a number or a `LearningRateSchedule`. Received: "
            f"learning_rate={rate!r}"
        )
    return float(optimizer.get_config()["learning_rate"])


def _refuse_schedule_free(optimizer: Any) -> None:
    if "ScheduleFreeAdamW" in [cls.__name__ for cls in type(optimizer).__mro__]:
        raise ValueError(
            "Keras' `ScheduleFreeAdamW` must be used at a constant rate: it averages all iterates with the same "
            "weight, so that those of a warmup count fully, where its authors weight them by the squared rate. Use "
            f"AdamW with a warmup and a decay instead. Received: {type(optimizer).__name__}"
        )
