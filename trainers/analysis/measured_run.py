"""A training run that stops at chosen updates to measure what the paper's figure 1 shows."""

import bisect
import math
import pathlib
from typing import Any

import numpy as np

from tfwarmup.analysis.applied import update_magnitudes
from tfwarmup.analysis.samples import ParameterSample, coefficient_of_variation, correlation, quantiles
from trainers.analysis.config import AnalysisConfig
from trainers.analysis.findings import findings
from trainers.analysis.gradient_samples import GradientSamples
from trainers.engine.folder import RunFolder
from trainers.engine.optimizers import moments_reader
from trainers.engine.run import Run, train
from trainers.engine.setup import Setup
from trainers.figures.paper import draw_gradients
from trainers.results.folders import read_series
from trainers.system.errors import ConfigError
from trainers.tasks.images.task import ImageClassification

A_DECADE = 40  # log-spaced measurements per decade


def measured_updates(total: int, every: int) -> list[int]:
    """The first and every n-th update, or forty per decade if n is 0.

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

    def __init__(self, config: AnalysisConfig, setup: Setup, folder: RunFolder, *more: Any) -> None:
        super().__init__(config, setup, folder, *more)
        try:
            self.sample = ParameterSample(self.model.trainable_variables, config.sampled_parameters, config.seed)
        except ValueError as error:  # with the library's message
            raise ConfigError(str(error)) from error
        self.measured = measured_updates(self.plan.total_steps, config.measure_every)
        self.numbers = {update: number for number, update in enumerate(self.measured)}
        self.gradients = GradientSamples(
            self.model, self.sample, self.data.train, config.batch_size, config.gradient_samples, config.seed
        )
        self._read = moments_reader(self.optimizer, self.sample)
        self._variation: dict[str, float] = {}

    def _stops(self) -> list[int]:
        return sorted({*super()._stops(), *(stop for t in self.measured for stop in (t - 1, t))})

    def _segment(self, batches: Any, first: int, last: int, progress: Any) -> None:
        number = self.numbers.get(last)
        # The gradient's distribution belongs to the weights before the update.
        found = {} if number is None else quantiles(coefficient_of_variation(self.gradients.draw(number)))
        self._variation = {f"gradient_cv_{name}": value for name, value in found.items()}
        super()._segment(batches, first, last, progress)

    def _record(self, last: int) -> dict[str, Any]:
        record = super()._record(last)
        return record | self._statistics() if last in self.numbers else record

    def _statistics(self) -> dict[str, float]:
        m, v = self._read()
        updates = quantiles(update_magnitudes(self.optimizer, m, v))
        statistics = self._variation | {"moment_correlation": correlation(m, v)}
        return statistics | {f"update_{name}": value for name, value in updates.items()}

    def _work(self, first: int, last: int) -> int:
        # In backward passes: those of the measurements, and one per step.
        measurements = bisect.bisect_right(self.measured, last) - bisect.bisect_right(self.measured, first)
        return last - first + measurements * self.config.gradient_samples


class GradientAnalysis(ImageClassification):
    """The image classifier, under the name of the analysis."""

    name = "gradient_analysis"
    config_class = AnalysisConfig


def analyse(config: AnalysisConfig) -> str:
    """Trains, measures, writes gradient_analysis as .csv, .svg, .png and .pdf, and returns the findings."""
    train(GradientAnalysis(), config, MeasuredRun)
    folder = pathlib.Path(config.output_dir)
    series = read_series(folder)
    draw_gradients(folder, series, f"One run on {config.dataset}, seed {config.seed}.")
    lines = [*findings(series), f"written: {folder}/gradient_analysis.csv, .svg, .png, .pdf"]
    return "\n".join(lines)
