"""What a dynamic warmup and its rivals cost, and how well its sample of parameters represents all of them.

Command: `python -m benchmarks.dynamic_warmup [--rounds=15]`. One optimizer step at 29.9 M parameters in 70 variables,
during a dynamic warmup, after its end and with every other method of the study, on every backend, each in its own
process, compared with untuned linear warmup. Then the cosine of two gradients with a common part, over the sample and
over all parameters.
"""

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import optimizer_workers
from benchmarks.timing import interleaved, milliseconds, print_goals, print_medians, print_ratios, ratio

GOAL = 1.05
DURING, AFTER, LINEAR = "during a dynamic warmup", "after it", "untuned linear warmup"
BACKENDS = {"tensorflow": ("graph", "loop"), "torch": ("torch",), "jax": ("JAX",)}


def optimizers() -> dict[str, Callable[[], Any]]:
    import tfwarmup

    return {
        DURING: lambda: tfwarmup.Adam(warmup="dynamic"),
        AFTER: lambda: tfwarmup.Adam(beta_2=0.9, warmup="dynamic"),  # over after 20 updates
        LINEAR: lambda: tfwarmup.Adam(warmup="untuned_linear"),
        "no warmup": tfwarmup.Adam,
        "radam": tfwarmup.RAdam,
        "root": lambda: tfwarmup.Adam(warmup="root"),
        "gi_adam": lambda: tfwarmup.Adam(gradient_init=True),
        "stable_adam": lambda: tfwarmup.Adam(clip_update_rms=True),
    }


def compare_times(backend: str, rounds: int) -> None:
    """Compares the times of a step, in the process of that backend."""
    makers = getattr(optimizer_workers, backend)("large", optimizers)
    for mode in BACKENDS[backend]:
        during, after, linear, *rivals = names = [f"{name}, {mode}" for name in optimizers()]
        steps = {name: makers[name]() for name in names}
        contenders = {name: (lambda step=step: _per_step(step)) for name, step in steps.items()}
        interleaved(contenders, 5)  # warm caches and compilers, and let the short warmup end
        times = interleaved(contenders, rounds)
        print_medians(times)
        print_goals([(f"{name} / {linear}", ratio(times, name, linear), GOAL) for name in (during, after)])
        print_ratios([(f"{name} / {linear}", ratio(times, name, linear)) for name in rivals])


def _per_step(step: Any) -> float:
    per_call = getattr(step, "steps", 1)
    return milliseconds(step, max(1, 5 // per_call)) / per_call


def show_error(seeds: int = 20) -> None:
    """Prints the largest difference over seeds between the cosine of the sample and that of all parameters."""
    from tfwarmup.optimizers.watching import sampled_strides

    sizes = [math.prod(shape) for shape in optimizer_workers.SHAPES["large"]]
    strides = sampled_strides(sizes)
    errors = []
    for seed in range(seeds):
        generator = np.random.default_rng(seed)
        whole, sampled = np.zeros(3), np.zeros(3)
        for place, size in enumerate(sizes):
            common, first, second = generator.standard_normal((3, size), np.float32)
            first, second = first + 0.3 * common, second + 0.3 * common
            whole += _products(first, second)
            if place in strides:
                sampled += _products(first[:: strides[place]], second[:: strides[place]])
        errors.append(abs(_cosine(sampled) - _cosine(whole)))
    print(f"Cosine over the sample - cosine over all parameters, {seeds} seeds: at most {max(errors):.4f}")


def _products(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.array([np.sum(a * b, dtype="float64") for a, b in ((first, second), (first, first), (second, second))])


def _cosine(products: np.ndarray) -> float:
    return float(products[0] / math.sqrt(products[1] * products[2]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="measurements per contender")
    parser.add_argument("--backend", choices=BACKENDS, help="measure only this backend, in this process")
    arguments = parser.parse_args()
    if arguments.backend:
        compare_times(arguments.backend, arguments.rounds)
        return
    for backend in BACKENDS:
        command = [sys.executable, "-m", "benchmarks.dynamic_warmup", f"--backend={backend}"]
        environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
        subprocess.run([*command, f"--rounds={arguments.rounds}"], env=environment, check=True)
    show_error()


if __name__ == "__main__":
    main()
