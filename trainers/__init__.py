"""The programs that run the paper's experiments: the only place with flags."""

import os
import sys

# Set before TensorFlow is imported: the trainers run on it, and users do not need its notes about the CPU.
LOG_LEVEL, QUIET_LEVEL = "TF_CPP_MIN_LOG_LEVEL", "2"
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault(LOG_LEVEL, QUIET_LEVEL)
# A custom task may have imported TensorFlow before, and with it jax, which sets the level to 1 if it is not set.
if "tensorflow" in sys.modules and os.environ[LOG_LEVEL] == "1":
    os.environ[LOG_LEVEL] = QUIET_LEVEL
