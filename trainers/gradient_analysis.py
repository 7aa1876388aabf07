"""Trains the paper's small network and measures what its figure 1 shows: gradient noise, moments, update sizes.

python -m trainers.gradient_analysis --flagfile=configs/embedded/gradient_analysis.flags --output_dir=runs/analysis
"""

import pathlib

from trainers.analysis.findings import findings
from trainers.analysis.measured_run import AnalysisConfig, MeasuredRun
from trainers.analysis.series import read_series
from trainers.engine.program import run_program
from trainers.engine.run import train
from trainers.figures.gradients import draw_gradients
from trainers.tasks.image_classification import ImageClassification


class GradientAnalysis(ImageClassification):
    """The image classifier, under the name of the analysis."""

    name = "gradient_analysis"
    config_class = AnalysisConfig


def analyse(config: AnalysisConfig) -> str:
    """Trains, measures, writes gradient_analysis.csv, .svg and .png, and returns the findings beside the paper's."""
    train(GradientAnalysis(), config, MeasuredRun)
    folder = pathlib.Path(config.output_dir)
    series = read_series(folder)
    draw_gradients(folder, series)
    lines = [*findings(series), f"written: {folder}/gradient_analysis.csv, .svg, .png"]
    return "\n".join(lines)


if __name__ == "__main__":
    run_program(AnalysisConfig, analyse)
