"""The programs that run the paper's experiments: the only place with flags."""

import os
import sys

# Before TensorFlow starts: the trainers run on it, and its notes about this machine's CPU are not for the user.
LOG_LEVEL, QUIET_LEVEL = "TF_CPP_MIN_LOG_LEVEL", "2"
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault(LOG_LEVEL, QUIET_LEVEL)
# A task of one's own may have imported TensorFlow before, and with it jax, which sets 1 where nobody has set a level.
if "tensorflow" in sys.modules and os.environ[LOG_LEVEL] == "1":
    os.environ[LOG_LEVEL] = QUIET_LEVEL
