"""Disturbs a sweep with a chief and three workers at random moments: real signals to real processes, and a full disk.

`python -m tests.trainers.chaos FOLDER SEED` prints as JSON what it did. TensorFlow is imported once, and every chief
and worker is a fork: a start then takes a second. The undisturbed sweep is in FOLDER/calm, the other in
FOLDER/disk/sweep.
"""

import contextlib
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time
import traceback

from tests.trainers.tiny_sweep import CONFIG, SMALL
from trainers.engine import signals
from trainers.engine.errors import IncompleteError
from trainers.engine.flags import ConfigError, make_config
from trainers.sweeps.sweep import sweep

GRID = {"learning_rates": (1e-3, 1e-2), "beta_2s": (0.9,), "warmups": ("none", "radam", "untuned_linear")}
LENGTH = {"steps": 24, "log_every": 4, "checkpoint_every": 4, "step_seconds": 0.04}
FEW, ALL = (1, 2), (1, 2, 3, 4)  # seeds
WORKERS = ("worker0", "worker1", "worker2")
CHIEF = "chief"
TIMEOUT = 4.0  # seconds that a worker may be silent
LIMIT = 240  # seconds in all
EVENTS = ("kill worker", "kill worker", "kill chief", "kill chief", "kill all", "fill", "stop worker", "add seeds")
DISK = "size=12m"


def settings(folder, seeds):
    values = {**SMALL, **GRID, **LENGTH, "seeds": seeds, "worker_timeout": TIMEOUT, "output_dir": str(folder)}
    return make_config(CONFIG, values)


def fork(log, config, **environment):
    """A process that runs a sweep, in the role that its environment gives it."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        with log.open("a") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.environ |= environment
        signals.listen()
        sweep(config)
        code = 0
    except IncompleteError as error:
        print("incomplete:", error, error.advice, flush=True)
        code = 4
    except ConfigError as error:
        print("error:", error, flush=True)
        code = 2
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


class Cast:
    """The chief and the workers: those that are alive, and how the chief ended."""

    def __init__(self, folder, logs):
        self.folder, self.logs, self.seeds = folder, logs, FEW
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = str(probe.getsockname()[1])
        self.alive, self.done, self.codes = {}, False, []

    def start(self):
        """Starts every process that is not running."""
        for name in (CHIEF, *WORKERS):
            if name not in self.alive:
                role = {"KERASTUNER_TUNER_ID": name, "KERASTUNER_ORACLE_IP": "127.0.0.1"}
                role["KERASTUNER_ORACLE_PORT"] = self.port
                self.alive[name] = fork(self.logs / f"{name}.log", settings(self.folder, self.seeds), **role)

    def collect(self):
        """Records which processes have ended."""
        for name, process in list(self.alive.items()):
            ended, code = os.waitpid(process, os.WNOHANG)
            if ended:
                del self.alive[name]
                if name == CHIEF:
                    self.codes.append(os.waitstatus_to_exitcode(code))
                    self.done = self.codes[-1] == 0 and self.seeds == ALL

    def send(self, names, number):
        for name in names:
            if name in self.alive:
                os.kill(self.alive[name], number)

    def end(self):
        self.send(list(self.alive), signal.SIGKILL)
        for process in self.alive.values():
            os.waitpid(process, 0)


def fill(disk):
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while file.write(b"0" * 4096):
            pass


def happen(event, cast, disk, generator):
    worker = generator.choice(WORKERS)
    if event == "kill worker":
        cast.send([worker], signal.SIGKILL)
    elif event == "kill chief":
        cast.send([CHIEF], signal.SIGKILL)
    elif event == "kill all":
        cast.send([CHIEF, *WORKERS], signal.SIGKILL)
    elif event == "add seeds":
        cast.seeds = ALL
        cast.send([CHIEF], signal.SIGTERM)
    elif event == "stop worker":
        cast.send([worker], signal.SIGSTOP)
        time.sleep(2 * TIMEOUT)
        cast.send([worker], signal.SIGCONT)
    elif event == "fill":
        fill(disk)
        time.sleep(generator.uniform(1, 3))
        (disk / "filler").unlink()


def disturb(cast, disk, generator, fillable):
    """Triggers every event once, after random pauses, and waits for the end."""
    events = [event for event in EVENTS if fillable or event != "fill"]
    generator.shuffle(events)
    happened, deadline = [], time.monotonic() + LIMIT
    upcoming = time.monotonic() + generator.uniform(3, 6)
    while not cast.done and time.monotonic() < deadline:
        cast.collect()
        if cast.done:
            break
        cast.start()
        if events and time.monotonic() > upcoming:
            happened.append(events.pop())
            happen(happened[-1], cast, disk, generator)
            upcoming = time.monotonic() + generator.uniform(1, 4)
        time.sleep(0.1)
    return happened


def main(folder, seed):
    logs, disk = folder / "logs", folder / "disk"
    logs.mkdir()
    disk.mkdir()
    _, code = os.waitpid(fork(logs / "calm.log", settings(folder / "calm", ALL)), 0)
    mount = ["mount", "-t", "tmpfs", "-o", DISK, "tmpfs", str(disk)]
    fillable = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    began, cast = time.monotonic(), Cast(disk / "sweep", logs)
    try:
        happened = disturb(cast, disk, random.Random(seed), fillable)
    finally:
        cast.end()
    said = {"calm": os.waitstatus_to_exitcode(code), "done": cast.done, "happened": happened, "chief": cast.codes}
    print(json.dumps({**said, "fillable": fillable, "seconds": round(time.monotonic() - began)}))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
