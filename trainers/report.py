"""Makes one page of runs: the paper's figures, tables and claims with the numbers measured here.

python -m trainers.report runs --output=report.html
"""

import os

if __name__ == "__main__":
    # Nothing is trained here: Keras without TensorFlow starts in half the time.
    os.environ["KERAS_BACKEND"] = "numpy"
    from trainers.engine.program import run_program
    from trainers.reports.program import ReportConfig, report

    run_program(ReportConfig, report)
