"""Gradients of fresh batches at the current weights, without changing the model.

A pass runs in a `keras.StatelessScope`: what layers, losses and metrics assign to their variables (statistics of batch
normalisation, states of seed generators) is discarded with the scope.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from tfwarmup import checks, compat
from tfwarmup.steps import dense

Batch = tuple[Any, Any, Any]


def fresh_batches(batches: Any, batch_size: int | None, seed: int) -> Iterator[Batch]:
    """An endless stream of (x, y, sample_weight); the source is restarted whenever it ends."""
    for batch in _endless(batches, batch_size, seed):
        if not isinstance(batch, (tuple, list)) or not 1 <= len(batch) <= 3:
            raise ValueError(
                "`batches` must yield (x, y) or (x, y, sample_weight); arrays need a `batch_size`. Received: "
                f"{type(batch).__name__}"
            )
        x, y, weight = keras.utils.unpack_x_y_sample_weight(tuple(batch))
        yield tree.map_structure(_tensor, x), tree.map_structure(_tensor, y), tree.map_structure(_tensor, weight)


def check_batches(batches: Any, batch_size: int | None) -> None:
    """Refuses what cannot be a source of batches."""
    if batch_size is not None:
        _check_arrays(batches, checks.integer("batch_size", batch_size, least=1))
    elif not (callable(batches) or isinstance(batches, (Iterable, keras.utils.PyDataset))):
        raise ValueError(
            "`batches` must be a function that returns batches, an iterable of batches, or arrays (x, y) with a "
            f"`batch_size`. Received: batches={batches!r}"
        )
    elif isinstance(batches, Iterator):
        raise ValueError(
            "`batches` must be something that can be started again: a list, a dataset, or the generator function "
            f"itself. Received: {type(batches).__name__}, which can be read only once"
        )


def _check_arrays(arrays: Any, batch_size: int) -> None:
    rule = "With a `batch_size`, `batches` must be arrays (x, y) of the same length."
    if not isinstance(arrays, (tuple, list)):
        raise ValueError(f"{rule} Received: {type(arrays).__name__}")
    lengths = {len(array) for array in tree.flatten(arrays) if array is not None}
    if len(lengths) != 1:
        raise ValueError(f"{rule} Received: lengths {lengths}")
    if batch_size > min(lengths):
        raise ValueError(f"`batch_size` must not exceed the {min(lengths)} examples. Received: batch_size={batch_size}")


def sampled_gradients(model: Any, sample: Any, seed: int, compiled: bool = True) -> Callable[[Batch], np.ndarray]:
    """Returns a function of a batch: the gradient of the training loss at the parameters of a `ParameterSample`.

    The loss is scaled as the optimizer scales it, against underflow in float16, and the gradient is left scaled.
    Dropout draws new masks for each batch, different from those of training. To compile pays from the second batch on.
    """
    seed_states = [v for v in model.variables if v.name == "seed_generator_state"]
    generator = np.random.default_rng(seed)
    is_compiled = compiled and not model.run_eagerly
    gradients = _BACKENDS[keras.backend.backend()](model, sample, seed_states, is_compiled)

    def of_batch(batch: Batch) -> np.ndarray:
        seeds, own = _noise(generator, seed_states)
        with _own_noise(own):
            return np.asarray(ops.convert_to_numpy(gradients(*batch, seeds)))

    return of_batch


def loss_without_change(model: Any, batch: Batch, seed: int) -> Callable[[list[Any]], float]:
    """Returns a function of the weights: the training loss of a batch, with the noise of its `sampled_gradients`."""
    seed_states = [v for v in model.variables if v.name == "seed_generator_state"]
    seeds, own = _noise(np.random.default_rng(seed), seed_states)

    def of_weights(weights: list[Any]) -> float:
        variables = [*model.trainable_variables, *seed_states]
        with _own_noise(own):
            return compat.number(_loss(model, zip(variables, [*weights, *seeds], strict=True), *batch))

    return of_weights


def _noise(generator: np.random.Generator, seed_states: list[Any]) -> tuple[list[Any], int]:
    """A state for each of Keras' seed generators, and a seed for what has none."""
    return [_tensor(generator.integers(2**31, size=2)) for _ in seed_states], int(generator.integers(2**31))


@contextlib.contextmanager
def _own_noise(seed: int) -> Iterator[None]:
    """Leaves torch's global generator unchanged: Keras' dropout draws from it unless it has a seed."""
    if keras.backend.backend() != "torch":
        yield
        return
    import torch

    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


def _loss(model: Any, state: Iterable[tuple[Any, Any]], x: Any, y: Any, weight: Any) -> Any:
    """The loss of a training step, with the variables in `state` replaced by their values there."""
    with keras.StatelessScope(state, collect_losses=True):
        loss = compat.training_loss(model, x, y, compat.training_output(model, x), weight)
        return model.optimizer.scale_loss(loss)


