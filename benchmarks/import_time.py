"""What `import tfwarmup` costs on top of `import keras`, in fresh processes.

Command: `python -m benchmarks.import_time`.
"""

import os
import subprocess
import sys

from benchmarks.timing import interleaved, print_goals, print_medians

CODE = "import keras, time; t = time.perf_counter(); import tfwarmup; print(time.perf_counter() - t)"


def seconds(backend):
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    result = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    return float(result.stdout)


def main():
    backends = ("tensorflow", "jax", "torch")
    times = interleaved({backend: (lambda b=backend: seconds(b)) for backend in backends}, 5)
    print("import tfwarmup, after import keras")
    print_medians(times, "s")
    print_goals((backend, sorted(times[backend])[2], 0.1) for backend in backends)


if __name__ == "__main__":
    main()
