"""The programs that run the paper's experiments: the only place with flags."""

import os

# Before TensorFlow starts: the trainers run on it, and its notes about this machine's CPU are not for the user.
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
