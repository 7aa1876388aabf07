"""Writes a report on runs, on one page: the paper's figures, tables and claims with your measurements.

python -m trainers.report runs --output=report.html
"""

import os

from trainers.engine.program import imported_late, run_program
from trainers.reports.config import ReportConfig

if __name__ == "__main__":
    os.environ["KERAS_BACKEND"] = "numpy"  # nothing is trained here: Keras without TensorFlow starts in half the time
    run_program(ReportConfig, imported_late("trainers.reports.program", "report"))
