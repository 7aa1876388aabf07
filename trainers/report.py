"""Writes a report on runs, on one page: the paper's figures, tables and claims with your measurements.

python -m trainers.report runs --output=report.html
"""

import os

from trainers.engine.program import run_program
from trainers.reports.program import ReportConfig, report

if __name__ == "__main__":
    os.environ["KERAS_BACKEND"] = "numpy"  # nothing is trained here: Keras without TensorFlow starts in half the time
    run_program(ReportConfig, report)
