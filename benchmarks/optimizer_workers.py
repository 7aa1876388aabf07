"""The optimizers that `optimizer_step` compares: one function a framework, each returning {name: one step}."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.timing import milliseconds

BLOCKS = 10
BLOCK = ((576, 2304), (2304,), (2304, 576), (576,), (576, 576), (576,), (576,))
STEPS = 5


def arrays(seed: int) -> list[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    return [generator.normal(size=shape).astype("float32") for shape in BLOCK * BLOCKS]


def tensorflow() -> dict[str, Callable[[], object]]:
    import keras
    import tensorflow as tf

    import tfwarmup

    gradients = [tf.constant(array) for array in arrays(1)]

    def stepper(make: Callable[[], Any], jit_compile: bool) -> Callable[[], object]:
        variables = [keras.Variable(array) for array in arrays(0)]
        optimizer = make()
        optimizer.build(variables)
        return tf.function(lambda: optimizer.apply(gradients, variables), jit_compile=jit_compile)

    optimizers = {"Keras Adam": keras.optimizers.Adam, "tfwarmup Adam": tfwarmup.Adam, "tfwarmup RAdam": tfwarmup.RAdam}
    return {
        f"{name}, {mode}": stepper(make, jit_compile=mode == "XLA")
        for mode in ("graph", "XLA")
        for name, make in optimizers.items()
    }


def torch() -> dict[str, Callable[[], object]]:
    import torch

    def stepper(make: Callable[..., Any], **kwargs: Any) -> Callable[[], object]:
        parameters = [torch.nn.Parameter(torch.tensor(array)) for array in arrays(0)]
        for parameter, gradient in zip(parameters, arrays(1), strict=True):
            parameter.grad = torch.tensor(gradient)
        return make(parameters, **kwargs).step

    size = sum(array.size for array in arrays(0))
    a, b = (torch.rand(size * 7 // 3) for _ in range(2))  # an addition in place has 3 streams, Adam 7
    return {
        "torch RAdam": stepper(torch.optim.RAdam),
        "torch RAdam, foreach": stepper(torch.optim.RAdam, foreach=True),
        "torch fused Adam": stepper(torch.optim.Adam, fused=True),
        "memory floor (7 streams)": lambda: a.add_(b),
    }


def jax() -> dict[str, Callable[[], object]]:
    import jax
    import optax

    optimizer = optax.radam(1e-3)

    def update(parameters: Any, state: Any, gradients: Any) -> Any:
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state

    compiled = jax.jit(update, donate_argnums=(0, 1))
    gradients = [jax.numpy.asarray(array) for array in arrays(1)]
    parameters = [jax.numpy.asarray(array) for array in arrays(0)]
    state = [(parameters, optimizer.init(parameters))]

    def step() -> None:
        state[0] = jax.block_until_ready(compiled(*state[0], gradients))

    return {"optax radam": step}


def addons() -> dict[str, Callable[[], object]]:
    import tensorflow as tf
    import tensorflow_addons as tfa

    gradients = [tf.constant(array) for array in arrays(1)]
    variables = [tf.Variable(array) for array in arrays(0)]
    optimizer = tfa.optimizers.RectifiedAdam()
    pairs = list(zip(gradients, variables, strict=True))
    optimizer.apply_gradients(pairs)  # makes its slots, which a graph may not

    @tf.function
    def step() -> None:
        optimizer.apply_gradients(pairs)

    return {"tensorflow-addons RectifiedAdam": step}


def main() -> None:
    steps = {"tensorflow": tensorflow, "torch": torch, "jax": jax, "addons": addons}[sys.argv[1]]()
    print("\t".join(steps), flush=True)
    for line in sys.stdin:
        print(milliseconds(steps[line.rstrip("\n")], STEPS), flush=True)


if __name__ == "__main__":
    main()
