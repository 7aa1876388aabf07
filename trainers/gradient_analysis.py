"""Trains the paper's small network and measures what its figure 1 shows: gradient noise, moments, update sizes.

python -m trainers.gradient_analysis --flagfile=configs/embedded/gradient_analysis.flags --output_dir=runs/analysis
"""

from trainers.analysis.config import AnalysisConfig
from trainers.engine.program import imported_late, run_program

if __name__ == "__main__":
    run_program(AnalysisConfig, imported_late("trainers.analysis.measured_run", "analyse"))
