"""Tools that the tests of the engine share."""

import contextlib
import json
import os
import pathlib
import stat
import subprocess
import sys
import time

import keras
import numpy as np
import pytest

from tests.trainers.forks import QUIET, ROOT, Forked
from tests.trainers.tiny import Tiny, TinyConfig
from trainers.engine.checkpoint import Checkpoints
from trainers.engine.flags import make_config
from trainers.engine.run import train
from trainers.tasks import CONFIGS

BASE = {
    "batch_size": 40,
    "epochs": 4,
    "log_every": 2,
    "checkpoint_every": 4,
    "learning_rate": 1e-2,
    "beta_2": 0.9,
    "progress": False,
}


def tiny_config(folder, **options):
    return make_config(TinyConfig, {**BASE, "output_dir": str(folder), **options})


def run_tiny(folder, **options):
    """Trains in this process; returns the final weights."""
    train(Tiny(), tiny_config(folder, **options))
    return final_weights(folder)


def final_weights(folder, name="last"):
    model = keras.models.load_model(pathlib.Path(folder) / f"{name}.keras")
    return np.concatenate([np.ravel(w) for w in model.get_weights()])


def records(folder):
    """The lines of metrics.jsonl without the numbers that depend on the machine."""
    lines = [json.loads(line) for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()]
    return [
        {key: value for key, value in line.items() if not key.endswith(("_per_second", "seconds"))} for line in lines
    ]


def stored_checkpoint(folder):
    """The newest checkpoint: its header without what depends on the machine, and its arrays."""
    path = sorted((folder / "checkpoints").glob("step-*.npz"))[-1]
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    header = json.loads(arrays.pop("header").tobytes())
    del header["seconds"]
    return header, arrays


@contextlib.contextmanager
def stopped_at_a_checkpoint(number=1):
    """Interrupts runs inside, as Ctrl-C does, right after they have written their nth checkpoint."""
    save, saved = Checkpoints.save, []

    def save_and_stop(self, *arguments):
        save(self, *arguments)
        saved.append(1)
        if len(saved) == number:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "save", save_and_stop)
        with pytest.raises(KeyboardInterrupt):
            yield


def snapshot(folder):
    """Every file with its content, every other thing with its kind."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        found[path] = path.read_bytes() if stat.S_ISREG(mode) else stat.S_IFMT(mode)
    return found


def status(folder):
    return (pathlib.Path(folder) / "status").read_text()


# Programs that spend most of their time on importing TensorFlow.
FORKED = (
    *(f"tests.trainers.{name}" for name in ("tiny", "tiny_sweep", "kills")),
    *(f"trainers.{name}" for name in (*CONFIGS, "gradient_analysis", "simulate")),
)


def program(module, *arguments, process_group=None, fresh=False, **environment):
    """Starts `python -m module` with flags; `process_group=0` gives it a group of its own.

    Programs that train are forks of a process that has imported TensorFlow, unless they must be `fresh`.
    """
    if module in FORKED and not fresh:
        return Forked(module, arguments, environment, process_group)
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, **QUIET, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=process_group,
    )


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def tiny_flags(folder, **options):
    values = {**BASE, "output_dir": str(folder), **options}
    return [f"--{key}={json.dumps(value) if isinstance(value, bool) else value}" for key, value in values.items()]


def finish(process, code=0, seconds=300):
    """Waits for a program, and kills one that takes too long; returns its output."""
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    assert process.returncode == code, errors[-3000:]
    return output, errors
