"""The optimizers that `optimizer_step` compares: one function per framework, each returning {name: one step}.

Started only by `optimizer_step`, as `python -m benchmarks.optimizer_workers <framework> <size> [contender]`: it prints
the names, then answers each name with the milliseconds of a step. Given a contender, it prints the peak memory of its
step in MB and ends.
"""

import gc
import pathlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.timing import milliseconds

BLOCK = ((576, 2304), (2304,), (2304, 576), (576,), (576, 576), (576,), (576,))
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {"large": BLOCK * 10, "small": ((64, 64),) * 200}
STEPS = {"large": 5, "small": 20}

IN_GRAPH = 10  # steps of a loop in one graph

Step = Callable[[], object]


class SeveralSteps(NamedTuple):
    """A function that takes several steps per call."""

    function: Step
    steps: int

    def __call__(self) -> object:
        return self.function()


Makers = dict[str, Callable[[], Step]]
Optimizers = Callable[[], dict[str, Callable[[], Any]]]


def arrays(size: str, seed: int) -> list[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    return [generator.normal(size=shape).astype("float32") for shape in SHAPES[size]]


def keras_optimizers() -> dict[str, Callable[[], Any]]:
    import keras

    import tfwarmup

    return {
        "Keras Adam": keras.optimizers.Adam,
        "Keras AdamW": lambda: keras.optimizers.AdamW(weight_decay=0.01),
        "tfwarmup Adam": tfwarmup.Adam,
        "tfwarmup RAdam": tfwarmup.RAdam,
        "tfwarmup RAdam, weight decay": lambda: tfwarmup.RAdam(weight_decay=0.01),
    }


def tensorflow(size: str, optimizers: Optimizers = keras_optimizers) -> Makers:
    import keras
    import tensorflow as tf

    gradients = [tf.constant(array) for array in arrays(size, 1)]

    def stepper(make: Callable[[], Any], jit_compile: bool) -> Step:
        variables = [keras.Variable(array) for array in arrays(size, 0)]
        optimizer = make()
        optimizer.build(variables)
        return tf.function(lambda: optimizer.apply(gradients, variables), jit_compile=jit_compile)

    def looped(make: Callable[[], Any]) -> Step:
        """Several steps per call, as in a training loop in one graph."""
        variables = [keras.Variable(array) for array in arrays(size, 0)]
        optimizer = make()
        optimizer.build(variables)

        def body(index: Any) -> Any:
            optimizer.apply(gradients, variables)
            return (index + 1,)

        loop = tf.function(lambda: tf.while_loop(lambda i: i < IN_GRAPH, body, (0,), parallel_iterations=1))
        return SeveralSteps(loop, IN_GRAPH)

    modes = {
        f"{name}, {mode}": lambda make=make, mode=mode: stepper(make, jit_compile=mode == "XLA")
        for mode in ("graph", "XLA")
        for name, make in optimizers().items()
    }
    return modes | {f"{name}, loop": lambda make=make: looped(make) for name, make in optimizers().items()}


def torch(size: str, optimizers: Optimizers = keras_optimizers) -> Makers:
    import keras
    import torch

    gradients = [torch.tensor(array) for array in arrays(size, 1)]

    def keras_stepper(make: Callable[[], Any]) -> Step:
        variables = [keras.Variable(array) for array in arrays(size, 0)]
        optimizer = make()
        optimizer.build(variables)
        return lambda: optimizer.apply(gradients, variables)

    def stepper(make: Callable[..., Any], **kwargs: Any) -> Step:
        parameters = [torch.nn.Parameter(torch.tensor(array)) for array in arrays(size, 0)]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        return make(parameters, **kwargs).step

    def memory_floor() -> Step:
        numbers = sum(gradient.numel() for gradient in gradients)
        a, b = (torch.rand(numbers * 7 // 3) for _ in range(2))  # an addition in place has 3 streams, Adam 7
        return lambda: a.add_(b)

    return {
        **{f"{name}, torch": lambda make=make: keras_stepper(make) for name, make in optimizers().items()},
        "torch RAdam, foreach": lambda: stepper(torch.optim.RAdam, foreach=True),
        "torch fused Adam": lambda: stepper(torch.optim.Adam, fused=True),
        "memory floor (7 streams)": memory_floor,
    }


def jax(size: str, optimizers: Optimizers = keras_optimizers) -> Makers:
    import jax
    import keras
    import optax

    gradients = [jax.numpy.asarray(array) for array in arrays(size, 1)]

    def repeated(update: Callable[..., Any], parameters: Any, state: Any) -> Step:
        # Donated and returned in the same order, as by Keras' trainer: XLA then writes every output into its own input.
        # In the order of `stateless_apply` it would copy every array of any optimizer.
        compiled = jax.jit(update, donate_argnums=(0, 1))
        current = [(parameters, state)]

        def step() -> None:
            current[0] = jax.block_until_ready(compiled(*current[0], gradients))

        return step

    def keras_stepper(make: Callable[[], Any]) -> Step:
        variables = [keras.Variable(array) for array in arrays(size, 0)]
        optimizer = make()
        optimizer.build(variables)

        def update(parameters: Any, state: Any, gradients: Any) -> Any:
            return optimizer.stateless_apply(state, gradients, parameters)

        return repeated(update, [v.value for v in variables], [v.value for v in optimizer.variables])

    def optax_stepper() -> Step:
        optimizer = optax.radam(1e-3)

        def update(parameters: Any, state: Any, gradients: Any) -> Any:
            updates, state = optimizer.update(gradients, state, parameters)
            return optax.apply_updates(parameters, updates), state

        parameters = [jax.numpy.asarray(array) for array in arrays(size, 0)]
        return repeated(update, parameters, optimizer.init(parameters))

    ours = {f"{name}, JAX": lambda make=make: keras_stepper(make) for name, make in optimizers().items()}
    return {**ours, "optax radam": optax_stepper}


def addons(size: str) -> Makers:
    import tensorflow as tf
    import tensorflow_addons as tfa

    def stepper() -> Step:
        gradients = [tf.constant(array) for array in arrays(size, 1)]
        variables = [tf.Variable(array) for array in arrays(size, 0)]
        optimizer = tfa.optimizers.RectifiedAdam()
        pairs = list(zip(gradients, variables, strict=True))
        optimizer.apply_gradients(pairs)  # creates its slots, which is not possible inside a graph

        @tf.function
        def step() -> None:
            optimizer.apply_gradients(pairs)

        return step

    return {"tensorflow-addons RectifiedAdam": stepper}


def peak_megabytes(step: Step) -> float:
    """Peak memory of a step above what is resident between steps: variables, moments and gradients."""
    for _ in range(3):
        step()
    gc.collect()
    resident = _status("VmRSS")
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # resets the peak, VmHWM
    for _ in range(3):
        step()
    return max(0.0, (_status("VmHWM") - resident) / 1024)


def _status(field: str) -> int:
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def main() -> None:
    framework, size, *contender = sys.argv[1:]
    makers = {"tensorflow": tensorflow, "torch": torch, "jax": jax, "addons": addons}[framework](size)
    if contender:
        print(peak_megabytes(makers[contender[0]]()), flush=True)
        return
    steps = {name: make() for name, make in makers.items()}
    print("\t".join(steps), flush=True)
    for line in sys.stdin:
        step = steps[line.rstrip("\n")]
        per_call = getattr(step, "steps", 1)
        print(milliseconds(step, max(1, STEPS[size] // per_call)) / per_call, flush=True)


if __name__ == "__main__":
    main()
