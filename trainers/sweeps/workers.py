"""A sweep by several processes: keras-tuner's chief, which hands out trials, and workers, which run them.

On several machines the user starts them, with keras-tuner's own variables KERASTUNER_TUNER_ID, KERASTUNER_ORACLE_IP and
KERASTUNER_ORACLE_PORT. On one, the sweep itself is the chief and starts its workers; it listens on loopback alone.
"""

import os
import socket
import time
from collections.abc import Callable
from concurrent import futures
from typing import Any

import grpc
import keras_tuner
from keras_tuner.src import protos
from keras_tuner.src.distribute import oracle_chief

from trainers.engine.config import ConfigError
from trainers.engine.processes import POLL_SECONDS, fork
from trainers.engine.signals import StopRequested

LOOPBACK, CHIEF = "127.0.0.1", "chief"
TUNER_ID, ADDRESS, PORT = "KERASTUNER_TUNER_ID", "KERASTUNER_ORACLE_IP", "KERASTUNER_ORACLE_PORT"
RESTARTS = 3  # of workers, without a trial finished in between


def role() -> str | None:
    """`chief`, the name of a worker, or None for a sweep that nobody gave a role."""
    names = (TUNER_ID, ADDRESS, PORT)
    given = [name for name in names if os.environ.get(name)]
    if not given:
        return None
    if len(given) < len(names):
        raise ConfigError(f"A chief and its workers need {', '.join(names)}. Received: only {', '.join(given)}")
    return CHIEF if CHIEF in os.environ[TUNER_ID] else os.environ[TUNER_ID]


def serve(oracle: keras_tuner.Oracle, address: str, watch: Callable[[], None] = lambda: None) -> None:
    """Hands out trials until all workers have been told that there are no more; calls `watch` again and again.

    keras-tuner's own loop looks every 20 seconds whether it is over.
    """
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))  # an oracle does one thing at a time
    servicer = oracle_chief.OracleServicer(oracle)
    protos.get_service_grpc().add_OracleServicer_to_server(servicer, server)
    try:
        server.add_insecure_port(address)
    except RuntimeError as error:
        raise ConfigError(f"The chief must be able to listen on its address. Received: {address}") from error
    server.start()
    while not (servicer.stop_triggered and oracle_chief.exit_chief(oracle)):
        time.sleep(POLL_SECONDS)
        watch()
    server.stop(grace=1).wait()


class LocalWorkers:
    """Processes on this machine that run `work`; one that dies is started again.

    They are forked from a process that does nothing else: neither TensorFlow nor gRPC may be at work in one that forks,
    and what it has imported need not be imported again.

    Args:
        count: How many.
        work: What each of them does.
        finished: Tells how many trials are finished.
    """

    def __init__(self, count: int, work: Callable[[], Any], finished: Callable[[], int]) -> None:
        self.address = f"{LOOPBACK}:{_free_port()}"
        self._count, self._work, self._finished = count, work, finished
        self._supervisor = fork(self._supervise)

    def check(self) -> None:
        """Raises an error if they have been given up."""
        if self._supervisor.exitcode:
            raise RuntimeError(f"workers ended {RESTARTS} times in a row without finishing a trial")

    def stop(self) -> None:
        """Ends them, each with its run saved, and waits for that."""
        self._supervisor.terminate()
        self._supervisor.join()

    def _supervise(self) -> None:
        workers: dict[str, Any] = {}
        try:
            self._keep_running(workers)
        except StopRequested:
            for worker in workers.values():
                worker.terminate()
            for worker in workers.values():
                worker.join()
            raise

    def _keep_running(self, workers: dict[str, Any]) -> None:
        """Starts the workers, by their names, and keeps them running until all are done."""
        for name in (f"worker{number}" for number in range(self._count)):
            workers[name] = fork(self._run, name)
        restarts, seen = 0, self._finished()
        while any(worker.exitcode != 0 for worker in workers.values()):
            time.sleep(POLL_SECONDS)
            finished = self._finished()
            restarts, seen = (0 if finished > seen else restarts), finished
            for name in [name for name, worker in workers.items() if worker.exitcode]:
                restarts += 1
                if restarts > RESTARTS:
                    os._exit(1)
                workers[name] = fork(self._run, name)

    def _run(self, name: str) -> None:
        host, port = self.address.split(":")
        # Each its share of the cores: more threads than cores only get in each other's way.
        threads = str(max(1, (os.cpu_count() or 1) // self._count))
        for variable in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
            os.environ.setdefault(variable, threads)
        os.environ |= {TUNER_ID: name, ADDRESS: host, PORT: port}
        self._work()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
