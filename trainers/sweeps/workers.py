"""The workers of a sweep on Ray: as many as there is room for, replaced when they die or no longer answer."""

import contextlib
import dataclasses
import logging
import os
import signal
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import ray

from trainers.engine.flags import stored_config
from trainers.results.methods import Point
from trainers.results.trials import Result
from trainers.sweeps.cluster import Room, differences, free_places, is_open, last_line, surroundings
from trainers.sweeps.queue import Job, Outcome, Returned
from trainers.sweeps.space import sweep_config_class
from trainers.system import signals
from trainers.system.errors import ConfigError, DataError, IncompleteError
from trainers.tasks import packed, unpacked

if TYPE_CHECKING:
    from trainers.engine.task import Task


CONTROL = "control"  # the group of methods that Ray calls while another one runs a trial


class Worker:
    """Runs trials. Ray calls it in the process of an actor, not in its main thread.

    Args:
        task: The task of the sweep.
        settings: The flags of the sweep, as plain values.
        uses_gpus: Whether it was given GPUs; if not, it must not see any, because others may be using them.
    """

    def __init__(self, task: "Task | str", settings: dict[str, Any], uses_gpus: bool) -> None:
        if not uses_gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        self._settings = stored_config(sweep_config_class(unpacked(task)), settings)
        self._trials: Any = None

    def differences(self, *given: Any) -> str:
        return differences(*given)

    def prepare(self) -> None:
        """Imports TensorFlow and the task, which takes seconds."""
        from trainers.sweeps.trial import Trials

        self._trials = self._trials or Trials(self._settings)

    def check(self, cells: Sequence[Point], results: Sequence[Result]) -> None:
        self.prepare()
        self._trials.check(cells, results)

    def run(self, job: Job) -> Outcome:
        self.prepare()
        try:
            outcome: Outcome = self._trials.outcome(job)
        except signals.StopRequested:  # the checkpoint is written; Ray would take this for something else
            return Returned.BUSY
        return outcome

    @ray.method(concurrency_group=CONTROL)
    def ping(self) -> None:
        """Returns at once if this process is alive."""

    @ray.method(concurrency_group=CONTROL)
    def stop(self, number: int) -> None:
        """Makes the trial end with a checkpoint, as the signal with this number would."""
        signals.request(number)


POLL_SECONDS = 0.1
PINGS = 5  # per worker timeout
PING_SECONDS_AT_MOST = 10.0
STARTS = 3  # that may fail in a row
SAVING_SECONDS = 120.0  # for a worker to save its run when it is stopped
LOOK_SECONDS = 3.0  # between two looks whether Ray is alive
IDLE_SECONDS = 60.0  # after which a worker that has nothing to do makes room for others


@contextlib.contextmanager
def ray_workers(settings: Any, room: Room, runs: int, kind: type[Any] = Worker) -> Iterator["RayWorkers"]:
    """Workers for at most this many runs. At a signal, each saves its run before it ends."""
    workers = RayWorkers(settings, room, runs, kind)
    try:
        yield workers
    except KeyboardInterrupt as stop:
        workers.stop(getattr(stop, "number", signal.SIGINT))
        raise
    finally:
        workers.end()


@dataclasses.dataclass(eq=False)
class _Actor:
    """The handle of an actor, the run that it has, and when it was last heard of."""

    handle: Any
    job: Job | None = None
    heard: float = 0.0
    ping: Any = None  # that has not been answered yet


