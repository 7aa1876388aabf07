"""A callback that measures how a warmup went: lines at the start and the end, a figure, and the numbers behind them."""

import math
from typing import Any

import keras
import numpy as np
from keras.optimizers.schedules import LearningRateSchedule

from tfwarmup import checks, compat, factors
from tfwarmup.analysis.applied import applied_rate, update_magnitudes
from tfwarmup.analysis.forecast import describe, forecasts
from tfwarmup.analysis.probes import UpdateProbe
from tfwarmup.analysis.warmup_figure import draw
from tfwarmup.analysis.warmup_report import WarmupReport
from tfwarmup.compat import unwrapped
from tfwarmup.schedules import warmup_schedules
from tfwarmup.warmups import NoWarmup

_VALUES = ("update_rms", "warmup_factor", "gradient_rms", "batch_loss")


class WarmupCheck(UpdateProbe):
    """Measures the updates of a run and prints what its warmup did, in three lines at the end of `fit`.

    For Adam, AdamW and Nadam of Keras, `tfwarmup.Adam` and `tfwarmup.RAdam`, with any warmup or none, on any backend.
    The first line says "too short", or that there is no sign of it, if every update was measured from the first one on.

    When `fit` starts, it prints what `tfwarmup.describe` says, if the length of the run is known. A `UserWarning` tells
    you if the warmup takes more than half of the run, or if a callback cannot set the rate because it is a schedule.

        check = tfwarmup.WarmupCheck()
        model.fit(x, y, callbacks=[check])
        check.report.verdict, check.report.suggestions
        check.figure().savefig("warmup.png")  # needs matplotlib

    For each measured update t, `logs` and `history` contain

    - `update_rms`: the root mean square of update / (omega_t alpha), which is 1 at the first update and
      sqrt((1 - beta_1) / (1 + beta_1)), that is 0.229, for gradients that are noise;
    - `warmup_factor`: omega_t;
    - `gradient_rms`: the root mean square of the gradients, clipped and averaged as the optimizer sees them; NaN unless
      the previous update was measured too;
    - `batch_loss`: the loss of the last batch, recovered from the mean that Keras logs.

    Args:
        every: See `Probe`. A verdict and spikes need every update.
        sample: How many parameters of each weight matrix to measure. By default 500, or all of a smaller matrix.
        seed: Seed of the choice of parameters.
        verbose: Whether to print these lines.

    Attributes:
        report: A `WarmupReport` on the measurements so far, also during `fit`.
        history: A dictionary of lists, see `Probe`.
    """

    def __init__(self, *, every: int | str = 1, sample: int | None = None, seed: int = 0, verbose: bool = True) -> None:
        super().__init__(every=every, sample=sample, seed=seed)
        self.names, self.t_name = _VALUES, "check_t"
        self.verbose = checks.flag("verbose", verbose)
        self._mean, self._count = 0.0, 0  # of the losses of this epoch, as Keras logs them

    @property
    def report(self) -> WarmupReport:
        if not self.history or not self.history["t"]:
            raise ValueError("A report needs a `fit` with at least one update. Received: none")
        return WarmupReport.of(
            {name: np.array(values, "float64") for name, values in self.history.items()},
            warmup=self._warmup,
            rule_period=self._rule_period,
            dynamic_end=getattr(unwrapped(self.model.optimizer), "warmup_done_at", None),
            beta_1=float(unwrapped(self.model.optimizer).beta_1),
        )

    def figure(self) -> Any:
        """A matplotlib `Figure`: the size of the updates, the warmup factor, and the loss over updates."""
        return draw(self.history, self.report)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        super().on_train_begin(logs)
        optimizer = unwrapped(self.model.optimizer)
        self._moments_before: tuple[int, Any] = (-1, None)
        self._batch_loss = math.nan
        self._warmup = _warmups_text(optimizer)
        beta_2 = compat.second_moment_beta_2(optimizer) or getattr(optimizer, "beta_2", None)
        self._rule_period = None if beta_2 is None else factors.untuned_linear_period(beta_2)
        self._is_announced = False
        _warn_of_setters(optimizer)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._mean, self._count = 0.0, 0
        if not self._is_announced:
            self._announce(epoch)
            self._is_announced = True

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        mean = float((logs or {}).get("loss", math.nan))
        # Keras logs the mean over the epoch so far. What an execution of several steps adds to it is their mean.
        count = batch + 1
        self._batch_loss = (mean * count - self._mean * self._count) / max(count - self._count, 1)
        self._mean, self._count = mean, count
        super().on_train_batch_end(batch, logs)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        if self.verbose and self.history["t"]:
            print(*self.report.lines(), sep="\n")

    def measure(self, model: Any, t: int) -> dict[str, float]:
        factor = applied_rate(model.optimizer, t).warmup_factor
        m, _, divisors = self.moments.read(model.optimizer, t)
        magnitudes = update_magnitudes(model.optimizer, m, divisors, self._m_before, t)
        # A momentum step of RAdam, with a factor of 0, is not a step of Adam.
        size = _rms(magnitudes) / factor if factor > 0 else math.nan
        gradient = self._gradient_rms(model.optimizer, t, m)
        return dict(zip(_VALUES, (size, factor, gradient, self._batch_loss), strict=True))

    def _gradient_rms(self, optimizer: Any, t: int, m: np.ndarray) -> float:
        """The RMS of the gradient that led from the first moments of the previous update to `m`."""
        beta_1 = unwrapped(optimizer).beta_1
        before_t, before = self._moments_before
        self._moments_before = (t, m)
        if t == 1:
            before_t, before = 0, np.zeros_like(m)
        if before_t != t - 1:
            return math.nan
        return _rms((m.astype("float64") - beta_1 * before) / (1 - beta_1))

    def _announce(self, epoch: int) -> None:
        """Says what the warmup will do in the epochs to come, if the number of their steps is known."""
        optimizer = unwrapped(self.model.optimizer)
        steps = (self.params.get("steps") or 0) * (self.params["epochs"] - epoch)
        updates = steps // compat.accumulation_steps(optimizer)
        if not updates:
            return
        if self.verbose:
            print(describe(optimizer, updates))
        for forecast in forecasts(optimizer, updates):
            if (forecast.left or 0) > updates / 2:
                checks.warn(
                    "A warmup should take at most half of a run: use a smaller beta_2 or a shorter warmup. "
                    f"Received: {forecast}"
                )


def _warn_of_setters(optimizer: Any) -> None:
    """Warns of callbacks that will fail, some after many epochs, because Keras does not let them set a schedule."""
    setters = (keras.callbacks.ReduceLROnPlateau, keras.callbacks.LearningRateScheduler)
    names = [type(callback).__name__ for callback in compat.callbacks_of_fit() if isinstance(callback, setters)]
    rate = compat.learning_rate_of(optimizer)
    if names and isinstance(rate, LearningRateSchedule):
        checks.warn(
            f"`{names[0]}` needs a learning rate that is not a schedule, such as that of `tfwarmup.Adam(rate, "
            f"warmup=...)`; it will fail when it sets the rate. Received: learning_rate={checks.shown(rate)}"
        )


def _warmups_text(optimizer: Any) -> str:
    """The warmups of an optimizer, its own and those in its learning rate."""
    own = [optimizer.warmup] if hasattr(optimizer, "warmup") else []
    rules = [*own, *(schedule.warmup for schedule in warmup_schedules(compat.learning_rate_of(optimizer)))]
    return ", ".join(repr(rule) for rule in rules if not isinstance(rule, NoWarmup)) or "no warmup"


def _rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(np.asarray(values, "float64")))))
