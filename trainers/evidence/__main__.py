"""Judges sweeps: prints every difference between methods with its intervals and the verdict, and draws them.

python -m trainers.evidence runs --output_dir=evidence
"""

import os

from trainers.engine.program import imported_late, run_program
from trainers.evidence.config import EvidenceConfig

if __name__ == "__main__":
    os.environ["KERAS_BACKEND"] = "numpy"  # nothing is trained here: Keras without TensorFlow starts in half the time
    run_program(EvidenceConfig, imported_late("trainers.evidence.program", "judge_sweeps"))
