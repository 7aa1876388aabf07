"""Simulates Adam's updates at a local minimum, where gradients are pure noise, and draws how large they are.

python -m trainers.simulate --output_dir=runs/simulation
"""

from trainers.engine.program import imported_late, run_program
from trainers.figures.config import SimulationConfig

if __name__ == "__main__":
    run_program(SimulationConfig, imported_late("trainers.figures.programs", "simulate"))
