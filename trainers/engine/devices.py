"""Where a run computes, and in which precision."""

import os
from typing import Any

import keras
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.eager import context

from trainers.engine.cluster import worker_of
from trainers.engine.config import Config, ConfigError


def prepare_devices(config: Config) -> None:
    """Splits the CPU and sets the precision; must come before TensorFlow does anything."""
    if config.logical_devices > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        parts = [tf.config.LogicalDeviceConfiguration()] * config.logical_devices
        if tf.config.get_logical_device_configuration(cpu) != parts:
            tf.config.set_logical_device_configuration(cpu, parts)
    keras.config.set_dtype_policy(config.precision)


def make_strategy(config: Config) -> tf.distribute.Strategy:
    """One strategy object serves a whole process."""
    strategy = _strategy(config)
    _keep_sums_as_they_are()  # last: a cluster changes the options of TensorFlow that this one is among
    return strategy


def _strategy(config: Config) -> tf.distribute.Strategy:
    if config.strategy == "multiworker":  # first of all: it must come before TensorFlow looks at its devices
        worker_of(config)  # a cluster that cannot be is refused, and SLURM's is put where TensorFlow looks for it
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


def _keep_sums_as_they_are() -> None:
    """Turns one rewriting of graphs off.

    Where TensorFlow expects a graph to fill the memory of a device, and a CPU counts as 256 MB, it makes sums of
    several tensors use temporary variables. Inside the loop over micro-batches these fail: "ALREADY_EXISTS: Resource
    .../tmp_var" (tensorflow issue 37740).
    """
    options = context.context().function_call_options
    config = tf.compat.v1.ConfigProto.FromString(options.config_proto_serialized)
    config.graph_options.rewrite_options.memory_optimization = rewriter_config_pb2.RewriterConfig.NO_MEM_OPT
    options.config_proto_serialized = config


def check_divisible(config: Config, strategy: tf.distribute.Strategy) -> None:
    """A batch must split evenly into replicas and micro-batches."""
    replicas = strategy.num_replicas_in_sync
    if config.global_batch % (replicas * config.accumulate):
        raise ConfigError(
            f"--{config.batch_flag} must be a multiple of replicas x --accumulate = {replicas} x {config.accumulate}. "
            f"Received: {config.global_batch}"
        )


def describe_devices(config: Config, strategy: tf.distribute.Strategy) -> dict[str, Any]:
    """What a run computes on. Another number of replicas, other devices or threads may change its last bits."""
    gpus = [tf.config.experimental.get_device_details(gpu) for gpu in tf.config.list_physical_devices("GPU")]
    return {
        "replicas": strategy.num_replicas_in_sync,
        "workers": worker_of(config).count,
        "kind": ", ".join(sorted({str(gpu.get("device_name", "GPU")) for gpu in gpus})) or "CPU",
        "intra_op_threads": _threads("TF_NUM_INTRAOP_THREADS", tf.config.threading.get_intra_op_parallelism_threads()),
        "inter_op_threads": _threads("TF_NUM_INTEROP_THREADS", tf.config.threading.get_inter_op_parallelism_threads()),
    }


def _threads(variable: str, configured: int) -> int:
    """What TensorFlow takes: what it was told, by the program or the environment, or one a core."""
    return configured or int(os.environ.get(variable) or 0) or os.cpu_count() or 1
