"""Keras callbacks that observe training without changing it: rates, updates, moments, gradients.

    from tfwarmup import probes

    model.fit(x, y, callbacks=[*probes.all_probes(), keras.callbacks.CSVLogger("log.csv")])

What a probe measures after update t is added to `logs`, and so reaches `History`, `CSVLogger` and `TensorBoard`; list
the probes before those. The logs of an epoch contain the newest measurement, which may come from an earlier epoch, and
its t (`rate_t`, `update_t`, `moment_t`, `gradient_cv_t`). `probe.history` contains every measurement of the last `fit`,
with its t. The weights are bit-identical with and without probes.
"""

import itertools
import math
import threading
from typing import Any

import keras
import numpy as np

from tfwarmup import checks, compat
from tfwarmup.analysis.applied import (
    SampledMoments,
    applied_rate,
    check_moments,
    mismatched_betas,
    needs_gradient,
    update_magnitudes,
)
from tfwarmup.analysis.gradients import check_batches, fresh_batches, sampled_gradients
from tfwarmup.analysis.samples import (
    ParameterSample,
    checked_sample,
    coefficient_of_variation,
    correlation,
    quantiles,
)
from tfwarmup.analysis.simulation import QUANTILES
from tfwarmup.compat import updates_made

__all__ = [
    "QUANTILES",
    "GradientProbe",
    "LogRate",
    "MomentProbe",
    "ParameterSample",
    "Probe",
    "RateProbe",
    "UpdateProbe",
    "all_probes",
    "applied_rate",
    "coefficient_of_variation",
    "correlation",
    "due_after",
    "quantiles",
    "update_magnitudes",
]


