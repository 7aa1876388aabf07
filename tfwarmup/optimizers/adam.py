"""Adam as defined in the paper, with a warmup inside the update."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import keras
from keras.optimizers.schedules import LearningRateSchedule

from tfwarmup import checks, compat, formula, warmups
from tfwarmup.compat import Optimizer, ops
from tfwarmup.distribution import let_replicas_agree, summed_over_replicas
from tfwarmup.optimizers.arguments import (
    check_attribute,
    check_new_warmup,
    check_schedules,
    checked_gradient_init,
    checked_options,
)
from tfwarmup.optimizers.watching import UpdateWatch
from tfwarmup.schedules import checked_decay, checked_rate, deserialized, updates_after
from tfwarmup.steps import (
    Betas,
    Scalars,
    dense,
    not_compiled,
    on_host,
    rounded_betas,
    step,
    step_together,
    update_excess,
)
from tfwarmup.steps.clipping import slowed
from tfwarmup.warmups import Warmup
from tfwarmup.warmups.dynamic import Reached


class _Numbers(NamedTuple):
    """The numbers of an update that are the same for every variable."""

    scalars: Scalars
    betas: Betas
    unbiased: Any  # 1 - beta_2^t, for `clip_update_rms`


@keras.saving.register_keras_serializable("tfwarmup")
class Adam(Optimizer):
    """Adam as in equations 2 to 4 of the paper, with an optional warmup inside the update.

        m_t = beta_1 m_{t-1} + (1 - beta_1) g_t
        v_t = beta_2 v_{t-1} + (1 - beta_2) g_t^2
        theta_t = theta_{t-1} - omega_t alpha [m_t / (1 - beta_1^t)] / [sqrt(v_t / (1 - beta_2^t)) + epsilon]

    `epsilon` is added after the bias correction (Keras' Adam adds it before: "epsilon hat"). Weight decay is decoupled:
    theta also loses `omega_t * alpha * weight_decay * theta`.

    Because omega_t is applied inside the update, `learning_rate` stays a variable: `ReduceLROnPlateau` and
    `LearningRateScheduler` work together with the warmup. The warmup counts updates, whatever
    `gradient_accumulation_steps` is. Under `tf.distribute`, gradients are summed over replicas before they are clipped.

    Args:
        learning_rate: A number, or a `LearningRateSchedule`.
        beta_1: The discount of the first moment, in [0, 1).
        beta_2: The discount of the second moment, in (0, 1).
        epsilon: The paper's epsilon, >= 0.
        warmup: A name of `tfwarmup.WARMUPS`, an object of `tfwarmup.warmups`, a function of t, or `None`. Untuned
            warmups get this optimizer's `beta_2`.
        period: The warmup period, for "linear" and "exponential" by name. Whatever else the warmup takes can be given
            in the same way: `Adam(warmup="untuned_linear", initial=0.1)`, or a share of the run instead of a period:
            `Adam(warmup="linear", share=0.05, updates=10_000)`.
        decay_after_warmup: Whether a schedule in `learning_rate` waits for the warmup: it is then called with the
            number of updates since the warmup's end.
        gradient_init: Whether v_0 is g_1^2 instead of 0, with the bias correction kept (GI-Adam). The first update is
            then sqrt(1 - beta_2) alpha for every parameter, and the effect is about that of warmup "root".
        clip_update_rms: Whether the rate of each variable is divided by max(1, RMS(g_t / sqrt(v_t / (1 - beta_2^t)))),
            its weight decay included (StableAdamW). This damps gradients that are larger than usual.
        name: The optimizer's name.
        **kwargs: Arguments of every Keras optimizer: `weight_decay` (also a schedule), `clipnorm`, `clipvalue`,
            `global_clipnorm`, `use_ema`, `ema_momentum`, `ema_overwrite_frequency`, `loss_scale_factor`,
            `gradient_accumulation_steps`.

    >>> optimizer = Adam(1e-3, warmup="untuned_linear")
    >>> round(float(optimizer.warmup_factor), 8), round(optimizer.get_config()["learning_rate"], 8)
    (0.0005, 0.001)

    Reference:
        [Ma and Yarats, 2021](https://arxiv.org/abs/1910.04209);
        GI-Adam: [Kalra and Barkeshli, 2024](https://arxiv.org/abs/2406.09405);
        StableAdamW: [Wortsman et al., 2023](https://arxiv.org/abs/2304.13013)
    """

    warmup: Warmup
    _hidden: frozenset[str] = frozenset({"name"})  # from `repr`

    # By position, `Adam(1e-3, 0.004)` would turn the weight decay of a Keras `AdamW(1e-3, 0.004)` into beta_1.
    def __init__(
        self,
        learning_rate: float | LearningRateSchedule = 0.001,
        *,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        warmup: Any = None,
        period: float | None = None,
        decay_after_warmup: bool = False,
        gradient_init: bool = False,
        clip_update_rms: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        rate, beta_2 = checked_rate(learning_rate), checks.beta_2(beta_2)
        of_warmup, options = warmups.split_options(checked_options(kwargs))
        rule = warmups.get("none" if warmup is None else warmup, period=period, **of_warmup).with_beta_2(beta_2)
        decay_waits = checked_decay(decay_after_warmup, rate, rule)
        check_schedules(rate, rule, beta_2)
        super().__init__(learning_rate=rate, name=name, **options)
        self.beta_1 = checks.fraction("beta_1", beta_1)
        self.beta_2 = beta_2
        self.epsilon = checks.not_negative("epsilon", epsilon)
        self.warmup = rule
        self.decay_after_warmup = decay_waits
        # The number of updates made before the warmup began. A variable, so that it is saved, and so that a train
        # function that was compiled before a restart sees it.
        self.warmup_start = self.add_variable(shape=(), initializer="zeros", dtype="int", name="warmup_start")
        self._betas = betas = rounded_betas(self.beta_1, beta_2)
        self.gradient_init = checked_gradient_init(gradient_init, beta_2, betas)
        self.clip_update_rms = checks.flag("clip_update_rms", clip_update_rms)
        self._moments_being_added = False
        self._watch: UpdateWatch | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        check_attribute(self, name, value)
        super().__setattr__(name, value)

    def build(self, variables: Sequence[Any]) -> None:
        """Creates the two moments of every variable, in float32 for half-precision variables."""
        if self.built:
            return
        let_replicas_agree()
        super().build(variables)
        with self._adding_moments():
            self._momentums, self._velocities = self.add_slots(variables, ["momentum", "velocity"])
        if isinstance(self.warmup, warmups.Dynamic) and variables:
            self._watch = UpdateWatch(self, self.warmup)

    def add_variable(self, shape: Any, initializer: Any = "zeros", dtype: Any = None, **kwargs: Any) -> Any:
        # In float16 the second moment of a gradient below 2e-4 is zero, and in bfloat16 it cannot change by 0.1 %.
        if getattr(self, "_moments_being_added", False) and dtype in ("float16", "bfloat16"):
            dtype = "float32"
        return super().add_variable(shape, initializer, dtype, **kwargs)

    @property
    def learning_rate(self) -> Any:
        """alpha of the next update, without the warmup factor."""
        if not self.decay_after_warmup:
            return super().learning_rate
        return self._decayed(self._update_of_warmup)

    @learning_rate.setter
    def learning_rate(self, learning_rate: Any) -> None:
        if callable(learning_rate):
            check_schedules(checked_rate(learning_rate), self.warmup, self.beta_2)
        Optimizer.learning_rate.fset(self, learning_rate)

    @property
    def warmup_factor(self) -> Any:
        """omega_t of the next update."""
        if not isinstance(self.warmup, warmups.Dynamic):
            return self.warmup(self._update_of_warmup)
        return self.warmup.first_factor if self._watch is None else self._watch.factor

    @property
    def warmup_done_at(self) -> int | None:
        """The first update at the full rate after a dynamic warmup; `None` before that, and for other warmups."""
        return None if self._watch is None else int(compat.number(self._watch.done_at)) or None

    @property
    def applied_factor(self) -> float | None:
        """omega_t of the last update of a dynamic warmup, which is not a function of t; `None` for other warmups."""
        return None if self._watch is None else compat.number(self._watch.applied_factor)

    def restart_warmup(self, warmup: Any = None, **options: Any) -> None:
        """Restarts the warmup at the next update. The moments are kept.

        A train function that is already compiled sees the restart, because only a variable changes. To change to
        another `warmup`, use `tfwarmup.restart_warmup(model, warmup)`, which compiles again; here a warning says so.

        Args:
            warmup: See `Adam`. By default, the warmup that the optimizer already has.
            **options: Arguments of a new warmup that is given by its name, such as `period`.
        """
        if warmup is None and options:
            raise ValueError(f"These belong to a new warmup, which must be given. Received: warmup=None, {options}")
        new = self.warmup if warmup is None else self.fitted(warmups.get(warmup, **options))
        if isinstance(new, warmups.NoWarmup):
            raise ValueError(f"`restart_warmup` needs an optimizer with a warmup. Received: {self!r}, warmup={warmup}")
        if self.built and new != self.warmup and on_host is None:
            checks.warn(
                "A train step that is compiled already goes on with the old warmup: use `tfwarmup.restart_warmup("
                f"model, warmup)`, or compile your own step again. Received: {new!r} instead of {self.warmup!r}"
            )
        self.begin_warmup(new)

    def begin_warmup(self, new: Warmup) -> None:
        """Starts a warmup that is known to fit at the next update."""
        self.__dict__["warmup"] = new
        if self._watch is not None:
            self._watch.restart()
        self.warmup_start.assign(compat.next_update(self) - 1)

    def fitted(self, warmup: Warmup, decay_after_warmup: bool | None = None) -> Warmup:
        """Returns the warmup with this optimizer's beta_2; raises an error if the optimizer cannot change to it."""
        new, rate = warmup.with_beta_2(self.beta_2), compat.learning_rate_of(self)
        if self.built:
            check_new_warmup(self.warmup, new)
        checked_decay(self.decay_after_warmup if decay_after_warmup is None else decay_after_warmup, rate, new)
        check_schedules(rate, new, self.beta_2)
        return new

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        # Adam updates every row at every update, including rows that a sparse gradient lacks; and clipping needs the
        # norm of the summed rows, over all replicas.
        variables = compat.variables_of(self) if trainable_variables is None else list(trainable_variables)
        full = [dense(gradient, variable) for gradient, variable in zip(grads, variables, strict=False)]
        # Keras raises the error for too many or too few gradients.
        super().apply(summed_over_replicas([*full, *grads[len(full) :]]), trainable_variables)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        numbers = learning_rate if isinstance(learning_rate, _Numbers) else self._next_numbers(learning_rate)
        scalars, betas = numbers.scalars, numbers.betas
        if not self.uses_weight_decay(variable):
            scalars = scalars._replace(decay=None)
        index = compat.variable_index(self, variable)
        m, v = self._momentums[index], self._velocities[index]
        if self.clip_update_rms:
            scalars = slowed(scalars, update_excess(gradient, v, betas, numbers.unbiased, scalars.epsilon))
        step(self, variable, m, v, gradient, betas, scalars)

    def get_config(self) -> dict[str, Any]:
        config = {
            **super().get_config(),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "warmup": keras.saving.serialize_keras_object(self.warmup),
            "decay_after_warmup": self.decay_after_warmup,
            "gradient_init": self.gradient_init,
            "clip_update_rms": self.clip_update_rms,
        }
        if isinstance(self.weight_decay, LearningRateSchedule):
            config["weight_decay"] = keras.saving.serialize_keras_object(self.weight_decay)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> "Adam":
        with keras.saving.CustomObjectScope(custom_objects or {}):
            return cls(**{**config, **deserialized(config, "learning_rate", "warmup", "weight_decay")})

    @classmethod
    def from_keras(cls, optimizer: Any, **options: Any) -> "Adam":
        """Returns an optimizer that goes on where Keras' Adam or AdamW is, also in the middle of training.

        Learning rate, step, moments and all options are taken over. Only the place of epsilon differs. Pass the
        result to `compile` again. A warmup, if there is one, begins at the next update.

        Args:
            optimizer: `keras.optimizers.Adam` or `AdamW`, also of a loaded model or inside a `LossScaleOptimizer`.
            **options: Arguments of this class that replace those of the optimizer.

        >>> Adam.from_keras(keras.optimizers.AdamW(1e-3, beta_2=0.98), warmup="untuned_linear")
        Adam(learning_rate=0.001, weight_decay=0.004, beta_2=0.98, warmup=UntunedLinear(beta_2=0.98))
        """
        old = compat.unwrapped(optimizer)
        if not isinstance(old, keras.optimizers.Adam) or old.amsgrad:
            received = checks.shown(optimizer)
            raise ValueError(f"`from_keras` needs Keras' Adam or AdamW, without AMSGrad. Received: {received}")
        rate = compat.learning_rate_of(old)
        rate = rate if callable(rate) else compat.number(rate)
        own = {name: getattr(old, name) for name in checks.defaults(cls).keys() - {"name"} if hasattr(old, name)}
        new = cls(**own | {"learning_rate": rate} | options)
        compat.take_over(new, old)
        if not isinstance(new.warmup, warmups.NoWarmup):
            new.begin_warmup(new.warmup)
        return new

    def __repr__(self) -> str:
        options = {name: getattr(self, name) for name in checks.defaults(type(self)) if hasattr(self, name)}
        warmup = None if isinstance(self.warmup, warmups.NoWarmup) else self.warmup
        options |= {"learning_rate": compat.known_rate(self), "warmup": warmup}
        return checks.as_call(self, {name: value for name, value in options.items() if name not in self._hidden})

    def scalars(self, learning_rate: Any, t: Any, warmup_start: Any = 0, factor: Any = None) -> Scalars:
        """The scalars of update t: floats, or float32 tensors if t is a tensor."""
        numbers = self.update_numbers(learning_rate, t, warmup_start, factor)
        scalars = Scalars(numbers.rate, numbers.epsilon, self._decay(learning_rate, numbers.warmed))
        if isinstance(t, float):
            return Scalars(*(None if number is None else float(number) for number in scalars))
        return scalars

    def update_numbers(self, alpha: Any, t: Any, warmup_start: Any = 0, factor: Any = None) -> formula.Update:
        """The paper's formula with this optimizer's hyperparameters; `factor` is omega_t of a dynamic warmup."""
        rule = self.warmup if factor is None else Reached(factor)
        return formula.update(alpha, t, rule, self._betas.first, self._betas.second, self.epsilon, warmup_start)

    def rate_at(self, t: int) -> Any:
        """alpha of update t = 1, 2, 3, ..., without the warmup factor."""
        if self.decay_after_warmup:
            return self._decayed(t - int(compat.number(self.warmup_start)))
        return compat.rate_at(self, t)

    def _decayed(self, update_of_warmup: Any) -> Any:
        return compat.learning_rate_of(self)(updates_after(update_of_warmup, self.warmup.length))

    @property
    def _update_of_warmup(self) -> Any:
        """The next update, counted from the start of the warmup."""
        return compat.next_update(self) - ops.convert_to_tensor(self.warmup_start)

    def _next_scalars(self, learning_rate: Any) -> Scalars:
        numbers = [learning_rate, compat.next_update(self), self.warmup_start]
        if self._watch is not None:
            numbers.append(self._watch.factor)
        if on_host is not None:
            return self.scalars(*on_host(*numbers))
        return self.scalars(*(ops.cast(number, "float32") for number in numbers))

    def _next_numbers(self, learning_rate: Any) -> _Numbers:
        scalars = self._next_scalars(learning_rate)
        if not (self.gradient_init or self.clip_update_rms):
            return _Numbers(scalars, self._betas, None)
        t: Any = compat.next_update(self)
        t = ops.cast(t, "float32") if on_host is None else on_host(t)[0]
        betas = self._betas
        if self.gradient_init:
            # At the first update v_1 = g_1^2, as with beta_2 = 0.
            remembers = t > 1 if on_host is not None else ops.cast(t > 1, "float32")
            betas = betas._replace(second=betas.second * remembers)
        return _Numbers(scalars, betas, formula.one_minus_power(self._betas.second, t))

    def _decay(self, alpha: Any, warmed: Any) -> Any:
        """The fraction of a variable that weight decay removes; it is warmed up, as with a warmup schedule."""
        return None if self.weight_decay is None else warmed * self._weight_decay_now()

    def _weight_decay_now(self) -> Any:
        if not isinstance(self.weight_decay, LearningRateSchedule):
            return self.weight_decay
        decay = self.weight_decay(compat.step_counter(self))
        return decay if on_host is None else on_host(decay)[0]

    @not_compiled
    def update_variables(self, grads: Any, variables: Any, learning_rate: Any) -> None:
        numbers = self._next_numbers(learning_rate)
        self._update_all(grads, variables, numbers)
        if self._watch is not None:
            self._watch.observe(grads, variables)

    def _update_all(self, grads: Any, variables: Any, numbers: _Numbers) -> None:
        if step_together is None or self.clip_update_rms:
            # The numbers are the same for every variable: they are computed once and passed on as the learning rate.
            super().update_variables(grads, variables, numbers)
            return
        places = [compat.variable_index(self, variable) for variable in variables]
        momentums, velocities = (
            [moments[place] for place in places] for moments in (self._momentums, self._velocities)
        )
        are_decayed = [self.uses_weight_decay(variable) for variable in variables]
        step_together(variables, momentums, velocities, grads, are_decayed, numbers.betas, numbers.scalars)

    @contextlib.contextmanager
    def _adding_moments(self) -> Iterator[None]:
        self._moments_being_added = True
        try:
            yield
        finally:
            self._moments_being_added = False
