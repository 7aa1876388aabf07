"""A worker: asks for a run, runs it and reports the result, until there are no more."""

import contextlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from trainers.engine.flags import ConfigError
from trainers.engine.lock import InUseError
from trainers.engine.signals import StopRequested
from trainers.sweeps.coordinator import REFUSED, STOP, WAIT, Answer, Coordinator
from trainers.sweeps.trial import LostTrialError, Trials

WAIT_SECONDS = 0.5
OTHER_SETTINGS = "A worker must have the flags of its chief, apart from the axes of the sweep"


class Chief(Protocol):
    """The interface of whatever hands out runs."""

    def ask(self) -> tuple[Answer, dict[str, Any]]: ...

    def finish(self, identifier: str, content: dict[str, Any]) -> None: ...

    def leave(self, identifier: str) -> None: ...

    def beating(self, identifier: str) -> AbstractContextManager[None]: ...


class OwnChief:
    """The chief of a sweep in a single process.

    Args:
        coordinator: Hands out the runs.
        finished: Called after every run.
    """

    def __init__(self, coordinator: Coordinator, finished: Callable[[], None]) -> None:
        self._coordinator, self._finished = coordinator, finished

    def ask(self) -> tuple[Answer, dict[str, Any]]:
        answer = self._coordinator.ask("alone", self._coordinator.fingerprint)
        job = answer.job
        if job is None:
            return answer, {}
        return answer, {"id": job.id, "name": job.cell.name, "values": job.cell.values, "take_over": job.take_over}

    def finish(self, identifier: str, content: dict[str, Any]) -> None:
        self._coordinator.finish(identifier, content)
        self._finished()

    def leave(self, identifier: str) -> None:
        """Does nothing: the chief ends with this process."""

    def beating(self, identifier: str) -> AbstractContextManager[None]:
        return contextlib.nullcontext()


def work(chief: Chief, trials: Trials) -> None:
    """Runs trials until the chief has no more."""
    while True:
        answer, job = chief.ask()
        if answer.status == STOP:
            return
        if answer.status == REFUSED:
            raise ConfigError(f"{OTHER_SETTINGS}. Received: different flags")
        if answer.status == WAIT:
            time.sleep(WAIT_SECONDS)
            continue
        with chief.beating(job["id"]):
            try:
                content = _run(trials, job)
            except StopRequested:
                chief.leave(job["id"])
                raise
        chief.finish(job["id"], content)
        if "busy" in content:
            time.sleep(WAIT_SECONDS)


def _run(trials: Trials, job: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"result": trials.run(job["name"], job["values"], job["take_over"]).to_json()}
    except InUseError:
        return {"busy": True}
    except LostTrialError:
        return {"lost": True}
    except Exception as error:  # such as a full disk; a worker that died of it would be restarted again and again
        return {"error": f"{type(error).__name__}: {error}"}
