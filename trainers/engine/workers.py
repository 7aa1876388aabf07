"""The workers of a run, as TF_CONFIG or SLURM describes them, and what they agree on. Needs no TensorFlow."""

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Callable
from typing import Any

from trainers.engine.config import Config
from trainers.system.errors import ConfigError, require

TF_CONFIG = "TF_CONFIG"
JOBS = ("chief", "worker")  # in the order in which TensorFlow counts them; the very first is the one that writes
# Jobs on one machine need different ports, below those that systems assign automatically.
FIRST_PORT, PORTS = 12_000, 20_000
MANY = 1024
SLURM = ("SLURM_PROCID", "SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE", "SLURM_JOB_ID")
EXAMPLE = '{"cluster": {"worker": ["host0:12345", "host1:12345"]}, "task": {"type": "worker", "index": 0}}'
ADDRESS = re.compile(r"(?:[^\s:]+|\[[^\s\]]+\]):([0-9]{1,5})")


@dataclasses.dataclass(frozen=True)
class TrainingWorker:
    """How many workers there are and which one this is."""

    count: int
    index: int

    @property
    def is_chief(self) -> bool:
        return self.index == 0


def worker_of(config: Config) -> TrainingWorker:
    """This process among the workers of its run."""
    if config.strategy != "multiworker":
        return TrainingWorker(1, 0)
    cluster, task = _cluster_and_task()
    _check_addresses(cluster)
    tasks = [{"type": job, "index": index} for job in JOBS for index in range(len(cluster.get(job, ())))]
    if task not in tasks:
        raise ConfigError(
            f"The task of TF_CONFIG must be a {' or a '.join(JOBS)} of its cluster. Received: {task} of {cluster}"
        )
    return TrainingWorker(len(tasks), tasks.index(task))


def adopt_slurm(environment: Any = os.environ) -> None:
    """Sets TF_CONFIG for a process that `srun` has started, unless it is already set."""
    if TF_CONFIG in environment or not {"SLURM_PROCID", "SLURM_STEP_NODELIST"} <= set(environment):
        return
    import tensorflow as tf  # only here: reading a config does not need it

    try:
        port = FIRST_PORT + int(environment.get("SLURM_JOB_ID", 0)) % PORTS
        # SLURM decides which GPUs a process sees (--gpus-per-task); the resolver only needs a large enough number.
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            port_base=port, gpus_per_node=MANY, gpus_per_task=1, auto_set_gpu=False
        )
        cluster, (kind, index) = resolver.cluster_spec().as_dict(), resolver.get_task_info()
    except Exception as error:  # the resolver parses the variables without checking them
        told = ", ".join(f"{name}={environment[name]}" for name in SLURM if name in environment)
        raise ConfigError(f"SLURM's variables must be those of a step that srun started. Received: {told}") from error
    environment[TF_CONFIG] = json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


def _cluster_and_task() -> tuple[dict[str, Any], dict[str, Any]]:
    adopt_slurm()
    if TF_CONFIG not in os.environ:
        raise ConfigError("--strategy=multiworker needs the cluster in TF_CONFIG, or SLURM's. Received: no TF_CONFIG")
    try:
        told = json.loads(os.environ[TF_CONFIG])
        cluster, task = told["cluster"], told["task"]
        index = int(task["index"])  # text is allowed: users of SLURM write it with a variable
        if not all(isinstance(addresses, list) for addresses in cluster.values()) or str(index) != str(task["index"]):
            raise ValueError
        return cluster, {"type": str(task["type"]), "index": index}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        received = os.environ[TF_CONFIG]
        raise ConfigError(f"TF_CONFIG must be like {EXAMPLE}. Received: {received[:500]}") from error


def _check_addresses(cluster: dict[str, Any]) -> None:
    """Raises a `ConfigError` for a cluster that cannot be connected to: TensorFlow would wait for it forever."""
    jobs = {job for job, addresses in cluster.items() if addresses}
    addresses = [address for job in JOBS for address in cluster.get(job, ())]
    possible = jobs <= set(JOBS) and len(cluster.get("chief", ())) <= 1
    require(possible, "The cluster of TF_CONFIG must have workers, and one chief at most", cluster)
    for address in addresses:
        match = ADDRESS.fullmatch(address) if isinstance(address, str) else None
        valid = match and 1 <= int(match[1]) <= 65535
        require(valid, "An address in TF_CONFIG must be host:port, port 1 to 65535", address)
    require(len(set(addresses)) == len(addresses), "The addresses in TF_CONFIG must differ", addresses)


class Team:
    """All workers of a run. Every worker must call these methods in the same order; a single one need not wait.

    Args:
        worker: The one in this process.
        add: Returns the sums of lists of numbers over all workers.
    """

    def __init__(self, worker: TrainingWorker, add: Callable[[list[float]], list[float]]) -> None:
        self.worker, self._add = worker, add

    @property
    def is_alone(self) -> bool:
        return self.worker.count == 1

    def wait(self) -> None:
        """Waits for all other workers."""
        self._sum([0.0])

    def agree_on_run(self, config: Config, data: str) -> None:
        """Raises a `ConfigError` on every worker unless all have the same flags and data."""
        told = json.dumps([config.identity(), data], sort_keys=True).encode()
        # 48 bits, which a float64 holds exactly.
        numbers = self._of_all(int.from_bytes(hashlib.blake2b(told, digest_size=6).digest()))
        others = [str(index) for index, number in enumerate(numbers) if number != numbers[0]]
        if others:
            raise ConfigError(
                "All workers must have the same data and the same flags, apart from those that change no result. "
                f"Received: others than those of worker 0, on worker {', '.join(others)}"
            )

    def agree_on_step(self, step: int) -> None:
        """Raises a `ConfigError` on every worker unless all begin at the same step."""
        steps = self._of_all(step)
        if len(set(steps)) > 1:
            raise ConfigError(
                "All workers must resume at the same step: --output_dir must be a folder that all of them see. "
                f"Received: steps {', '.join(map(str, steps))}"
            )

    def agreed_steps(self, steps: int) -> int:
        """The mean of the steps that the workers would take in one call."""
        return steps if self.is_alone else max(1, int(self._sum([float(steps)])[0] / self.worker.count))

    def agreed_signal(self, number: int | None) -> int | None:
        """The signal that any worker has received; SIGTERM, whose number is larger, if others have heard Ctrl-C."""
        return max(self._of_all(number or 0)) or None

    def _of_all(self, number: int) -> list[int]:
        """The numbers of all workers, in order."""
        own = [float(number) if index == self.worker.index else 0.0 for index in range(self.worker.count)]
        return [int(value) for value in self._sum(own)]

    def _sum(self, values: list[float]) -> list[float]:
        return values if self.is_alone else self._add(values)
