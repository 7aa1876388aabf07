"""Time and memory as estimated by `--dry_run`, compared with a run on this machine.

Command: `python -m benchmarks.dry_run`. Each case runs in its own process. The machine must be otherwise idle.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

CASES = {
    "784-200-100-50-10, batch 2,048": "image_classification --batch_size=2048 --steps=200",
    "residual network, batch 1,000": "image_classification --model=small_resnet --batch_size=1000 --steps=12",
    "language model, 32 x 128 words": "language_modeling --batch_size=32 --width=256 --steps=12 --nobaselines",
    "translator, 8,192 subwords": "machine_translation --max_tokens=8192 --pairs=9000 --steps=10",
}
SMALL = 200e6  # bytes; below this, the overhead of the process dominates
GOAL = 0.25


def resident(field: str) -> float:
    """Resident memory of this process in bytes: VmRSS is the current value, VmHWM the peak."""
    return float(re.search(rf"{field}:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1]) * 1024


def measure(arguments: list[str]) -> None:
    """Estimates, then takes the steps of a run, in this process."""
    import tensorflow as tf

    from trainers.engine.dry_run import estimate, seconds_here
    from trainers.engine.flags import parse_arguments
    from trainers.engine.setup import Setup
    from trainers.engine.step import Sums
    from trainers.tasks import CONFIGS, load_task

    with tempfile.TemporaryDirectory() as folder:
        config = parse_arguments(CONFIGS[arguments[0]], [*arguments[1:], f"--output_dir={folder}/run"])
        setup = Setup(config, load_task(arguments[0]))
        found = estimate(setup)
        iterator = iter(setup.training(0))
        setup.stepper.train(iterator, tf.constant(0), Sums.none())  # compiles
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        before = resident("VmRSS")
        setup.stepper.train(iterator, tf.constant(2), Sums.none()).loss.numpy()
        memory = resident("VmHWM") - before
        began = time.perf_counter()
        setup.stepper.train(iterator, tf.constant(found.updates), Sums.none()).loss.numpy()
        seconds = time.perf_counter() - began
        share = found.flops_of_validation / (found.updates * found.flops_per_update)
        predicted = seconds_here(setup, found) / (1 + share)  # of the updates alone
    activations = found.total_bytes - found.weight_bytes - found.optimizer_bytes
    ratios = {"time": predicted / seconds, "memory": activations / memory}
    print(json.dumps({**ratios, "seconds": seconds, "bytes": memory}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", nargs="+", help=argparse.SUPPRESS)
    arguments, more = parser.parse_known_args()
    if arguments.case:
        measure([*arguments.case, *more])
        return
    print("estimate / measured, goal: within 25 % of 1")
    for name, case in CASES.items():
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [sys.executable, "-m", "benchmarks.dry_run", "--case", *case.split()]
        output = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        ratios = json.loads(output.splitlines()[-1])
        verdicts = {kind: "reached" if abs(ratios[kind] - 1) <= GOAL else "MISSED" for kind in ("time", "memory")}
        if ratios["bytes"] < SMALL:
            verdicts["memory"] = "too little to judge"
        print(
            f"{name:32} time {ratios['time']:.2f} of {ratios['seconds']:.1f} s ({verdicts['time']}), "
            f"memory {ratios['memory']:.2f} of {ratios['bytes'] / 1e6:.0f} MB ({verdicts['memory']})"
        )


if __name__ == "__main__":
    main()
