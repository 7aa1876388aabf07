"""How large the updates of a run are."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfwarmup import compat
from tfwarmup.analysis.applied import Applied, moments, needs_gradient, update_magnitudes
from tfwarmup.analysis.samples import ParameterSample


class UpdateSize:
    """The root mean square of an update without its learning rate and warmup factor, over a sample of parameters.

    It is 1 at the first update, and sqrt((1 - beta_1) / (1 + beta_1)) for gradients that are noise.

    Args:
        optimizer: The optimizer with the moments.
        variables: The trainable variables of the model.
    """

    def __init__(self, optimizer: Any, variables: Sequence[Any]) -> None:
        self._optimizer = compat.unwrapped(optimizer)
        self._sample = ParameterSample(variables)
        self._read: Any = None

    def measure(self, optimizer: Any, applied: Applied) -> float | None:
        """The size of the last update; None if it does not follow from Adam's moments.

        Args:
            optimizer: An optimizer with the hyperparameters of the update.
            applied: `applied_rate` of the last update.
        """
        try:
            is_known = not needs_gradient(optimizer)
        except ValueError:  # SGD, for example
            return None
        if not is_known or not applied.t or not applied.warmup_factor:  # a momentum step of RAdam has the factor 0
            return None
        if self._read is None:
            places = [compat.variable_index(self._optimizer, variable) for variable in self._sample.variables]
            lists = ([variables[place] for place in places] for variables in moments(self._optimizer))
            self._read = self._sample.reader(*lists)
        m, v = self._read()
        magnitudes = update_magnitudes(optimizer, m, v, t=applied.t).astype("float64")
        size = math.sqrt(np.mean(magnitudes * magnitudes)) / applied.warmup_factor
        return size if math.isfinite(size) else None
