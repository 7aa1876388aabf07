"""Draws the paper's warmup factors, and their effective periods over beta_2.

python -m trainers.effective_warmup --output_dir=runs/warmups
"""

from trainers.engine.program import imported_late, run_program
from trainers.figures.config import WarmupConfig

if __name__ == "__main__":
    run_program(WarmupConfig, imported_late("trainers.figures.programs", "draw_warmups"))
