"""Every use of Keras' private names and every difference between its versions, so that other modules need neither.

Tested with Keras 3.3 and TensorFlow 2.16, Keras 3.6 and 2.18, Keras 3.9 and 2.19, Keras 3.15 and 2.21
(`make test-versions`).

Keras 2.15 is supported for tensorflow-addons (`make test-addons`): the factors and the schedules work with any of its
optimizers. The optimizers of this package need Keras 3 and raise an error.
"""

import functools
import inspect
import re
import types
from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras.optimizers.schedules import LearningRateSchedule

from tfwarmup import checks

VERSIONS = "Keras 3.3 or newer, or Keras 2.15 for the schedules with tensorflow-addons"


def check_version(version: str) -> None:
    """Refuses a version of Keras that this package does not work with.

    >>> check_version("3.3.3")
    >>> check_version("3.2.1")
    Traceback (most recent call last):
    ImportError: tfwarmup needs Keras 3.3 or newer, or Keras 2.15 for the schedules with tensorflow-addons. Received: \
Keras 3.2.1
    """
    numbers = re.match(r"(\d+)\.(\d+)", version)
    major, minor = map(int, numbers.groups()) if numbers else (0, 0)
    if (major, minor) != (2, 15) and not (major == 3 and minor >= 3):
        raise ImportError(f"tfwarmup needs {VERSIONS}. Received: Keras {version}")


check_version(keras.__version__)
_BEFORE_3_5 = keras.__version__.startswith(("2.", "3.3.", "3.4."))


ops: Any
Optimizer: Any

if keras.__version__.startswith("2."):
    import tensorflow as tf

    # The few names of `keras.ops` that the factors and the schedules use.
    ops = types.SimpleNamespace(
        cast=tf.cast,
        where=tf.where,
        minimum=tf.minimum,
        maximum=tf.maximum,
        sqrt=tf.sqrt,
        expm1=tf.math.expm1,
        ones_like=tf.ones_like,
        zeros_like=tf.zeros_like,
    )

    class _OptimizerNeedsKeras3:
        """Takes the place of the class below, so that the other modules can be imported with Keras 2."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            raise RuntimeError(
                f"`tfwarmup.{type(self).__name__}` needs Keras 3.3 or newer. Received: Keras "
                f"{keras.__version__}. In this environment pass a schedule, such as `tfwarmup.UntunedLinearWarmup`, "
                "to an optimizer of Keras or tensorflow-addons; `tfa.optimizers.RectifiedAdam` is its RAdam."
            )

    Optimizer = _OptimizerNeedsKeras3

else:
    ops = keras.ops

    class _Keras3Optimizer(keras.optimizers.Optimizer):
        """Keras' `Optimizer` with public names for its hooks, which behave the same in every version.

        Weight decay is left to `update_step`, which knows the rate of the update: see `uses_weight_decay`. Gradients
        must be summed over the replicas before they are passed to `apply`.
        """

        def add_slots(self, variables: Sequence[Any], names: Sequence[str]) -> list[list[Any]]:
            """Creates a list of variables per name: one per variable of the model, or `None` if it is not updated."""
            slots: list[list[Any]] = [[] for _ in names]
            for variable in variables:
                # The scales of float8 are overwritten with their gradient.
                overwritten = getattr(variable, "overwrite_with_gradient", False)
                for name, slot in zip(names, slots, strict=True):
                    slot.append(None if overwritten else self.add_variable_from_reference(variable, name=name))
            return slots

        def update_variables(self, grads: Sequence[Any], variables: Sequence[Any], learning_rate: Any) -> None:
            """Updates all variables, by default with an `update_step` for each. The gradients are already clipped."""
            super()._backend_update_step(grads, variables, learning_rate)

        def uses_weight_decay(self, variable: Any) -> bool:
            """Whether weight decay applies to the variable: see `exclude_from_weight_decay`."""
            return self.weight_decay is not None and bool(self._use_weight_decay(variable))

        def _backend_update_step(self, grads: Any, trainable_variables: Any, learning_rate: Any) -> None:
            if _BEFORE_3_5 and self.gradient_accumulation_steps:
                grads = super()._clip_gradients(grads)
            self.update_variables(grads, trainable_variables, learning_rate)

        def _clip_gradients(self, grads: Any) -> Any:
            # Before 3.5 Keras clips each micro-batch. Here, as from 3.5 on, their mean is clipped when it is applied.
            return grads if _BEFORE_3_5 and self.gradient_accumulation_steps else super()._clip_gradients(grads)

        def _apply_weight_decay(self, variables: Any) -> None:
            """Does nothing: the decay is part of the update."""

        def _all_reduce_sum_gradients(self, grads_and_vars: Any) -> Any:
            """Does nothing: `apply` gets gradients that are already summed over the replicas."""
            return grads_and_vars

    Optimizer = _Keras3Optimizer


def accumulation_steps(optimizer: Any) -> int:
    """The number of micro-batches per update."""
    return int(getattr(optimizer, "gradient_accumulation_steps", None) or 1)


def step_counter(optimizer: Any) -> Any:
    """The variable whose value Keras passes to a schedule: it counts micro-batches, from 0."""
    return optimizer.iterations if _BEFORE_3_5 else optimizer._iterations


def next_update(optimizer: Any) -> Any:
    """t of the next update, as a tensor. Before 3.5 `iterations` counts micro-batches."""
    return step_counter(optimizer) // accumulation_steps(optimizer) + 1


def updates_made(optimizer: Any) -> int:
    """The number of updates of the weights; skipped steps and accumulated micro-batches do not count."""
    optimizer = unwrapped(optimizer)
    return int(number(step_counter(optimizer))) // accumulation_steps(optimizer)


def adam_step(optimizer: Any, t: int) -> int:
    """The step in the bias correction of Keras' own Adam at update t: before 3.5, it counts micro-batches."""
    return t * accumulation_steps(optimizer) if _BEFORE_3_5 else t


