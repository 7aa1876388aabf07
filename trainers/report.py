"""Writes a report on runs, on one page: the paper's figures, tables and claims with your measurements.

python -m trainers.report runs --output=report.html
"""

from trainers.engine.program import run_program
from trainers.reports.program import ReportConfig, report

if __name__ == "__main__":
    run_program(ReportConfig, report)
