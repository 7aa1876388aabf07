"""The roles in a sweep with several processes: a chief, which hands out trials, and workers, which run them.

On several machines, the user starts them with keras-tuner's environment variables KERASTUNER_TUNER_ID,
KERASTUNER_ORACLE_IP and KERASTUNER_ORACLE_PORT. On one machine, the sweep itself is the chief and starts its workers;
it listens only on the loopback address.
"""

import multiprocessing
import os
import pathlib
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from trainers.engine.flags import ConfigError, require
from trainers.engine.processes import POLL_SECONDS, fork
from trainers.engine.signals import StopRequested
from trainers.sweeps.coordinator import SEPARATOR

LOOPBACK, CHIEF = "127.0.0.1", "chief"
TUNER_ID, ADDRESS, PORT = "KERASTUNER_TUNER_ID", "KERASTUNER_ORACLE_IP", "KERASTUNER_ORACLE_PORT"
GPUS, DEVICES = "CUDA_VISIBLE_DEVICES", pathlib.Path("/dev")
RESTARTS = 3  # of workers that ended before they were given a run
SAVING_SECONDS = 120.0  # for a worker to save its run when it is stopped


def role() -> str | None:
    """`chief`, the name of a worker, or None if no role is set."""
    names = (TUNER_ID, ADDRESS, PORT)
    given = [name for name in names if os.environ.get(name)]
    if not given:
        return None
    if len(given) < len(names):
        raise ConfigError(f"A chief and its workers need {', '.join(names)}. Received: only {', '.join(given)}")
    name = os.environ[TUNER_ID]
    require(SEPARATOR not in name, f"{TUNER_ID} must be a name without {SEPARATOR}", name)
    return CHIEF if CHIEF in name else name


def chief_address() -> str:
    return f"{os.environ[ADDRESS]}:{os.environ[PORT]}"


class LocalWorkers:
    """Worker processes on this machine. One that dies is restarted.

    They are forked from a process that does nothing else, because neither TensorFlow nor gRPC may be running in a
    process that forks. What it has imported need not be imported again.

    Args:
        count: Number of workers.
        work: What each worker does, given its name and the address of the chief.
    """

    def __init__(self, count: int, work: Callable[[str, str], Any]) -> None:
        self.address = f"{LOOPBACK}:{_free_port()}"
        self._names, self._work = [f"worker{number}" for number in range(count)], work
        shared = multiprocessing.get_context("fork")
        self._pids = shared.Array("i", count)
        self._handed_out = shared.Value("i", 0)
        self._supervisor = fork(self._supervise)

    def check(self, handed_out: int) -> None:
        """Raises an error if the workers have failed too often. `handed_out` is how many runs they have been given."""
        self._handed_out.value = handed_out
        if self._supervisor.exitcode:
            raise RuntimeError(f"workers ended {RESTARTS} times in a row before they were given a trial")

    def expel(self, name: str) -> bool:
        """Kills a worker that has stopped responding; another takes its place. False if it is not one of these."""
        if name not in self._names:
            return False
        os.kill(self._pids[self._names.index(name)], signal.SIGKILL)
        return True

    def stop(self) -> None:
        """Stops the workers and waits until each has saved its run."""
        self._supervisor.terminate()
        self._supervisor.join(SAVING_SECONDS + 1)
        self._supervisor.kill()
        self._supervisor.join()

    def _supervise(self) -> None:
        workers: dict[str, Any] = {}
        try:
            self._keep_running(workers)
        except StopRequested:
            for worker in workers.values():
                worker.terminate()
            deadline = time.monotonic() + SAVING_SECONDS
            for worker in workers.values():
                worker.join(max(0.0, deadline - time.monotonic()))
                worker.kill()  # a suspended process does not react to SIGTERM
            raise

    def _keep_running(self, workers: dict[str, Any]) -> None:
        """Starts the workers, by their names, and keeps them running until all are done."""
        for name in self._names:
            workers[name] = fork(self._run, name)
        restarts, seen = 0, 0
        while any(worker.exitcode != 0 for worker in workers.values()):
            time.sleep(POLL_SECONDS)
            restarts, seen = (0 if self._handed_out.value > seen else restarts), self._handed_out.value
            for name in [name for name, worker in workers.items() if worker.exitcode]:
                restarts += 1
                if restarts > RESTARTS * len(workers):
                    os._exit(1)
                workers[name] = fork(self._run, name)

    def _run(self, name: str) -> None:
        number = self._names.index(name)
        self._pids[number] = os.getpid()
        gpus = visible_gpus()
        if gpus:  # TensorFlow has not started yet and will respect it
            os.environ[GPUS] = ",".join(gpus[number :: len(self._names)] or [gpus[number % len(gpus)]])
        self._work(name, self.address)


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, by their CUDA names, found without CUDA."""
    named = os.environ.get(GPUS)
    if named is not None:
        return [gpu for gpu in named.split(",") if gpu.strip()]
    found = [path.name.removeprefix("nvidia") for path in DEVICES.glob("nvidia[0-9]*")]
    return sorted(found, key=int)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
