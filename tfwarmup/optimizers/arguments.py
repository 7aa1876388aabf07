"""Checks the arguments of the optimizers, and keeps those that a compiled train step holds from being changed."""

from typing import Any

from keras.optimizers.schedules import LearningRateSchedule

from tfwarmup import checks, warmups
from tfwarmup.distribution import refuse_conditional_updates
from tfwarmup.schedules import refuse_second_warmup, warmup_schedules
from tfwarmup.steps import Betas
from tfwarmup.warmups import Warmup

# Attributes of an optimizer that are set once, since a change would be saved but not reach a compiled train step.
READ_ONLY = {
    **dict.fromkeys(("beta_1", "beta_2", "epsilon", "decay_after_warmup"), "make a new optimizer"),
    **dict.fromkeys(("gradient_init", "clip_update_rms"), "make a new optimizer"),
    "warmup": "use `tfwarmup.restart_warmup(model, warmup)`",
}


def check_attribute(optimizer: Any, name: str, value: Any) -> None:
    if name in READ_ONLY and name in vars(optimizer):
        instead, received = READ_ONLY[name], f"{name}={checks.shown(value)}"
        raise AttributeError(f"`{name}` of an optimizer is read-only: {instead}. Received: {received}")


def checked_options(options: dict[str, Any]) -> dict[str, Any]:
    """Checks the arguments of every Keras optimizer, which Keras itself does not check."""
    checks.refuse_foreign(options)
    refuse_conditional_updates(options)
    decay = options.get("weight_decay")
    if decay is not None and not isinstance(decay, LearningRateSchedule):
        options = {**options, "weight_decay": checks.not_negative("weight_decay", decay)}
    for name in ("clipnorm", "clipvalue", "global_clipnorm", "loss_scale_factor"):
        if options.get(name) is not None:
            options = {**options, name: checks.positive(name, options[name])}
    if options.get("gradient_accumulation_steps") is not None:
        checks.integer("gradient_accumulation_steps", options["gradient_accumulation_steps"], least=2)
    return options


def check_schedules(rate: Any, warmup: Warmup, beta_2: float) -> None:
    """Refuses a second warmup, and a schedule for a beta_2 other than this optimizer's."""
    if not isinstance(warmup, warmups.NoWarmup):
        refuse_second_warmup(rate)
    for schedule in warmup_schedules(rate):
        schedule.warmup.with_beta_2(beta_2)


def checked_gradient_init(gradient_init: Any, beta_2: float, betas: Betas) -> bool:
    """Refuses a beta_2 that is too close to 1 for float32: with v_0 = g_1^2 it is a float32 tensor."""
    if checks.flag("gradient_init", gradient_init) and not betas.fused:
        raise ValueError(
            "`gradient_init` needs a `beta_2` that float32 holds to 2e-4 of 1 - beta_2, such as 0.9999. Received: "
            f"beta_2={beta_2}"
        )
    return bool(gradient_init)


def check_new_warmup(old: Warmup, new: Warmup) -> None:
    """Refuses a change to or from a dynamic warmup, whose variables are created when the optimizer is built."""
    if isinstance(old, warmups.Dynamic) != isinstance(new, warmups.Dynamic):
        raise ValueError(
            "A dynamic warmup must be given before the first update, `tfwarmup.Adam(rate, warmup='dynamic')`, and "
            f"can only be restarted as it is. Received: {new!r} instead of {old!r}"
        )