def has_one_learning_rate(optimizer: Any) -> bool:
    return hasattr(optimizer, "_learning_rate") and not hasattr(optimizer, "optimizers")


def learning_rate_of(optimizer: Any) -> Any:
    """The variable or schedule behind `learning_rate`, which is only its current value."""
    # In Keras 2's legacy optimizers, and so in tensorflow-addons, `learning_rate` is the schedule itself.
    rate = getattr(optimizer, "_learning_rate", None)
    return optimizer.learning_rate if rate is None else rate


def variables_of(optimizer: Any) -> list[Any]:
    """The variables that an optimizer updates; empty before it is built."""
    return list(optimizer._trainable_variables)


def variable_index(optimizer: Any, variable: Any) -> int:
    """The index of a model's variable in the optimizer's lists."""
    return int(optimizer._get_variable_index(variable))


def chosen(condition: Any, if_true: Callable[[], Any], if_false: Callable[[], Any]) -> Any:
    """`keras.ops.cond` that calls one of the functions only, where the condition is known already.

    Outside of a compiled function JAX would compile both of them at every call.
    """
    try:
        is_true = bool(condition)
    except TypeError:  # a tensor of a function that is being compiled
        return ops.cond(condition, if_true, if_false)
    return if_true() if is_true else if_false()


def tensors_of(variables: Sequence[Any]) -> list[Any]:
    """The tensors of Keras' variables.

    The public property `value` looks for active scopes first. For 200 variables and their moments that takes as long as
    their update on torch, so only the first is read that way.
    """
    if variables[0].value is variables[0]._value:
        return [variable._value for variable in variables]
    return [variable.value for variable in variables]


def first_moments(optimizer: Any) -> list[Any]:
    """The first moments of a built Adam-like optimizer, one per variable of the model."""
    return list(optimizer._momentums)


def second_moments(optimizer: Any) -> list[Any]:
    return list(optimizer._velocities)


def clipped(optimizer: Any, gradients: Sequence[Any]) -> list[Any]:
    """Gradients as the optimizer clips them."""
    return list(optimizer._clip_gradients([ops.convert_to_tensor(gradient) for gradient in gradients]))


def largest_second_moments(optimizer: Any) -> list[Any]:
    """The maxima of the second moments so far, of an optimizer with `amsgrad=True`."""
    return list(optimizer._velocity_hats)


def nadam_product(optimizer: Any) -> float:
    """The product of all discounts of the first moment that Nadam has used."""
    return number(optimizer._u_product)


