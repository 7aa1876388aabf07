"""A training run that stops at chosen updates to measure what the paper's figure 1 shows."""

import bisect
import dataclasses
import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from tfwarmup import WARMUPS
from tfwarmup.analysis.applied import moments, update_magnitudes
from tfwarmup.analysis.samples import ParameterSample, coefficient_of_variation, correlation, quantiles
from trainers.analysis.gradient_samples import GradientSamples
from trainers.engine.bench import Bench
from trainers.engine.config import ConfigError, option, require
from trainers.engine.records import RunFolder
from trainers.engine.run import Run
from trainers.tasks.image_classification import ImageConfig

A_DECADE = 40  # log-spaced measurements
OPTIMIZERS = ("adam", "radam", "keras_adam")  # whose moments tell their updates


@dataclasses.dataclass(frozen=True)
class AnalysisConfig(ImageConfig):
    """The flags of an image classifier, with the paper's values, and those of the measurements."""

    fixed_length: ClassVar[str] = "the measured updates are spread over the whole run"

    steps: int | None = option(10_000, "Updates in all.")
    batch_size: int = option(256, "Examples an update, and in each of the batches that gradients are sampled from.")
    weight_decay: float = option(1e-4, "Decoupled weight decay.")
    warmup: str | None = option("none", "Warmup; radam is RAdam itself.", tuple(WARMUPS))
    gradient_samples: int = option(256, "Batches whose gradients are compared at each measurement.")
    sampled_parameters: int | None = option(None, "Parameters of each weight matrix; 500, or all of a smaller one.")
    measure_every: int = option(0, "Updates between two measurements; 0: log-spaced.")

    def validate(self) -> None:
        super().validate()
        require(self.steps is not None, "--steps must be an integer >= 1", self.steps)
        require(self.gradient_samples >= 2, "--gradient_samples must be an integer >= 2", self.gradient_samples)
        require(self.measure_every >= 0, "--measure_every must be an integer >= 0", self.measure_every)
        require(self.model == "mlp", "--model must be mlp here; other models take tfwarmup.probes", self.model)
        require(
            self.optimizer in OPTIMIZERS, f"--optimizer must be one of {', '.join(OPTIMIZERS)} here", self.optimizer
        )
        require(self.precision == "float32", "--precision must be float32 here", self.precision)
        require(self.strategy in ("auto", "one"), "--strategy must be auto or one here", self.strategy)
        require(self.logical_devices == 1, "--logical_devices must be 1 here", self.logical_devices)
        require(self.accumulate == 1, "--accumulate must be 1 here", self.accumulate)


def measured_updates(total: int, every: int) -> list[int]:
    """Every n-th update, or forty a decade if n is 0; the first always.

    >>> measured_updates(7, 3), measured_updates(10, 0)[-3:]
    ([1, 3, 6], [8, 9, 10])
    """
    if every:
        return sorted({1, *range(every, total + 1, every)})
    count = max(2, math.ceil(A_DECADE * math.log10(total)) + 1)
    return np.unique(np.round(np.geomspace(1, total, count)).astype(int)).tolist()  # type: ignore[no-any-return]


class MeasuredRun(Run):
    """A run whose records at the measured updates also hold the statistics of the sampled parameters."""

    config: AnalysisConfig

    def __init__(self, config: AnalysisConfig, bench: Bench, folder: RunFolder) -> None:
        super().__init__(config, bench, folder)
        try:
            self.sample = ParameterSample(self.model.trainable_variables, config.sampled_parameters, config.seed)
        except ValueError as error:  # the library's own words
            raise ConfigError(str(error)) from error
        self.measured = measured_updates(self.plan.total_steps, config.measure_every)
        self.gradients = GradientSamples(
            self.model, self.sample, self.data.train, config.batch_size, config.gradient_samples, config.seed
        )
        places = [self.optimizer._get_variable_index(variable) for variable in self.sample.variables]
        self._read = self.sample.reader(*([row[place] for place in places] for row in moments(self.optimizer)))
        self._variation: dict[str, float] = {}

    def _segments(self, start: int) -> Iterator[tuple[int, int]]:
        stops = sorted({stop for t in self.measured for stop in (t - 1, t)})
        return self.plan.segments(start, self.config.log_every, stops)

    def _segment(self, batches: Any, first: int, last: int, progress: Any) -> None:
        number = self._measurement(last)
        # The gradient's distribution belongs to the weights before the update.
        self._variation = {} if number is None else _of_variation(self.gradients.draw(number))
        super()._segment(batches, first, last, progress)

    def _record(self, last: int) -> dict[str, Any]:
        record = super()._record(last)
        return record | self._statistics() if self._measurement(last) is not None else record

    def _statistics(self) -> dict[str, float]:
        m, v = self._read()
        updates = quantiles(update_magnitudes(self.optimizer, m, v))
        return {
            **self._variation,
            "moment_correlation": correlation(m, v),
            **{f"update_{name}": value for name, value in updates.items()},
        }

    def _measurement(self, step: int) -> int | None:
        """Which measurement this update is, if it is one."""
        place = bisect.bisect_left(self.measured, step)
        return place if self.measured[place : place + 1] == [step] else None

    def _work(self, first: int, last: int) -> int:
        # In backward passes: those of a measurement, and one a step.
        measurements = bisect.bisect_right(self.measured, last) - bisect.bisect_right(self.measured, first)
        return last - first + measurements * self.config.gradient_samples


def _of_variation(gradients: np.ndarray) -> dict[str, float]:
    return {f"gradient_cv_{name}": value for name, value in quantiles(coefficient_of_variation(gradients)).items()}
