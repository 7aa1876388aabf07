"""A random sample of a model's parameters, and the statistics of it in the paper's figures."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from tfwarmup import checks
from tfwarmup.analysis.simulation import QUANTILES

DEFAULT_COUNT = 500


def quantiles(values: Any) -> dict[str, float]:
    """The 5 %, 25 %, 50 %, 75 % and 95 % quantiles, by name; NaNs are left out.

    >>> quantiles(range(101))
    {'q05': 5.0, 'q25': 25.0, 'median': 50.0, 'q75': 75.0, 'q95': 95.0}
    """
    values = np.asarray(values, "float64")
    values = values[~np.isnan(values)]
    if not values.size:
        return dict.fromkeys(QUANTILES, np.nan)
    with np.errstate(invalid="ignore"):  # interpolation between two infinities
        return dict(zip(QUANTILES, np.quantile(values, list(QUANTILES.values())).tolist(), strict=True))


def correlation(m: Any, v: Any) -> float:
    """Pearson's correlation of |m| and sqrt(v); NaN if one of them is constant.

    >>> round(correlation([-1.0, 2.0, -3.0], [1.0, 4.0, 9.0]), 12)
    1.0
    """
    x, y = np.abs(np.asarray(m, "float64")), np.sqrt(np.asarray(v, "float64"))
    x, y = x - x.mean(), y - y.mean()
    # Not `np.dot`: the threads that it starts keep spinning, and training waits for their cores.
    norm = np.sqrt((x * x).sum()) * np.sqrt((y * y).sum())
    return float((x * y).sum() / norm) if norm > 0 else float("nan")


def coefficient_of_variation(gradients: Any) -> np.ndarray:
    """Sample standard deviation / |mean| of each column of an array [k, parameters]; NaN where all are zero.

    >>> coefficient_of_variation([[1.0, -2.0, 0.0], [3.0, -2.0, 0.0]]).round(6)
    array([0.707107, 0.      ,      nan])
    """
    gradients = np.asarray(gradients, "float64")
    if gradients.ndim != 2 or len(gradients) < 2:
        raise ValueError(f"`gradients` must be an array [k, parameters] with k >= 2. Received: shape={gradients.shape}")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: np.ndarray = gradients.std(axis=0, ddof=1) / np.abs(gradients.mean(axis=0))
    return ratio


class ParameterSample:
    """A fixed random sample of the parameters of each weight matrix.

    A weight matrix is a variable with two dimensions or more; in a model without any, vectors are sampled.

    Args:
        variables: The model's trainable variables.
        count: The number of parameters per matrix, without replacement. `None`: 500, or all of a smaller matrix.
        seed: The seed of the choice.

    Attributes:
        variables: The matrices.
        indices: For each matrix, the sampled positions in the flattened matrix, in ascending order.

    >>> sample = ParameterSample([keras.Variable(np.eye(3)), keras.Variable([1.0, 2.0])], count=4)
    >>> [len(index) for index in sample.indices], len(sample)
    ([4], 4)
    >>> ParameterSample(sample.variables).gather([np.arange(9).reshape(3, 3)]).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    """

    def __init__(self, variables: Sequence[Any], count: int | None = None, seed: int = 0) -> None:
        if count is not None:
            checks.integer("count", count, least=1)
        generator = np.random.default_rng(checks.integer("seed", seed, least=0))
        self.variables = _matrices(variables)
        self.indices = [_positions(variable, count, generator) for variable in self.variables]
        self._dtype = "float64" if any(v.dtype == "float64" for v in self.variables) else "float32"

    def __repr__(self) -> str:
        return f"ParameterSample({len(self)} parameters of {len(self.variables)} matrices)"

    def __len__(self) -> int:
        return sum(map(len, self.indices))

    def gather(self, tensors: Sequence[Any]) -> np.ndarray:
        """The sampled entries of tensors, variables or arrays shaped like the matrices, concatenated."""
        values: np.ndarray = ops.convert_to_numpy(self.take(tensors))
        return values

    def take(self, tensors: Sequence[Any]) -> Any:
        """Like `gather`, but returns a tensor, for use inside a compiled function."""
        self._check_shapes(tensors)
        entries = [
            ops.cast(ops.take(ops.reshape(tensor, (-1,)), index), self._dtype)
            for tensor, index in zip(tensors, self.indices, strict=True)
        ]
        return ops.concatenate(entries)

    def reader(self, *lists: Sequence[Any]) -> Callable[[], np.ndarray]:
        """Returns a function that reads the sampled entries of lists of variables: an array [lists, parameters].

        It is compiled if the backend compiles, with one call and one transfer for all matrices.
        """
        for variables in lists:
            self._check_shapes(variables)
        return _reader(lambda values: ops.stack([self.take(tensors) for tensors in values]), lists)

    def _check_shapes(self, tensors: Sequence[Any]) -> None:
        expected, received = [tuple(v.shape) for v in self.variables], [tuple(x.shape) for x in tensors]
        if expected != received:
            raise ValueError(f"The shapes must be those of the sampled matrices, {expected}. Received: {received}")


def _reader(gather: Callable[[Any], Any], lists: Sequence[Sequence[Any]]) -> Callable[[], np.ndarray]:
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        # Without arguments the variables are captured once: a call does not look at hundreds of them again.
        function = tf.function(lambda: gather(lists), autograph=False).get_concrete_function()
        return lambda: np.asarray(function())
    if backend == "jax":
        import jax

        compiled = jax.jit(gather)
        return lambda: np.asarray(compiled([[variable.value for variable in variables] for variables in lists]))
    return lambda: np.asarray(ops.convert_to_numpy(gather(lists)))


def _matrices(variables: Sequence[Any]) -> list[Any]:
    # Keras overwrites some variables (the scales of float8) with their gradient: they have no moments.
    variables = [v for v in variables if not getattr(v, "overwrite_with_gradient", False)]
    if not variables:
        raise ValueError("A sample needs a model with trainable weights. Received: none")
    return [v for v in variables if len(v.shape) >= 2] or variables


def _positions(variable: Any, count: int | None, generator: np.random.Generator) -> np.ndarray:
    size = int(np.prod(variable.shape))
    if count is not None and count > size:
        raise ValueError(
            f"A sample must not be larger than any weight matrix, and {variable.path!r} has {size} parameters. "
            f"Received: {count}"
        )
    count = min(count or DEFAULT_COUNT, size)
    return np.sort(generator.choice(size, count, replace=False, shuffle=False))


def checked_sample(sample: Any) -> int | None:
    return None if sample is None else checks.integer("sample", sample, least=1)