def take_over(new: Any, old: Any) -> None:
    """Copies what an optimizer excludes from weight decay into another and, if it is built, its state."""
    for name in ("_exclude_from_weight_decay", "_exclude_from_weight_decay_pattern"):
        if hasattr(old, name):
            setattr(new, name, getattr(old, name))
    if not old.built:
        return
    new.build(variables_of(old))
    as_before = accumulation_steps(new) == accumulation_steps(old)
    steps = number(step_counter(old)) if as_before else updates_made(old) * accumulation_steps(new)
    step_counter(new).assign(int(steps))
    sources = {name: getattr(old, name) for name in ("_momentums", "_velocities")}
    # Averages that begin now begin at the weights. With other micro-batches, those of half an update are left out.
    sources["_model_variables_moving_average"] = getattr(old, "_model_variables_moving_average", variables_of(old))
    sources["_accumulated_gradients"] = getattr(old, "_accumulated_gradients", []) if as_before else []
    for name, source in sources.items():
        for target, value in zip(getattr(new, name, []), source, strict=False):
            if target is not None:
                target.assign(ops.copy(value))  # JAX would share the memory, and a train step give it away


def built_in_optimizers(*names: str) -> tuple[type, ...]:
    """The optimizers among `names` that this version of Keras has: `Lamb` came with 3.5.

    >>> [cls.__name__ for cls in built_in_optimizers("Adam", "AdamOfTheYear3000")]
    ['Adam']
    """
    return tuple(getattr(keras.optimizers, name) for name in names if hasattr(keras.optimizers, name))


def weights_exist(model: Any) -> bool:
    """Whether every layer of a model is built."""
    return all(layer.built for layer in model._flatten_layers())


def training_output(model: Any, x: Any) -> Any:
    """The model's output for x in a training step."""
    return model(x, training=True) if model._call_has_training_arg else model(x)


def training_loss(model: Any, x: Any, y: Any, y_pred: Any, weight: Any) -> Any:
    """The loss of a training step. From 3.4 on `compute_loss` takes `training`, unless the user overrides it."""
    if hasattr(model, "_compute_loss"):
        return model._compute_loss(x, y, y_pred, weight, training=True)
    return model.compute_loss(x, y, y_pred, weight)


def is_optimizer(value: Any) -> bool:
    """Whether a value is a Keras optimizer: in Keras 2 also a legacy one, as in tensorflow-addons."""
    older = getattr(keras.optimizers, "legacy", None)
    return isinstance(value, (keras.optimizers.Optimizer, getattr(older, "Optimizer", keras.optimizers.Optimizer)))


def checked_members(optimizer: Any) -> list[Any]:
    """The members of what must be an optimizer."""
    if not is_optimizer(optimizer):
        raise ValueError(f"`optimizer` must be a Keras optimizer. Received: {checks.shown(optimizer)}")
    return members(optimizer)


def members(optimizer: Any) -> list[Any]:
    """The optimizers that update variables: the one inside a `LossScaleOptimizer`, or all of a `MultiOptimizer`."""
    optimizer = unwrapped(optimizer)
    if type(optimizer).__name__ != "MultiOptimizer":
        return [optimizer]
    if optimizer.built:
        return list(optimizer.optimizers)
    chosen = optimizer._optimizer_map
    if not hasattr(chosen, "default_optimizer"):
        raise ValueError(
            "The members of a `MultiOptimizer` must be known: pass it an `OptimizerMap`, or handle each optimizer that "
            f"your function returns separately. Received: optimizer_map={chosen!r}"
        )
    return list({id(member): member for member in (chosen.default_optimizer, *chosen.values())}.values())


def number(variable: Any) -> float:
    """The value of a variable or tensor as a Python number, in any version of Keras."""
    return float(variable.numpy() if keras.__version__.startswith("2.") else ops.convert_to_numpy(variable))


def unwrapped(optimizer: Any) -> Any:
    """The optimizer without its `LossScaleOptimizer`."""
    while getattr(optimizer, "inner_optimizer", None) is not None:
        optimizer = optimizer.inner_optimizer
    return optimizer


def is_built(optimizer: Any) -> bool:
    """Whether the optimizer is built, and may already be part of a compiled function."""
    built = getattr(optimizer, "built", None)  # the optimizers of tensorflow-addons have none
    return updates_made(optimizer) > 0 if built is None else bool(built)


def rate_at(optimizer: Any, t: int) -> Any:
    """The learning rate that the optimizer gets at update t; a schedule is called as Keras calls it."""
    rate = learning_rate_of(optimizer)
    if isinstance(rate, LearningRateSchedule):
        return rate(last_step(optimizer, t))
    return rate() if callable(rate) else rate


