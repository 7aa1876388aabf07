"""Copies the small files behind the verdicts: results and configuration of sweeps and gradient analyses.

python -m trainers.keep runs/reproduce --output=docs/results
"""

from trainers.engine.program import imported_late, run_program
from trainers.reproduction.config import KeepConfig

if __name__ == "__main__":
    run_program(KeepConfig, imported_late("trainers.reproduction.keeping", "keep"))