def _tensorflow_gradients(model: Any, sample: Any, seed_states: list[Any], compiled: bool) -> Callable[..., Any]:
    import tensorflow as tf

    def in_replica(x: Any, y: Any, weight: Any, seeds: Any) -> Any:
        variables = model.trainable_variables
        values = [tf.convert_to_tensor(variable.value) for variable in variables]
        sampled = [values[_position(variable, variables)] for variable in sample.variables]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(values)
            state = [*zip(variables, values, strict=True), *zip(seed_states, seeds, strict=True)]
            loss = _loss(model, state, x, y, weight)
        zero = tf.UnconnectedGradients.ZERO
        gradients = tape.gradient(loss, sampled, unconnected_gradients=zero)
        return sample.take([dense(gradient, value) for gradient, value in zip(gradients, sampled, strict=True)])

    def gradients(x: Any, y: Any, weight: Any, seeds: Any) -> Any:
        # Every replica computes the whole batch, since layers may synchronise over all replicas.
        strategy = model.distribute_strategy
        return strategy.experimental_local_results(strategy.run(in_replica, args=(x, y, weight, seeds)))[0]

    return tf.function(gradients, reduce_retracing=True, autograph=False) if compiled else gradients


def _jax_gradients(model: Any, sample: Any, seed_states: list[Any], compiled: bool) -> Callable[..., Any]:
    import jax

    # Everything that the pass reads is an argument: training donates the buffers that would otherwise be captured.
    others = [*model.non_trainable_variables, *model.metrics_variables, *model.optimizer.variables]

    def loss(values: Any, other_values: Any, x: Any, y: Any, weight: Any, seeds: Any) -> Any:
        variables = [*model.trainable_variables, *others, *seed_states]
        return _loss(model, zip(variables, [*values, *other_values, *seeds], strict=True), x, y, weight)

    def take(values: Any, *arguments: Any) -> Any:
        gradients = jax.grad(loss)(values, *arguments)
        return sample.take([gradients[_position(v, model.trainable_variables)] for v in sample.variables])

    take_now = jax.jit(take) if compiled else take

    def gradients(*arguments: Any) -> Any:
        return take_now([v.value for v in model.trainable_variables], [v.value for v in others], *arguments)

    return gradients


def _torch_gradients(model: Any, sample: Any, seed_states: list[Any], compiled: bool) -> Callable[..., Any]:
    import torch

    def gradients(x: Any, y: Any, weight: Any, seeds: Any) -> Any:
        state = [(variable, variable.value) for variable in model.trainable_variables]
        with torch.enable_grad():
            loss = _loss(model, [*state, *zip(seed_states, seeds, strict=True)], x, y, weight)
        sampled = [variable.value for variable in sample.variables]
        # Not `backward`, which would add to the gradients that the parameters carry.
        return sample.take(torch.autograd.grad(loss, sampled, allow_unused=True, materialize_grads=True))

    return gradients


_BACKENDS = {"tensorflow": _tensorflow_gradients, "jax": _jax_gradients, "torch": _torch_gradients}


def _position(variable: Any, variables: list[Any]) -> int:
    return next(i for i, other in enumerate(variables) if other is variable)


def _endless(batches: Any, batch_size: int | None, seed: int) -> Iterator[Any]:
    if batch_size is not None:
        yield from _random_rows(batches, batch_size, seed)
    elif isinstance(batches, keras.utils.PyDataset):
        generator = np.random.default_rng(seed)
        yield from _passes(lambda: _in_random_order(batches, generator), batches)
    else:
        yield from _passes(batches if callable(batches) else lambda: batches, batches)


def _random_rows(arrays: Any, batch_size: int, seed: int) -> Iterator[Any]:
    generator = np.random.default_rng(seed)
    arrays = tree.map_structure(lambda a: a if a is None else np.asarray(a), tuple(arrays))
    count = len(next(array for array in tree.flatten(arrays) if array is not None))
    while True:
        rows = generator.choice(count, batch_size, replace=False)
        yield tree.map_structure(lambda a: a if a is None else a[rows], arrays)  # noqa: B023


def _in_random_order(dataset: Any, generator: np.random.Generator) -> Iterator[Any]:
    """One pass over a `PyDataset` without calling its hooks: it may be the one that is trained on."""
    count = dataset.num_batches
    for index in itertools.count() if count is None else generator.permutation(count):
        yield dataset[int(index)]


def _passes(start: Callable[[], Iterable[Any]], source: Any) -> Iterator[Any]:
    while True:
        batch = None
        for batch in start():
            yield batch
        if batch is None:
            raise ValueError(f"`batches` must yield at least one batch. Received: {type(source).__name__} without any")


def _tensor(leaf: Any) -> Any:
    """A tensor of this backend from an array or from another framework's tensor."""
    return leaf if leaf is None else ops.convert_to_tensor(leaf if ops.is_tensor(leaf) else np.asarray(leaf))
