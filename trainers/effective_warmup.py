"""Draws the paper's warmup factors, and their effective periods over beta_2.

python -m trainers.effective_warmup --output_dir=runs/warmups
"""

import os

from trainers.engine.program import imported_late, run_program
from trainers.figures.config import WarmupConfig

if __name__ == "__main__":
    os.environ["KERAS_BACKEND"] = "numpy"  # nothing is trained here: Keras without TensorFlow starts in half the time
    run_program(WarmupConfig, imported_late("trainers.figures.programs", "draw_warmups"))
