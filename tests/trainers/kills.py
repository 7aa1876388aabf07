"""Stops a run again and again at random moments inside chosen phases, by real signals to real processes.

`python -m tests.trainers.kills '{...}'` is one start of the run, which sends itself a signal.
"""

import functools
import json
import os
import pathlib
import random
import signal
import sys
import threading
import time

from tests.trainers.helpers import BASE, program
from tests.trainers.tiny import Tiny
from trainers.engine.checkpoint import Checkpoints
from trainers.engine.flags import make_config
from trainers.engine.folder import RunFolder
from trainers.engine.run import Run, train
from trainers.system import signals
from trainers.tasks import CONFIGS, load_task

TASKS = {"tiny": Tiny(), **{name: load_task(name) for name in CONFIGS}}
PHASES = {
    "training": (Run, "_take"),
    "validation": (Run, "_validate"),
    "checkpoint": (Checkpoints, "save"),
    "save": (RunFolder, "save_model"),
}
TRIES = 5
LIMIT = 120  # seconds that a start may take


class Stage:
    """What a run tells in files that survive a kill: its phase, and the steps it has finished."""

    def __init__(self, folder):
        self.phase, self.finished = (pathlib.Path(f"{folder}.{name}") for name in ("phase", "finished"))

    def read(self):
        phase = read(self.phase)
        self.phase.unlink(missing_ok=True)
        return phase, int(read(self.finished) or 0)


def read(path):
    return path.read_text() if path.exists() else ""


def write_whole(path, text):
    """Writes a file so that a kill leaves the old text or the new."""
    temporary = path.with_suffix(f"{path.suffix}.new")
    temporary.write_text(text)
    temporary.replace(path)


def watch(stage, name, on_entry):
    """Makes a phase record when it is entered and left."""
    owner, method = PHASES[name]
    original = getattr(owner, method)

    @functools.wraps(original)
    def watched(self, *arguments, **options):
        outer = read(stage.phase)
        write_whole(stage.phase, name)
        on_entry(name)
        result = original(self, *arguments, **options)
        write_whole(stage.phase, outer)
        if name == "training":
            write_whole(stage.finished, str(self.step))
        return result

    setattr(owner, method, watched)


def main(task, options, phase, entry, delay, number):
    """Trains, and sends itself the signal shortly after it enters the phase for the n-th time; anywhere: a step."""
    signals.listen()
    entries = []

    def send():
        time.sleep(delay)
        os.kill(os.getpid(), number)

    def on_entry(name):
        if name == phase or (phase == "anywhere" and name == "training"):
            entries.append(name)
            if len(entries) == entry:
                threading.Thread(target=send, daemon=True).start()

    for name in PHASES:
        watch(Stage(options["output_dir"]), name, on_entry)
    try:
        train(TASKS[task], make_config(TASKS[task].config_class, options))
    except signals.StopRequested as stop:
        sys.exit(stop.exit_code)


def newest_checkpoint(folder):
    steps = [int(path.stem.partition("-")[2]) for path in (pathlib.Path(folder) / "checkpoints").glob("*.npz")]
    return max(steps, default=0)


def stop_again_and_again(folder, phases, number=signal.SIGKILL, task="tiny", seconds=0.02, **options):
    """Stops a run once in each of the phases, lets it end, and returns what the stops hit."""
    options = {**(BASE if task == "tiny" else {}), "output_dir": str(folder), **options}
    stage, generator, stops = Stage(folder), random.Random(0), []

    def start(phase=None, entry=0, delay=0.0):
        process = program("tests.trainers.kills", json.dumps([task, options, phase, entry, delay, number]))
        _, errors = process.communicate(timeout=LIMIT)
        return process.returncode, errors

    for phase in phases:
        longest = seconds
        for _ in range(TRIES):
            # A short run validates and saves once, at its end: the second time would never come.
            entry = 1 if phase in ("validation", "save") else generator.randint(1, 2)
            code, _ = start(phase, entry, generator.uniform(0, longest))
            hit, finished = stage.read()
            stops.append({"code": code, "hit": hit, "finished": finished, "checkpoint": newest_checkpoint(folder)})
            if hit == phase or phase == "anywhere" or code == 0:
                break
            longest /= 4  # the phase was over too soon
    code, errors = start()
    assert code == 0, errors[-3000:]
    return stops


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
