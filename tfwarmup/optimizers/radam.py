"""RAdam as the paper describes it: momentum steps, then Adam with a fixed warmup."""

from typing import Any

import keras
from keras.optimizers.schedules import LearningRateSchedule

from tfwarmup import checks, warmups
from tfwarmup.optimizers.adam import Adam
from tfwarmup.warmups import Warmup


@keras.saving.register_keras_serializable("tfwarmup")
class RAdam(Adam):
    """RAdam as `Adam` with RAdam's omega_t as its warmup, and its own first steps.

    While rho_t <= rho_threshold, which at the paper's 4 means t <= 4, `first_steps` decides what happens: "momentum" is
    RAdam itself (theta_t = theta_{t-1} - alpha m_t / (1 - beta_1^t)). The others are the paper's ablation: "nothing",
    "constant_adam" (Adam at omega_5), "linear_adam" (Adam, warmed up linearly to omega_5).

    Weight decay is decoupled and at the full rate, alpha * weight_decay * theta, as in the other implementations of
    RAdam.

    Args:
        learning_rate, beta_1, beta_2, epsilon, name, **kwargs: See `Adam`; beta_2 > 0.6, since below that rho_t
            never exceeds 4.
        first_steps: "momentum", "nothing", "constant_adam" or "linear_adam".
        rho_threshold: Where the momentum phase ends. 5.0 gives the five momentum steps of torch, optax and
            tensorflow-addons.

    >>> [round(float(RAdam(first_steps=rule).warmup_factor), 6) for rule in ("momentum", "constant_adam")]
    [0.0, 0.017312]

    Reference:
        [Liu et al., 2019](https://arxiv.org/abs/1908.03265),
        [Ma and Yarats, 2021](https://arxiv.org/abs/1910.04209)
    """

    warmup: warmups.Rectified
    _hidden = frozenset({"name", "warmup"})

    def __init__(
        self,
        learning_rate: float | LearningRateSchedule = 0.001,
        *,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        first_steps: str = "momentum",
        rho_threshold: float = 4.0,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        for option in ("warmup", "period", "initial", "share", "updates"):
            if kwargs.get(option) is not None:
                raise ValueError(
                    f"`RAdam` has its own warmup and takes no `{option}`: two would multiply. For another warmup "
                    f"use `tfwarmup.Adam`. Received: {option}={checks.shown(kwargs[option])}"
                )
        warmup = warmups.Rectified(checks.beta_2(beta_2), first_steps, rho_threshold)
        super().__init__(
            learning_rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, warmup=warmup, name=name, **kwargs
        )

    @property
    def first_steps(self) -> str:
        return self.warmup.first_steps

    @property
    def rho_threshold(self) -> float:
        return self.warmup.rho_threshold

    def fitted(self, warmup: Warmup, decay_after_warmup: bool | None = None) -> Warmup:
        if not isinstance(warmup, warmups.Rectified) or warmup.initial:
            raise ValueError(
                "`RAdam` has its own warmup, which can start again with other `first_steps`, but not change to another "
                f"warmup: for that, use `tfwarmup.Adam`. Received: {warmup!r}"
            )
        return super().fitted(warmup, decay_after_warmup)

    def get_config(self) -> dict[str, Any]:
        config = {**super().get_config(), "first_steps": self.first_steps, "rho_threshold": self.rho_threshold}
        del config["warmup"]
        return config

    def _decay(self, alpha: Any, warmed: Any) -> Any:
        return super()._decay(alpha, alpha)


keras.saving.get_custom_objects().update(radam=RAdam, RAdam=RAdam)  # for `compile("radam")`
