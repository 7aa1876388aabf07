"""Which machines work on a run together: told by TF_CONFIG, or by SLURM."""

import dataclasses
import json
import os
from typing import Any

from trainers.engine.config import Config, ConfigError

TF_CONFIG = "TF_CONFIG"
JOBS = ("chief", "worker")  # in the order in which TensorFlow counts them; the first of all is the one that writes
# Jobs on one machine must not meet: a port for each, below those that systems hand out by themselves.
FIRST_PORT, PORTS = 12_000, 20_000
MANY = 1024


@dataclasses.dataclass(frozen=True)
class Worker:
    """How many workers there are and which one this is."""

    count: int
    index: int

    @property
    def is_chief(self) -> bool:
        return self.index == 0


def worker_of(config: Config) -> Worker:
    """This process among the workers of its run."""
    if config.strategy != "multiworker":
        return Worker(1, 0)
    cluster, task = _cluster_and_task()
    sizes = {job: len(cluster.get(job, ())) for job in JOBS}
    if not (0 <= task["index"] < sizes.get(task["type"], 0)):
        raise ConfigError(
            f"The task of TF_CONFIG must be a {' or a '.join(JOBS)} of its cluster. Received: {task} of {cluster}"
        )
    before = sizes["chief"] if task["type"] == "worker" else 0
    return Worker(sum(sizes.values()), before + task["index"])


def adopt_slurm(environment: Any = os.environ) -> None:
    """Writes TF_CONFIG for a process that `srun` has started, unless it has one."""
    if TF_CONFIG in environment or not _is_slurm_step(environment):
        return
    import tensorflow as tf  # only now: whoever reads a config needs none of it

    port = FIRST_PORT + int(environment.get("SLURM_JOB_ID", 0)) % PORTS
    # Which GPUs a process sees is for SLURM to say (--gpus-per-task); the resolver is told of enough for any process.
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        port_base=port, gpus_per_node=MANY, gpus_per_task=1, auto_set_gpu=False
    )
    cluster, (kind, index) = resolver.cluster_spec().as_dict(), resolver.get_task_info()
    environment[TF_CONFIG] = json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


def _is_slurm_step(environment: Any) -> bool:
    return "SLURM_PROCID" in environment and "SLURM_STEP_NODELIST" in environment


def _cluster_and_task() -> tuple[dict[str, Any], dict[str, Any]]:
    adopt_slurm()
    if TF_CONFIG not in os.environ:
        raise ConfigError("--strategy=multiworker needs the cluster in TF_CONFIG, or SLURM's. Received: no TF_CONFIG")
    try:
        told = json.loads(os.environ[TF_CONFIG])
        cluster = {str(job): list(addresses) for job, addresses in told["cluster"].items()}
        return cluster, {"type": str(told["task"]["type"]), "index": int(told["task"]["index"])}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            'TF_CONFIG must be like {"cluster": {"worker": ["host0:12345", "host1:12345"]}, '
            f'"task": {{"type": "worker", "index": 0}}}}. Received: {os.environ[TF_CONFIG]}'
        ) from error
