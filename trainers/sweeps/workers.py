"""A sweep by several processes: keras-tuner's chief, which hands out trials, and workers, which run them.

On several machines the user starts them, with keras-tuner's own variables KERASTUNER_TUNER_ID, KERASTUNER_ORACLE_IP and
KERASTUNER_ORACLE_PORT. On one, `start_workers` does, and nothing listens on anything but loopback.
"""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent import futures
from typing import Any

import grpc
import keras_tuner
from keras_tuner.src import protos
from keras_tuner.src.distribute import oracle_chief

from trainers.engine.config import ConfigError

LOOPBACK, CHIEF = "127.0.0.1", "chief"
CHILD = "TFWARMUP_SWEEP_CHILD"  # set for processes that end with the one that started them
POLL_SECONDS = 0.1
RESTARTS = 3  # of one worker, without a trial finished in between


def role() -> str | None:
    """`chief`, the name of a worker, or None for a sweep in one process."""
    names = ("KERASTUNER_TUNER_ID", "KERASTUNER_ORACLE_IP", "KERASTUNER_ORACLE_PORT")
    given = [name for name in names if os.environ.get(name)]
    if not given:
        return None
    if len(given) < len(names):
        raise ConfigError(f"A chief and its workers need {', '.join(names)}. Received: only {', '.join(given)}")
    return CHIEF if CHIEF in os.environ[names[0]] else os.environ[names[0]]


def serve(oracle: keras_tuner.Oracle) -> None:
    """Hands out trials until all workers have been told that there are no more.

    keras-tuner's own loop looks every 20 seconds whether it is over.
    """
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))  # an oracle does one thing at a time
    servicer = oracle_chief.OracleServicer(oracle)
    protos.get_service_grpc().add_OracleServicer_to_server(servicer, server)
    address = f"{os.environ['KERASTUNER_ORACLE_IP']}:{os.environ['KERASTUNER_ORACLE_PORT']}"
    try:
        server.add_insecure_port(address)
    except RuntimeError as error:
        raise ConfigError(f"The chief must be able to listen on its address. Received: {address}") from error
    server.start()
    while not (servicer.stop_triggered and oracle_chief.exit_chief(oracle)):
        time.sleep(POLL_SECONDS)
    server.stop(grace=1).wait()


def end_with_parent() -> None:
    """Ends this process when the one that started it is gone, even by a kill."""
    if os.environ.get(CHILD):
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()


def start_workers(count: int, command: list[str], watch: Callable[[], int]) -> None:
    """Runs a chief and workers on this machine to their end; one that dies is started again.

    Args:
        count: Of the workers.
        command: Starts any of them.
        watch: Called again and again; returns how many trials are finished.
    """
    port = str(_free_port())
    names = [CHIEF, *(f"worker{number}" for number in range(count))]
    processes = {name: _start(command, name, port, count) for name in names}
    try:
        _wait(processes, watch, lambda name: _start(command, name, port, count))
    finally:
        for process in processes.values():
            if process.poll() is None:
                process.terminate()
        for process in processes.values():
            process.wait()


def _wait(
    processes: dict[str, "subprocess.Popen[bytes]"],
    watch: Callable[[], int],
    start: Callable[[str], "subprocess.Popen[bytes]"],
) -> None:
    restarts, finished = 0, watch()
    while processes[CHIEF].poll() is None:
        time.sleep(POLL_SECONDS)
        now = watch()
        restarts, finished = (0 if now > finished else restarts), now
        for name in _dead(processes):
            restarts += 1
            if restarts > RESTARTS:
                raise RuntimeError(f"{name} ended {RESTARTS} times in a row without finishing a trial")
            processes[name] = start(name)
    if processes[CHIEF].returncode:
        raise RuntimeError(f"the chief ended with exit code {processes[CHIEF].returncode}")


def _dead(processes: dict[str, "subprocess.Popen[bytes]"]) -> Iterable[str]:
    return [name for name, process in processes.items() if name != CHIEF and process.poll() not in (None, 0)]


def _start(command: list[str], name: str, port: str, count: int) -> "subprocess.Popen[bytes]":
    addresses = {"KERASTUNER_TUNER_ID": name, "KERASTUNER_ORACLE_IP": LOOPBACK, "KERASTUNER_ORACLE_PORT": port}
    # Each worker its share of the cores: more threads than cores only get in each other's way.
    threads = str(max(1, (os.cpu_count() or 1) // count))
    defaults = {"TF_NUM_INTRAOP_THREADS": threads, "TF_NUM_INTEROP_THREADS": threads}
    environment: dict[str, Any] = {**defaults, **os.environ, **addresses, CHILD: "1"}
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
