"""Milliseconds a step of this package's Adam and RAdam and of their rivals, over 30 M parameters in 70 variables.

Command: `python -m benchmarks.optimizer_step [--rounds=15]`.

Every framework is a process of its own that waits for its turn; `make test-addons` makes the one of tensorflow-addons.
"""

import argparse
import os
import pathlib
import subprocess
import sys

from benchmarks.timing import interleaved, print_goals, print_medians, ratio

ROOT = pathlib.Path(__file__).parents[1]
ADDONS_PYTHON = ROOT / ".venv-addons/bin/python"
WORKERS = {"tensorflow": sys.executable, "torch": sys.executable, "jax": sys.executable, "addons": str(ADDONS_PYTHON)}


class Worker:
    """A process with the optimizers of one framework, which runs one of them when it is asked to."""

    def __init__(self, framework: str) -> None:
        self.process = subprocess.Popen(
            [WORKERS[framework], "-m", "benchmarks.optimizer_workers", framework],
            cwd=ROOT,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.names = self._line().split("\t")

    def measure(self, name: str) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return float(self._line())

    def close(self) -> None:
        self.process.communicate()

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().rstrip("\n")
        if not line:
            raise RuntimeError(f"A worker died. Received: {self.process.args}")
        return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="how often the contenders take turns")
    rounds = parser.parse_args().rounds
    available = [framework for framework in WORKERS if framework != "addons" or ADDONS_PYTHON.exists()]
    workers = [Worker(framework) for framework in available]
    contenders = {name: (lambda w=worker, n=name: w.measure(n)) for worker in workers for name in worker.names}
    interleaved(contenders, 1)  # warm caches and compilers
    times = interleaved(contenders, rounds)
    for worker in workers:
        worker.close()
    print("One optimizer step, 29.9 M parameters in 70 variables")
    print_medians(times)
    pairs = [
        ("tfwarmup RAdam, graph", "Keras Adam, graph", 0.35),
        ("tfwarmup RAdam, XLA", "Keras Adam, XLA", 1.05),
        ("tfwarmup RAdam, graph", "tensorflow-addons RectifiedAdam", 0.35),
        ("tfwarmup RAdam, graph", "tfwarmup Adam, graph", 1.1),
    ]
    print_goals((f"{a} / {b}", ratio(times, a, b), goal) for a, b, goal in pairs if b in times)
    floor = "memory floor (7 streams)"
    print(f"  {'tfwarmup RAdam, graph / ' + floor:<66} {ratio(times, 'tfwarmup RAdam, graph', floor):7.3f}")


if __name__ == "__main__":
    main()
