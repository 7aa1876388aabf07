"""The workers of a run, as described by TF_CONFIG or by SLURM."""

import dataclasses
import json
import os
import re
from typing import Any

from trainers.engine.config import Config
from trainers.system.errors import ConfigError

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
    sizes = {job: len(cluster.get(job, ())) for job in JOBS}
    if not (0 <= task["index"] < sizes.get(task["type"], 0)):
        raise ConfigError(
            f"The task of TF_CONFIG must be a {' or a '.join(JOBS)} of its cluster. Received: {task} of {cluster}"
        )
    before = sizes["chief"] if task["type"] == "worker" else 0
    return TrainingWorker(sum(sizes.values()), before + task["index"])


def adopt_slurm(environment: Any = os.environ) -> None:
    """Sets TF_CONFIG for a process that `srun` has started, unless it is already set."""
    if TF_CONFIG in environment or not _is_slurm_step(environment):
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


def _is_slurm_step(environment: Any) -> bool:
    return "SLURM_PROCID" in environment and "SLURM_STEP_NODELIST" in environment


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
    if not jobs <= set(JOBS) or len(cluster.get("chief", ())) > 1:
        raise ConfigError(f"The cluster of TF_CONFIG must have workers, and one chief at most. Received: {cluster}")
    for address in addresses:
        match = ADDRESS.fullmatch(address) if isinstance(address, str) else None
        if not (match and 1 <= int(match[1]) <= 65535):
            raise ConfigError(f"An address in TF_CONFIG must be host:port, port 1 to 65535. Received: {address!r}")
    if len(set(addresses)) < len(addresses):
        raise ConfigError(f"The addresses in TF_CONFIG must differ. Received: {addresses}")
