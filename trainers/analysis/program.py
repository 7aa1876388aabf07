"""The program of the gradient analysis."""

import pathlib

from trainers.analysis.config import AnalysisConfig
from trainers.analysis.findings import findings
from trainers.analysis.measured_run import MeasuredRun
from trainers.analysis.series import read_series
from trainers.engine.run import train
from trainers.figures.gradients import draw_gradients
from trainers.tasks.images.task import ImageClassification


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