def due_after(t: int, every: int | str) -> int:
    """The next update that is measured: the first, then multiples of `every`, or ten per decade if it is "log".

    >>> due_after(0, 100), due_after(1, 100), due_after(100, 100), due_after(8, "log"), due_after(1000, "log")
    (1, 100, 200, 10, 1259)
    """
    if t == 0:
        return 1
    if isinstance(every, int):
        return (t // every + 1) * every
    tenths = itertools.count(math.floor(10 * math.log10(t)))
    return next(due for due in (round(10 ** (tenth / 10)) for tenth in tenths) if due > t)


class Probe(keras.callbacks.Callback):
    """The base class: measures after the updates that are due, and adds the values to `logs` and to `history`.

    A batch without an update (skipped by a `LossScaleOptimizer`, or one whose gradient is only accumulated) is not
    measured. With `steps_per_execution` the last update of an execution is measured if any of them was due.

    Args:
        names: The names of the values in `logs`.
        every: Measure the first update and then every `every` updates. "log": about ten per decade, 1, 2, 3, ..., 10,
            13, 16, ...
        t_name: The name, in the logs of an epoch, of the update that was measured last. By default the first of
            `names` with "_t".

    Attributes:
        history: A dictionary of lists: "t", and each value at those updates. Each `fit` resets it.
    """

    def __init__(self, names: tuple[str, ...], every: int | str = 1, t_name: str | None = None) -> None:
        super().__init__()
        self.names = names
        self.t_name = t_name or f"{names[0]}_t"
        self.every = _checked_every(every)
        self.history: dict[str, list[float]] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(every={self.every!r})"

    def check(self, model: Any) -> None:
        """Refuses a model that cannot be measured, before the first step."""

    def prepare(self, model: Any) -> None:
        """Gets ready for a model whose weights exist."""

    def measure(self, model: Any, t: int) -> dict[str, float]:
        """Returns the values after update t, the last one made."""
        raise NotImplementedError

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        model = self.model
        self.check(model)
        self.history = {"t": [], **{name: [] for name in self.names}}
        self._latest = dict.fromkeys((*self.names, self.t_name), math.nan)
        self._thread = threading.get_ident()
        self._steps = model.steps_per_execution
        self._updates_at_most = updates_made(model.optimizer)
        self._due = due_after(self._updates_at_most, self.every)
        self._prepared = False
        # TensorFlow builds a model without an input shape in its first step; its weights can only be checked after it.
        if compat.weights_exist(model):
            self._prepare_once(model)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self._check_thread()
        # Reading the state takes time, especially on JAX: skip it until an update can be due.
        self._updates_at_most += self._steps
        if self._updates_at_most < self._due:
            return
        model = self.model
        t = self._updates_at_most = updates_made(model.optimizer)
        if t < self._due:
            return
        self._due = due_after(t, self.every)
        self._prepare_once(model)
        values = self.measure(model, t)
        self._latest = {**values, self.t_name: t}
        for name, value in {"t": t, **values}.items():
            self.history[name].append(value)
        if logs is not None:
            logs.update(values)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        # NaN before the first measurement: `CSVLogger` takes its columns from the first epoch.
        if logs is not None:
            logs.update(self._latest)

    def _prepare_once(self, model: Any) -> None:
        if not self._prepared:
            self.prepare(model)
            self._prepared = True

    def _check_thread(self) -> None:
        if threading.get_ident() != self._thread:
            raise RuntimeError(
                "`callbacks` must be a list, callbacks=[probe]: Keras calls a bare callback from another thread while "
                f"training continues. Received: callbacks={type(self).__name__}"
            )


class RateProbe(Probe):
    """The learning rate of each update, warmup included, and its factor: `learning_rate_applied` and `warmup_factor`.

    For any Keras optimizer with one learning rate.

    Args:
        every: See `Probe`.
    """

    def __init__(self, *, every: int | str = 1) -> None:
        super().__init__(("learning_rate_applied", "warmup_factor"), every, "rate_t")

    def check(self, model: Any) -> None:
        applied_rate(model.optimizer)
        for message in mismatched_betas(model.optimizer):
            checks.warn(message)

    def measure(self, model: Any, t: int) -> dict[str, float]:
        _, rate, factor = applied_rate(model.optimizer, t)
        return {"learning_rate_applied": rate, "warmup_factor": factor}


class LogRate(RateProbe):
    """A `RateProbe` by another name: the rate that is applied in `History`, the progress line and later callbacks."""


class UpdateProbe(Probe):
    """Quantiles of |update| / alpha over a sample: `update_q05`, `update_q25`, `update_median`, ..., `update_q95`.

    alpha is the learning rate without the warmup factor, so that a warmup shows. The updates are computed from the
    moments by the optimizer's own formula: weight decay is not in them. For Adam, AdamW and Nadam of Keras, for
    `tfwarmup.Adam` and `tfwarmup.RAdam`.

    Args:
        every: See `Probe`.
        sample: How many parameters of each weight matrix to measure. By default 500, or all of a smaller matrix.
        seed: Seed of the choice of parameters. Probes with the same seed measure the same parameters.
    """

    def __init__(self, *, every: int | str = 1, sample: int | None = None, seed: int = 0) -> None:
        super().__init__(_quantile_names("update"), every, "update_t")
        self.moments = SampledMoments(sample, seed)

    def check(self, model: Any) -> None:
        self._m_before: Any = None
        self._needs_gradient = needs_gradient(model.optimizer)
        if self._needs_gradient and model.steps_per_execution > 1:
            raise ValueError(
                "The update of Nadam contains the gradient, which follows only from the moments before and after it: "
                f"`steps_per_execution` must be 1. Received: steps_per_execution={model.steps_per_execution}"
            )

    def prepare(self, model: Any) -> None:
        self.moments.prepare(model)

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self._m_before = None
        if self._needs_gradient and self._updates_at_most + 1 >= self._due:
            optimizer = self.model.optimizer
            t = updates_made(optimizer)
            self._m_before = self.moments.read(optimizer, t).m if t else np.float32(0)

    def measure(self, model: Any, t: int) -> dict[str, float]:
        m, _, divisors = self.moments.read(model.optimizer, t)
        return _named("update", quantiles(update_magnitudes(model.optimizer, m, divisors, self._m_before, t)))


class MomentProbe(Probe):
    """Pearson's correlation of |m_t| and sqrt(v_t) over a sample: `moment_correlation`.

    For Adam, AdamW, Nadam and Lamb of Keras, for `tfwarmup.Adam` and `tfwarmup.RAdam`.

    Args:
        every: See `Probe`.
        sample: See `UpdateProbe`.
        seed: See `UpdateProbe`.
    """

    def __init__(self, *, every: int | str = 1, sample: int | None = None, seed: int = 0) -> None:
        super().__init__(("moment_correlation",), every, "moment_t")
        self.moments = SampledMoments(sample, seed)

    def check(self, model: Any) -> None:
        check_moments(model.optimizer)

    def prepare(self, model: Any) -> None:
        self.moments.prepare(model)

    def measure(self, model: Any, t: int) -> dict[str, float]:
        m, v, _ = self.moments.read(model.optimizer, t)
        return {"moment_correlation": correlation(m, v)}


class GradientProbe(Probe):
    """Quantiles of the gradients' coefficient of variation over a sample: `gradient_cv_q05`, ..., `gradient_cv_q95`.

    After update t, the gradients of k batches are computed. The coefficient of variation of a parameter is the standard
    deviation of its k gradients divided by the absolute value of their mean. Parameters whose gradients are all zero
    are excluded, and so are batches whose gradients overflow. Works with any optimizer. State outside Keras variables,
    such as that of a wrapped torch module, may change.

    Args:
        batches: The source of batches `(x, y)` or `(x, y, sample_weight)`: arrays with a `batch_size`, whose rows are
            drawn at random; a `tf.data.Dataset`, a `PyDataset` or another iterable that can be started again; or a
            function that returns one. Do not use the shuffled dataset of `fit`, whose order would change, or one that
            uses the random generators of training, as a torch `DataLoader` does.
        k: The number of batches.
        batch_size: The batch size, for arrays.
        every: See `Probe`.
        sample: See `UpdateProbe`.
        seed: See `UpdateProbe`.
    """

    def __init__(
        self,
        batches: Any,
        k: int = 16,
        *,
        batch_size: int | None = None,
        every: int | str = 1,
        sample: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(_quantile_names("gradient_cv"), every, "gradient_cv_t")
        check_batches(batches, batch_size)
        self.batches = batches
        self.batch_size = batch_size
        self.k = checks.integer("k", k, least=2)
        self.sample, self.seed = checked_sample(sample), checks.integer("seed", seed, least=0)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        super().on_train_begin(logs)
        stream = fresh_batches(self.batches, self.batch_size, self.seed)
        self._stream = itertools.chain([next(stream)], stream)  # a bad source fails here, before the first step

    def prepare(self, model: Any) -> None:
        sample = ParameterSample(model.trainable_variables, self.sample, self.seed)
        self._gradients = sampled_gradients(model, sample, self.seed)

    def measure(self, model: Any, t: int) -> dict[str, float]:
        gradients = np.stack([self._gradients(batch) for batch in itertools.islice(self._stream, self.k)])
        finite = gradients[np.isfinite(gradients).all(axis=1)]
        variation = coefficient_of_variation(finite) if len(finite) >= 2 else np.empty(0)
        return _named("gradient_cv", quantiles(variation))


def all_probes(
    batches: Any = None,
    k: int = 16,
    *,
    batch_size: int | None = None,
    every: int | str = 1,
    sample: int | None = None,
    seed: int = 0,
) -> list[Probe]:
    """Returns a `RateProbe`, an `UpdateProbe`, a `MomentProbe` and, if there are `batches`, a `GradientProbe`.

    >>> [type(probe).__name__ for probe in all_probes(every="log")]
    ['RateProbe', 'UpdateProbe', 'MomentProbe']
    """
    common: dict[str, Any] = {"every": every, "sample": sample, "seed": seed}
    updates, correlations = UpdateProbe(**common), MomentProbe(**common)
    correlations.moments = updates.moments  # read once for both
    probes: list[Probe] = [RateProbe(every=every), updates, correlations]
    return probes if batches is None else [*probes, GradientProbe(batches, k, batch_size=batch_size, **common)]


def _named(prefix: str, values: dict[str, float]) -> dict[str, float]:
    return {f"{prefix}_{name}": value for name, value in values.items()}


def _quantile_names(prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}_{name}" for name in QUANTILES)


def _checked_every(every: Any) -> int | str:
    if every == "log":
        return "log"
    if isinstance(every, str):
        raise ValueError(f'`every` must be an integer >= 1 or "log". Received: every={every!r}')
    return checks.integer("every", every, least=1)