def scheduled_rates(schedule: LearningRateSchedule, steps: Sequence[int]) -> list[float]:
    """The rates of a schedule, called as Keras calls it, with an integer variable; none if it cannot be called so."""
    try:
        counter = keras.Variable(0, dtype="int", trainable=False, name="step")
        rates = []
        for step in steps:
            counter.assign(step)
            rates.append(number(ops.convert_to_tensor(schedule(counter))))
    except Exception:  # in a user's own code, in Keras 2, or inside of a compiled function
        return []
    return rates


def last_step(optimizer: Any, t: int) -> int:
    """The step that Keras passes to the schedule at update t."""
    return t * accumulation_steps(optimizer) - 1


def known_rate(optimizer: Any) -> Any:
    """The learning rate as it was given: a schedule or a number, or the variable where it has no value."""
    rate = learning_rate_of(optimizer)
    try:
        return rate if isinstance(rate, LearningRateSchedule) else float(f"{number(rate):.6g}")
    except Exception:  # inside a graph
        return rate


def callbacks_of_fit() -> list[Any]:
    """All callbacks of the `fit` that calls this one, from the stack, because Keras does not tell a callback."""
    frame = inspect.currentframe()
    while frame is not None and not isinstance(frame.f_locals.get("self"), keras.callbacks.CallbackList):
        frame = frame.f_back
    return [] if frame is None else list(frame.f_locals["self"].callbacks)


def sync_state(model: Any) -> None:
    """On JAX, updates the variables of a model in the middle of `fit`, and makes `fit` read them again."""
    if hasattr(model, "jax_state_sync"):
        model.jax_state_sync()


# The optimizers of Keras and tensorflow-addons with a second moment, and their name for its discount factor. The beta_2
# of Lion is the discount factor of its momentum, that of Adamax the discount factor of a maximum.
_BETA_2 = dict.fromkeys(("Adam", "Nadam", "Lamb", "ScheduleFreeAdamW", "LAMB", "RectifiedAdam"), "beta_2")
_BETA_2["Muon"] = "adam_beta_2"
_WITHOUT_SECOND_MOMENT = ("Lion", "Adamax", "AdaMax")


def second_moment_beta_2(optimizer: Any) -> float | None:
    """The discount factor of an optimizer's second moment, also for subclasses; `None` if it is not known."""
    for cls in type(optimizer).__mro__:
        if cls.__name__ in _WITHOUT_SECOND_MOMENT:
            return None
        if (name := _BETA_2.get(cls.__name__)) is not None:
            # Not the config of an optimizer that has the attribute: its learning rate may be no object that has one.
            return float(vars(optimizer)[name] if name in vars(optimizer) else optimizer.get_config()[name])
    return None


def sums_first(optimizer: Any) -> bool:
    """Whether an optimizer sums its gradients over the replicas before anything else."""
    return isinstance(optimizer, Optimizer) or getattr(optimizer, "_tfwarmup_sums_first", False)


def sum_before_apply(optimizer: Any, summed: Callable[[Sequence[Any]], list[Any]]) -> None:
    """Makes an optimizer sum its gradients before anything else, unless it already does."""
    if sums_first(optimizer):
        return
    apply = optimizer.apply

    def apply_summed(grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        apply(summed(grads), trainable_variables)

    optimizer._all_reduce_sum_gradients = lambda grads_and_vars: grads_and_vars
    optimizer.apply = apply_summed
    optimizer._tfwarmup_sums_first = True


def let_all_replicas_check() -> None:
    """Makes every `LossScaleOptimizer` check on all replicas whether the gradients are finite.

    Keras checks only the first replica, as if the gradients were already summed. The class itself is patched, because
    the `LossScaleOptimizer` of a model is created inside `compile`, out of reach.
    """
    cls = keras.optimizers.LossScaleOptimizer
    check = cls.check_finite
    if hasattr(check, "__wrapped__"):
        return

    @functools.wraps(check)
    def check_finite(self: Any, grads: Any) -> Any:
        import tensorflow as tf

        finite = check(self, grads)
        context = tf.distribute.get_replica_context()
        if context is None or context.num_replicas_in_sync == 1:
            return finite
        infinite = tf.cast(tf.logical_not(finite), tf.float32)
        return tf.equal(context.all_reduce(tf.distribute.ReduceOp.SUM, infinite), 0.0)

    cls.check_finite = check_finite
