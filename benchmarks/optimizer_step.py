"""Milliseconds and peak memory per step of this package's Adam and RAdam and of their rivals, on every backend.

Command: `python -m benchmarks.optimizer_step [--rounds=15]`. On TensorFlow, "graph" is one call per step and "loop" ten
steps per call.

Two sizes: 29.9 M parameters in 70 variables, and 200 variables of 64 x 64. Every framework runs in its own process,
which waits for its turn; `make test-addons` creates the environment of tensorflow-addons. Peak memory is that of a
fresh process per optimizer, above what is resident between two steps.
"""

import argparse
import os
import pathlib
import subprocess
import sys

from benchmarks.timing import interleaved, print_goals, print_medians, print_ratios, ratio

ROOT = pathlib.Path(__file__).parents[1]
ADDONS_PYTHON = ROOT / ".venv-addons/bin/python"
FRAMEWORKS = ("tensorflow", "torch", "jax", "addons")
SIZES = {"large": "29.9 M parameters in 70 variables", "small": "200 variables of 64 x 64"}

# (contender, rival, goal for the ratio of their times), for each size.
GRAPH, XLA, TORCH, JAX = ("tfwarmup RAdam, " + mode for mode in ("graph", "XLA", "torch", "JAX"))
EVERY_SIZE = [
    (GRAPH, "Keras Adam, graph", 0.30),
    ("tfwarmup RAdam, loop", "Keras Adam, loop", 0.30),
    (XLA, "Keras Adam, XLA", 1.0),
    ("tfwarmup RAdam, weight decay, graph", GRAPH, 1.15),
    ("tfwarmup RAdam, weight decay, loop", "tfwarmup RAdam, loop", 1.15),
    ("tfwarmup RAdam, weight decay, XLA", XLA, 1.15),
    (GRAPH, "tensorflow-addons RectifiedAdam", 0.35),
    (JAX, "Keras Adam, JAX", 1.1),
    (JAX, "optax radam", 1.0),
]
WITH_DECAY = [
    (f"tfwarmup RAdam, weight decay, {mode}", f"Keras AdamW, {mode}", goal)
    for mode, goal in {"graph": 0.45, "torch": 0.10, "JAX": 1.1}.items()
]
GOALS = {
    "large": [*EVERY_SIZE, *WITH_DECAY, (TORCH, "Keras Adam, torch", 0.15), (TORCH, "torch fused Adam", 1.3)],
    "small": [*EVERY_SIZE, (TORCH, "Keras Adam, torch", 0.5)],
}
# (framework, contender, rival) whose peak memory is compared.
MEMORY = [
    ("tensorflow", GRAPH, "Keras Adam, graph"),
    ("tensorflow", XLA, "Keras Adam, XLA"),
    ("torch", TORCH, "Keras Adam, torch"),
    ("jax", JAX, "Keras Adam, JAX"),
]


def command(framework: str, *arguments: str) -> list[str]:
    python = str(ADDONS_PYTHON) if framework == "addons" else sys.executable
    return [python, "-m", "benchmarks.optimizer_workers", framework, *arguments]


def environment(framework: str) -> dict[str, str]:
    backend = "tensorflow" if framework == "addons" else framework
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": backend}


class Worker:
    """A process with the optimizers of one framework, which runs one of them on request."""

    def __init__(self, framework: str, size: str) -> None:
        self.process = subprocess.Popen(
            command(framework, size),
            cwd=ROOT,
            env=environment(framework),
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


def compare_times(size: str, rounds: int) -> None:
    available = [framework for framework in FRAMEWORKS if framework != "addons" or ADDONS_PYTHON.exists()]
    workers = [Worker(framework, size) for framework in available]
    contenders = {name: (lambda w=worker, n=name: w.measure(n)) for worker in workers for name in worker.names}
    interleaved(contenders, 1)  # warm caches and compilers
    times = interleaved(contenders, rounds)
    for worker in workers:
        worker.close()
    print(f"One optimizer step, {SIZES[size]}")
    print_medians(times)
    print_goals((f"{a} / {b}", ratio(times, a, b), goal) for a, b, goal in GOALS[size] if b in times)
    floor = "memory floor (7 streams)"
    print_ratios([(f"{GRAPH} / {floor}", ratio(times, GRAPH, floor))])


def peak_megabytes(framework: str, name: str) -> float:
    arguments = command(framework, "large", name)
    answer = subprocess.run(
        arguments, cwd=ROOT, env=environment(framework), stdout=subprocess.PIPE, text=True, check=True
    )
    return float(answer.stdout)


def compare_memory() -> None:
    print(f"Peak memory of a step above variables, moments and gradients, {SIZES['large']}")
    for framework, name, rival in MEMORY:
        ours, theirs = peak_megabytes(framework, name), peak_megabytes(framework, rival)
        reached = "reached" if round(ours) <= round(theirs) else "MISSED"
        print(f"  {name:<30} {ours:7.0f} MB   {rival:<20} {theirs:7.0f} MB   goal: no more   {reached}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="measurements per contender")
    rounds = parser.parse_args().rounds
    for size in SIZES:
        compare_times(size, rounds)
    compare_memory()


if __name__ == "__main__":
    main()
