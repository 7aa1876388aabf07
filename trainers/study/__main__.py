"""Sums up a study of warmups and their rivals: what each method reaches, and where it fails to train.

python -m trainers.study docs/results --output_dir=study
"""

import os

from trainers.engine.program import imported_late, run_program
from trainers.study.config import StudyConfig

if __name__ == "__main__":
    os.environ["KERAS_BACKEND"] = "numpy"  # nothing is trained here: Keras without TensorFlow starts in half the time
    run_program(StudyConfig, imported_late("trainers.study.program", "sum_up"))
