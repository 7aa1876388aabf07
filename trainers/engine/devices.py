"""Where a run computes, and in which precision."""

import os
from typing import Any

import keras
import tensorflow as tf

from trainers.engine.cluster import worker_of
from trainers.engine.config import Config
from trainers.engine.flags import ConfigError
from trainers.engine.private import keep_sums_as_they_are
from trainers.engine.quiet import quiet


def prepare_devices(config: Config) -> None:
    """Sets the threads and the precision, and splits the CPU. Must be called before TensorFlow is used."""
    if config.threads:
        _set_threads(config)
    for gpu in find_gpus():
        # Otherwise the first process takes all memory of a GPU, however small its model.
        if not tf.config.experimental.get_memory_growth(gpu):
            tf.config.experimental.set_memory_growth(gpu, True)
    if config.logical_devices > 1:
        _split_cpu(config)
    keras.config.set_dtype_policy(config.precision)


def _split_cpu(config: Config) -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration()] * config.logical_devices
    try:
        if tf.config.get_logical_device_configuration(cpu) != parts:
            tf.config.set_logical_device_configuration(cpu, parts)
    except RuntimeError as error:
        raise ConfigError(
            "--logical_devices must be set before TensorFlow starts, and be the same for all runs of a process. "
            f"Received: {config.logical_devices}"
        ) from error


def _set_threads(config: Config) -> None:
    """Sets --threads. Replicas on one CPU keep the inter-op threads, because they wait for each other."""
    threading = tf.config.threading
    try:
        if threading.get_intra_op_parallelism_threads() != config.threads:
            threading.set_intra_op_parallelism_threads(config.threads)
        if config.logical_devices == 1 and threading.get_inter_op_parallelism_threads() != config.threads:
            threading.set_inter_op_parallelism_threads(config.threads)
    except RuntimeError as error:
        raise ConfigError(
            f"--threads must be set before TensorFlow starts, or be 0 to keep its number. Received: {config.threads}"
        ) from error


def find_gpus() -> list[tf.config.PhysicalDevice]:
    """The GPUs of this machine, without TensorFlow's complaints if there are none."""
    with quiet():
        gpus: list[tf.config.PhysicalDevice] = tf.config.list_physical_devices("GPU")
    return gpus


def make_strategy(config: Config) -> tf.distribute.Strategy:
    """The distribution strategy of a config."""
    strategy = _strategy(config)
    keep_sums_as_they_are()  # last: a cluster resets the options that this sets
    return strategy


def _strategy(config: Config) -> tf.distribute.Strategy:
    if config.strategy == "multiworker":  # first: it must be created before TensorFlow looks at its devices
        worker_of(config)  # checks the cluster, and sets TF_CONFIG under SLURM
        return tf.distribute.MultiWorkerMirroredStrategy()
    gpus = tf.config.list_logical_devices("GPU")
    kind = config.strategy
    if kind == "auto":
        kind = "mirrored" if len(gpus) > 1 or config.logical_devices > 1 else "one"
    if kind == "one":
        return tf.distribute.get_strategy()
    if gpus:
        return tf.distribute.MirroredStrategy([gpu.name for gpu in gpus])
    cpus = [cpu.name for cpu in tf.config.list_logical_devices("CPU")]
    # The default cross-device operations cannot run inside a loop in a graph on CPUs.
    return tf.distribute.MirroredStrategy(cpus, cross_device_ops=tf.distribute.ReductionToOneDevice())


def check_divisible(config: Config, strategy: tf.distribute.Strategy) -> None:
    """Refuses a batch that does not split evenly into replicas and micro-batches."""
    replicas = strategy.num_replicas_in_sync
    if config.global_batch % (replicas * config.accumulate):
        raise ConfigError(
            f"--{config.batch_flag} must be a multiple of replicas x --accumulate = {replicas} x {config.accumulate}. "
            f"Received: {config.global_batch}"
        )


def describe_devices(config: Config, strategy: tf.distribute.Strategy) -> dict[str, Any]:
    """The devices of a run. Other devices, or other numbers of replicas or threads, may change its last bits."""
    gpus = [tf.config.experimental.get_device_details(gpu) for gpu in tf.config.list_physical_devices("GPU")]
    return {
        "replicas": strategy.num_replicas_in_sync,
        "workers": worker_of(config).count,
        "kind": ", ".join(sorted({str(gpu.get("device_name", "GPU")) for gpu in gpus})) or "CPU",
        "intra_op_threads": intra_op_threads(),
        "inter_op_threads": _threads("TF_NUM_INTEROP_THREADS", tf.config.threading.get_inter_op_parallelism_threads()),
    }


def intra_op_threads() -> int:
    """The number of threads that an operation may use in this process."""
    return _threads("TF_NUM_INTRAOP_THREADS", tf.config.threading.get_intra_op_parallelism_threads())


def _threads(variable: str, configured: int) -> int:
    """The number of threads of TensorFlow: set by the program or the environment, or one per core."""
    told = os.environ.get(variable, "")
    return configured or (int(told) if told.isdecimal() else 0) or os.cpu_count() or 1
