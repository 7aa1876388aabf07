"""A worker of a sweep: an actor of Ray, a process that runs one trial after the other."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import ray

from trainers.engine import signals
from trainers.engine.errors import DataError
from trainers.engine.flags import ConfigError, stored_config
from trainers.sweeps.cells import Cell
from trainers.sweeps.cluster import Node, this_node
from trainers.sweeps.queue import Job, Outcome, Returned
from trainers.sweeps.results import Result
from trainers.sweeps.space import sweep_config_class
from trainers.tasks import unpacked

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

    def surroundings(self, folder: str) -> Node:
        return this_node(folder)

    def prepare(self) -> None:
        """Imports TensorFlow and the task, which takes seconds."""
        from trainers.sweeps.trial import Trials

        self._trials = self._trials or Trials(self._settings)

    def check(self, cells: Sequence[Cell], results: Sequence[Result]) -> Exception | None:
        """The error of `Trials.check`, if there is one."""
        self.prepare()
        try:
            self._trials.check(cells, results)
        except (ConfigError, DataError) as error:
            return type(error)(str(error))
        return None

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
