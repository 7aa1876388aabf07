"""The time of a run as extrapolated by `--dry_run`, divided by what the run took.

Command: `python -m benchmarks.dry_run`. Each case runs in its own process. The machine must be otherwise idle.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

CASES = {
    "784-200-100-50-10, batch 256": "image_classification --batch_size=256 --steps=3000 --log_every=50",
    "residual network, batch 1,000": "image_classification --model=small_resnet --batch_size=1000 --steps=60",
    "language model, 32 x 128 words": "language_modeling --batch_size=32 --width=256 --steps=24 --nobaselines",
    "translator, 8,192 subwords": "machine_translation --max_tokens=8192 --pairs=9000 --steps=12",
}
RECORDS = ("--log_every=2", "--checkpoint_every=10000", "--nosave_models", "--noprogress")
GOAL = 0.25


def measure(task: str, arguments: list[str]) -> None:
    """Extrapolates, then runs, in this process."""
    from trainers.engine.description import measure
    from trainers.engine.program import parse_arguments
    from trainers.engine.run import train
    from trainers.engine.setup import Setup
    from trainers.results.folders import read_records
    from trainers.tasks import CONFIGS, load_task

    with tempfile.TemporaryDirectory() as folder:
        config = parse_arguments(CONFIGS[task], [*RECORDS, *arguments, f"--output_dir={folder}/run"])
        times = measure(Setup(config, load_task(task)))
        train(load_task(task), config)
        records = read_records(pathlib.Path(folder) / "run")
    first, last = records[0], records[-1]  # after the first, everything is compiled; the last precedes its validation
    validations = sum("val_loss" in record for record in records[:-1])
    predicted = times.update * (last["step"] - first["step"]) + times.validation * validations
    seconds = last["seconds"] - first["seconds"]
    verdict = "reached" if abs(predicted / seconds - 1) <= GOAL else "MISSED"
    print(f"{predicted / seconds:.2f} of {seconds:.1f} s, {validations} validations ({verdict})")


def main() -> None:
    if sys.argv[1:]:
        measure(sys.argv[1], sys.argv[2:])
        return
    print(f"extrapolated / measured, goal: within {GOAL:.0%} of 1")
    for name, case in CASES.items():
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [sys.executable, "-m", "benchmarks.dry_run", *case.split()]
        output = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        print(f"{name:32} {output.splitlines()[-1]}", flush=True)


if __name__ == "__main__":
    main()
