"""How an optimizer follows its own updates, for a warmup that depends on them."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfwarmup import compat
from tfwarmup.compat import ops
from tfwarmup.warmups.dynamic import Dynamic

# The sample: about so many parameters, in so many variables that are spread evenly over all parameters of the model.
# The largest variables alone would not do: embeddings, for example, behave differently from the layers after them.
PARAMETERS, VARIABLES = 4096, 16
TINY = 1e-37  # the smallest power of ten that float32 holds with all its digits


class UpdateWatch:
    """The state of a dynamic warmup: its progress, the mean slope, and a sample of the last update.

    It lives in variables of the optimizer: it is saved, and Keras takes care of it where an update is skipped or only
    accumulated. Gradients are summed over replicas before an update, so that all replicas compute the same.

    Args:
        optimizer: A `tfwarmup.Adam` that has its moments.
        rule: Its warmup.
    """

    def __init__(self, optimizer: Any, rule: Dynamic) -> None:
        self.optimizer, self.rule = optimizer, rule
        sizes = [0 if m is None else math.prod(m.shape) for m in compat.first_moments(optimizer)]
        self.strides = sampled_strides(sizes)
        count = sum(-(-sizes[place] // stride) for place, stride in self.strides.items())
        # p_{t-1}, p_t and s_t of the last update t.
        self.progress = optimizer.add_variable((3,), "zeros", "float32", name="warmup_progress")
        self.update = optimizer.add_variable((count,), "zeros", "float32", name="warmup_update")
        self.done_at = optimizer.add_variable((), "zeros", "int", name="warmup_done_at")

    @property
    def factor(self) -> Any:
        """omega_t of the update that comes next."""
        return self.rule.factor(ops.convert_to_tensor(self.progress)[1], ops)

    @property
    def applied_factor(self) -> Any:
        """omega_t of the last update."""
        return self.rule.factor(ops.convert_to_tensor(self.progress)[0], ops)

    def observe(self, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        """Takes an update into account that has been made, and not been counted yet.

        Args:
            gradients: Those of the update.
            variables: The variables of the model that they belong to.
        """
        own = self.progress, self.update, self.done_at
        # Tensors, since JAX takes no variables in the middle of a formula.
        state = [ops.convert_to_tensor(variable) for variable in own]
        # The full rate is kept once it is reached, so that nothing has to be watched any more.
        is_over = self.applied_factor >= 1.0
        changed = compat.chosen(is_over, lambda: state, lambda: self._advanced(gradients, variables, *state))
        for variable, value in zip(own, changed, strict=True):
            variable.assign(value)

    def _advanced(
        self, gradients: Sequence[Any], variables: Sequence[Any], progress: Any, update: Any, done_at: Any
    ) -> list[Any]:
        optimizer, before = self.optimizer, progress[1]
        t = compat.next_update(optimizer)
        scalars = optimizer.update_numbers(1.0, ops.cast(t, "float32"), factor=1.0)
        cosine = _cosine(self._sampled_gradients(gradients, variables), update)
        slope = optimizer.beta_1 * progress[2] + (1 - optimizer.beta_1) * cosine
        after = self.rule.advanced(before, slope, optimizer.beta_1, ops)
        is_end = ops.logical_and(self.rule.factor(after, ops) >= 1.0, ops.equal(done_at, 0))
        m = self._sampled_moments(compat.first_moments(optimizer))
        v = self._sampled_moments(compat.second_moments(optimizer))
        return [
            ops.stack([before, after, slope]),
            m * scalars.rate / (ops.sqrt(v) + scalars.epsilon),
            ops.where(is_end, ops.cast(t + 1, done_at.dtype), done_at),
        ]

    def restart(self) -> None:
        for variable in (self.progress, self.update, self.done_at):
            variable.assign(ops.zeros(variable.shape, variable.dtype))

    def _sampled_gradients(self, gradients: Sequence[Any], variables: Sequence[Any]) -> Any:
        """The sampled entries of gradients, and zeros for a variable that has none."""
        places = (compat.variable_index(self.optimizer, variable) for variable in variables)
        given = dict(zip(places, gradients, strict=True))
        moments = compat.first_moments(self.optimizer)
        return self._sampled([given[p] if p in given else ops.zeros(moments[p].shape) for p in self.strides])

    def _sampled_moments(self, moments: Sequence[Any]) -> Any:
        return self._sampled(compat.tensors_of([moments[place] for place in self.strides]))

    def _sampled(self, tensors: Sequence[Any]) -> Any:
        """The sampled entries of the tensors of all sampled variables."""
        parts = [_flat(tensor)[::stride] for tensor, stride in zip(tensors, self.strides.values(), strict=True)]
        return ops.cast(ops.concatenate(parts), "float32")


def _flat(x: Any) -> Any:
    # Where a tensor has the method, it takes a tenth of the time of `keras.ops`.
    return x.reshape(-1) if hasattr(x, "reshape") else ops.reshape(x, (-1,))


def _cosine(x: Any, y: Any) -> Any:
    """The cosine of the angle between two vectors; 0 if one of them is 0."""
    squares = ops.sum(x * x) * ops.sum(y * y)
    return ops.sum(x * y) / ops.sqrt(ops.maximum(squares, TINY))


def sampled_strides(sizes: Sequence[int]) -> dict[int, int]:
    """The places of the variables that are sampled, and the distance between their sampled parameters.

    >>> sampled_strides([10, 100_000, 0, 1_000_000])
    {1: 269, 3: 269}
    """
    ends = np.cumsum(sizes)
    middles = (np.arange(VARIABLES) + 0.5) * ends[-1] / VARIABLES  # of equal parts of all parameters
    places = sorted({int(place) for place in np.searchsorted(ends, middles, side="right")})
    # Odd, so that in matrices whose rows have an even length every column gets its turn.
    stride = -(-sum(sizes[place] for place in places) // PARAMETERS) | 1
    return dict.fromkeys(places, stride)
