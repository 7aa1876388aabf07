"""A sweep that takes seconds, with trials that can go wrong; `python -m tests.trainers.tiny_sweep` is its program."""

import dataclasses
import os
import pathlib
import signal
import time

from tests.trainers.helpers import program
from tests.trainers.tiny import Tiny, TinyConfig
from trainers.engine.flags import BY_CONTENT, make_config, option
from trainers.engine.program import run_program
from trainers.results.results_csv import read_results
from trainers.sweep import sweep
from trainers.sweeps.space import sweep_config_class
from trainers.system.errors import DataError
from trainers.tasks import CONFIGS, register

LIMIT = 100  # seconds that a trial may wait for its gate


@dataclasses.dataclass(frozen=True)
class TroubledConfig(TinyConfig):
    deadly_seed: int = option(-1, "Seed of the runs that kill their process.", identity=False)
    broken_seed: int = option(-1, "Seed of the runs that raise an error.", identity=False)
    waiting_seed: int = option(-1, "Seed of the runs that wait until the file `gate` exists.", identity=False)
    gate: str = option("", "File that these runs wait for.", identity=False)
    data: str = option("", "Folder that must exist, optionally with a file `rows`.", identity=BY_CONTENT)


class Troubled(Tiny):
    """Tiny, with trouble on demand."""

    name = "troubled"
    config_class = TroubledConfig

    def load(self, config):
        if config.data and not pathlib.Path(config.data).exists():
            raise DataError(f"--data must be a folder. Received: {config.data}")
        rows = pathlib.Path(config.data) / "rows"
        return super().load(dataclasses.replace(config, rows=int(rows.read_text())) if rows.is_file() else config)

    def fill_folder(self, folder, config, data):
        (folder / "gpus").write_text(os.environ.get("CUDA_VISIBLE_DEVICES", "all"))
        if config.seed == config.deadly_seed:
            os.kill(os.getpid(), signal.SIGKILL)
        if config.seed == config.broken_seed:
            raise RuntimeError("no such luck")
        deadline = time.monotonic() + LIMIT
        while config.seed == config.waiting_seed and not pathlib.Path(config.gate).exists():
            if time.monotonic() > deadline:
                raise TimeoutError(config.gate)
            time.sleep(0.05)


TASK = Troubled()
register(TASK)
CONFIG = sweep_config_class(TASK.name)
del CONFIGS[TASK.name]  # other tests look through this table; the task is still loaded by its name
SMALL = {
    "task": TASK.name,
    "learning_rates": (1e-3, 1e-2),
    "beta_2s": (0.9,),
    "warmups": ("none", "radam"),
    "seeds": (1, 2),
    "steps": 6,
    "batch_size": 40,
    "log_every": 2,
    "checkpoint_every": 2,
    "progress": False,
}


def settings(folder, **options):
    """Settings of a sweep in the process of the tests, where TensorFlow is already in use."""
    return make_config(CONFIG, {**SMALL, "threads": 0, "output_dir": str(folder), **options})


def start(folder, environment=None, process_group=None, **options):
    """Starts the program as a user would."""
    values = {**SMALL, "output_dir": str(folder), **options}
    del values["progress"]
    flags = [f"--{name}={_text(value)}" for name, value in values.items() if name != "sweep"]
    flags += [f"--sweep={axis}" for axis in values.get("sweep", ())]
    # Ray starts from a process without TensorFlow.
    fresh = bool({"workers", "ray_address"} & options.keys()) or environment is not None
    how = {"process_group": process_group, "fresh": fresh, **(environment or {})}
    return program("tests.trainers.tiny_sweep", "--noprogress", *flags, **how)


def values_of(folder):
    """The result of every trial, by its hyperparameters."""
    return {
        tuple(sorted(result.values.items())): (result.status, result.objective, dict(result.metrics))
        for result in read_results(pathlib.Path(folder))
    }


def _text(value):
    return ",".join(map(str, value)) if isinstance(value, tuple) else value


if __name__ == "__main__":
    run_program(CONFIG, sweep)
