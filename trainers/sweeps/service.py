"""The chief and its workers over keras-tuner's protocol. Only this file uses private names of keras-tuner.

A trial carries its values as JSON in one hyperparameter, because the numbers of the protocol are float32.
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import keras_tuner
from keras_tuner.engine.trial import Trial
from keras_tuner.src import protos
from keras_tuner.src.distribute import oracle_chief
from keras_tuner.src.engine import oracle as oracle_module

from trainers.engine.flags import ConfigError
from trainers.engine.processes import POLL_SECONDS
from trainers.sweeps.coordinator import RUN, SEPARATOR, STOP, Answer, Coordinator

CONTENT = "content"
LINGER_SECONDS = 5.0  # that the chief waits for workers to learn that the sweep is over
LEAVING_SECONDS = 2.0  # for a stopped worker to give back its run
BEATS = 5  # heartbeats per worker timeout
BEAT_SECONDS_AT_MOST = 10.0
# To find a restarted chief soon: by default, gRPC waits longer and longer, up to two minutes.
RECONNECTING = [
    (f"grpc.{name}_reconnect_backoff_ms", wait) for name, wait in (("initial", 100), ("min", 100), ("max", 1000))
]


class ChiefGoneError(ConfigError):
    """The chief does not answer."""


class _Oracle:
    """The oracle that keras-tuner's service calls from its own threads. An error here ends the chief."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self.error: Exception | None = None

    def create_trial(self, tuner_id: str) -> Trial:
        worker, _, fingerprint = tuner_id.partition(SEPARATOR)
        answer = self._guarded(lambda: self._coordinator.ask(worker, fingerprint))
        job = answer.job
        if job is None:
            return _trial("-", answer.status, {})
        content = {"name": job.cell.name, "values": job.cell.values, "take_over": job.take_over}
        return _trial(job.id, answer.status, content)

    def get_trial(self, trial_id: str) -> Trial:
        return _trial(trial_id, RUN if self._guarded(lambda: self._coordinator.beat(trial_id)) else STOP, {})

    def end_trial(self, trial: Trial) -> None:
        self._guarded(lambda: self._coordinator.finish(trial.trial_id, _content(trial)))

    def _guarded(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:
            self.error = error
            raise


def serve(coordinator: Coordinator, address: str, watch: Callable[[], None] = lambda: None) -> None:
    """Hands out runs until all have ended and the workers know it; calls `watch` again and again."""
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
    oracle = _Oracle(coordinator)
    protos.get_service_grpc().add_OracleServicer_to_server(oracle_chief.OracleServicer(oracle), server)
    try:
        server.add_insecure_port(address)
    except RuntimeError as error:
        raise ConfigError(f"The chief must be able to listen on its address. Received: {address}") from error
    server.start()
    try:
        over = None
        while over is None or not (coordinator.all_told or time.monotonic() - over > LINGER_SECONDS):
            time.sleep(POLL_SECONDS)
            if oracle.error is not None:
                raise oracle.error
            coordinator.look()
            watch()
            over = (over or time.monotonic()) if coordinator.is_over else None
    finally:
        server.stop(grace=1).wait()


class ChiefClient:
    """The worker's side of the connection."""

    def __init__(self, address: str, worker: str, fingerprint: str, timeout: float) -> None:
        self._address, self._tuner_id, self._timeout = address, f"{worker}{SEPARATOR}{fingerprint}", timeout
        self._stub = protos.get_service_grpc().OracleStub(grpc.insecure_channel(address, RECONNECTING))
        self._messages = protos.get_service()

    def ask(self) -> tuple[Answer, dict[str, Any]]:
        """Returns what to do next, and the run with its values."""
        request = self._messages.CreateTrialRequest(tuner_id=self._tuner_id)
        trial = Trial.from_proto(self._call(self._stub.CreateTrial, request).trial)
        return Answer(trial.status), {"id": trial.trial_id, **_content(trial)}

    def finish(self, identifier: str, content: dict[str, Any]) -> None:
        request = self._messages.EndTrialRequest(trial=_trial(identifier, STOP, content).to_proto())
        self._call(self._stub.EndTrial, request)

    def leave(self, identifier: str) -> None:
        """Gives a run back for another worker to continue. The chief itself may be gone."""
        request = self._messages.EndTrialRequest(trial=_trial(identifier, STOP, {"left": True}).to_proto())
        with contextlib.suppress(grpc.RpcError):
            self._stub.EndTrial(request, timeout=LEAVING_SECONDS)

    @contextlib.contextmanager
    def beating(self, identifier: str) -> Iterator[None]:
        """A context in which a thread sends heartbeats."""
        ended = threading.Event()
        every = min(self._timeout / BEATS, BEAT_SECONDS_AT_MOST)

        def beat() -> None:
            request = self._messages.GetTrialRequest(trial_id=identifier)
            while not ended.wait(every):
                with contextlib.suppress(grpc.RpcError):  # the chief may be away for a while
                    self._stub.GetTrial(request, timeout=every)

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()

    def _call(self, method: Any, request: Any) -> Any:
        try:
            return method(request, wait_for_ready=True, timeout=self._timeout)
        except grpc.RpcError as error:
            raise ChiefGoneError(
                f"The chief must answer within --worker_timeout={self._timeout:g} seconds. "
                f"Received: {error.code().name} from {self._address}"
            ) from error


def without_files(kind: type[Any]) -> type[Any]:
    """A subclass of an oracle that writes no files: the results of the trials record what has been done."""
    nothing = {"save": lambda self: None, "_save_trial": lambda self, trial: None}
    return type(kind.__name__, (kind,), nothing)


@contextlib.contextmanager
def unlocked_on_error(oracle: keras_tuner.Oracle) -> Iterator[None]:
    """Releases an oracle's lock after an error: keras-tuner's `synchronized` does not, and the next call would hang."""
    try:
        yield
    except BaseException:
        lock = oracle_module.LOCKS[oracle]
        oracle_module.THREADS[oracle] = None
        if lock.locked():
            lock.release()
        raise


def _trial(identifier: str, status: str, content: dict[str, Any]) -> Trial:
    values = keras_tuner.HyperParameters()
    values.values = {CONTENT: json.dumps(content)}
    return Trial(values, identifier, status)


def _content(trial: Trial) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(trial.hyperparameters.values.get(CONTENT, "{}"))
    return found