class RayWorkers:
    """Runs trials in actors of Ray.

    An actor that Ray reports as dead may still be alive and write, for instance if the process that watches it was
    killed. Therefore another worker takes its trial over, so that nothing that it still writes has an effect.
    """

    def __init__(self, settings: Any, room: Room, runs: int, kind: type[Any]) -> None:
        self._settings, self._room, self._runs = settings, room, runs
        self._kind = ray.remote(concurrency_groups={CONTROL: 2})(kind)
        self._arguments = (packed(settings.task), settings.plain(), room.gpus > 0)
        self._asked: dict[Any, _Actor] = {}  # those that start or run a trial, by the answer that is awaited
        self._idle: list[_Actor] = []
        self._refused: list[_Actor] = []  # they stay, so that Ray starts no other in their place
        self._failed_starts = 0
        self._looked = time.monotonic()
        self._next_look = 0.0
        self._start_actors()

    @property
    def has_room(self) -> bool:
        return bool(self._idle)

    def check(self, cells: Sequence[Point], results: Sequence[Result]) -> None:
        """Lets the first worker check the cells: this process need not start TensorFlow."""
        while not self._idle:
            self.finished()
        answer = self._idle[-1].handle.check.remote(list(cells), list(results))
        while not self._answered([answer], POLL_SECONDS):
            signals.raise_if_requested()
        try:
            ray.get(answer)
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, ConfigError | DataError):
                raise cause from None
            raise RuntimeError(f"the check of the first trials has failed: {last_line(error)}") from error

    def start(self, job: Job) -> None:
        with signals.deferred():
            actor = self._idle.pop()
            actor.job, actor.heard, actor.ping = job, time.monotonic(), None
            self._asked[actor.handle.run.remote(job)] = actor

    def finished(self) -> list[tuple[Job, Outcome]]:
        self._look_after_ray()
        with signals.deferred():  # a signal must not interrupt Ray
            ended: list[tuple[Job, Outcome]] = []
            for answer in self._answered(list(self._asked), POLL_SECONDS):
                actor = self._asked.pop(answer)
                if actor.job is None:
                    self._begin(actor, answer)
                else:
                    ended.append((actor.job, self._end(actor, answer)))
            ended += self._lose_silent()
            self._end_idle()
            self._start_actors()
        signals.raise_if_requested()
        return ended

    def stop(self, number: int) -> None:
        """Makes every trial end with a checkpoint, as a signal would, and waits for it."""
        with signals.deferred():
            running = [answer for answer, actor in self._asked.items() if actor.job is not None]
            for answer in running:
                self._asked[answer].handle.stop.remote(number)
            if running:
                ray.wait(running, num_returns=len(running), timeout=SAVING_SECONDS)

    def end(self) -> None:
        if not is_open(self._room.door):
            return
        with signals.deferred():
            for actor in [*self._asked.values(), *self._idle, *self._refused]:
                ray.kill(actor.handle)

    def _look_after_ray(self) -> None:
        now = time.monotonic()
        if now > self._next_look:
            self._next_look = now + LOOK_SECONDS
            if not is_open(self._room.door):
                raise IncompleteError("Ray has ended", advice="Run the same command again to resume")

    def _start_actors(self) -> None:
        """Asks Ray for workers, unless one is free. Those for which there is no room yet begin when there is."""
        if self._idle:
            return
        if self._room.workers is not None:
            places = self._room.workers - len(self._asked)
        else:  # one more than there is room for, to notice when the cluster grows
            is_starting = any(actor.job is None for actor in self._asked.values())
            places = 0 if is_starting else free_places(self._room) + 1
        folder = self._settings.output_dir
        given = surroundings(), folder, folder if os.path.isdir(folder) else os.sep
        for _ in range(min(places, self._runs - len(self._asked))):
            options = {"num_cpus": self._room.cpus, "num_gpus": self._room.gpus}
            handle = self._kind.options(max_restarts=0, max_task_retries=0, **options).remote(*self._arguments)
            self._asked[handle.differences.remote(*given)] = _Actor(handle)

    def _begin(self, actor: _Actor, answer: Any) -> None:
        """Accepts a worker that has started, or refuses it."""
        try:
            wrong = ray.get(answer)
        except ray.exceptions.RayError as error:
            self._failed_starts += 1
            if self._failed_starts > STARTS:
                raise ConfigError(f"Workers must be able to start. Received: {last_line(error)}") from error
            return
        self._failed_starts = 0
        if wrong:
            self._refused.append(actor)
            logging.warning("a worker is not used: %s", wrong)
            return
        actor.handle.prepare.remote()
        actor.heard = time.monotonic()
        self._idle.append(actor)

    def _end(self, actor: _Actor, answer: Any) -> Outcome:
        try:
            outcome: Outcome = ray.get(answer)
        except ray.exceptions.RayActorError:
            ray.kill(actor.handle)
            return Returned.LOST
        except ray.exceptions.RayError as error:
            outcome = last_line(error)
        actor.job, actor.heard = None, time.monotonic()
        self._idle.append(actor)
        return outcome

    def _lose_silent(self) -> list[tuple[Job, Outcome]]:
        """Kills the workers that have not answered for too long, and returns their runs."""
        now, timeout = time.monotonic(), self._settings.worker_timeout
        away, self._looked = now - self._looked > timeout / 2, now  # this process itself was suspended
        lost: list[tuple[Job, Outcome]] = []
        for answer, actor in list(self._asked.items()):
            if actor.job is None:
                continue
            if away or (actor.ping is not None and self._answered([actor.ping], 0)):
                actor.heard, actor.ping = now, None
            if now - actor.heard > timeout:
                del self._asked[answer]
                ray.kill(actor.handle)
                lost.append((actor.job, Returned.LOST))
            elif actor.ping is None and now - actor.heard > min(timeout / PINGS, PING_SECONDS_AT_MOST):
                actor.ping = actor.handle.ping.remote()
        return lost

    def _end_idle(self) -> None:
        """Ends workers that have had nothing to do for a while, except one."""
        now = time.monotonic()
        for actor in [actor for actor in self._idle[:-1] if now - actor.heard > IDLE_SECONDS]:
            self._idle.remove(actor)
            ray.kill(actor.handle)

    def _answered(self, answers: Sequence[Any], seconds: float) -> list[Any]:
        """Waits until something is answered, for a limited time, and returns everything that is."""
        with signals.deferred():
            if not answers:
                time.sleep(seconds)
                return []
            ray.wait(list(answers), timeout=seconds)
            ready, _ = ray.wait(list(answers), num_returns=len(answers), timeout=0)
        return list(ready)
