"""The devices of a run, and what its workers agree on."""

import hashlib
import json
import os
import signal
from typing import Any

import keras
import tensorflow as tf

from trainers.engine.cluster import TrainingWorker
from trainers.engine.config import Config
from trainers.engine.step import Stepper
from trainers.system.errors import ConfigError
from trainers.system.private import keep_sums_as_they_are
from trainers.system.streams import quiet


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


def describe_devices(strategy: tf.distribute.Strategy, workers: int) -> dict[str, Any]:
    """The devices of a run. Other devices, or other numbers of replicas or threads, may change its last bits."""
    gpus = [tf.config.experimental.get_device_details(gpu) for gpu in tf.config.list_physical_devices("GPU")]
    return {
        "replicas": strategy.num_replicas_in_sync,
        "workers": workers,
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


class Team:
    """All workers of a run. Every worker must call these methods in the same order; a single one need not wait."""

    def __init__(self, worker: TrainingWorker, stepper: Stepper) -> None:
        self.worker, self.stepper = worker, stepper

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
        """The signal that any worker has received."""
        if self.is_alone:
            return number
        counts = self._sum([float(number == each) for each in (signal.SIGTERM, signal.SIGINT)])
        heard = [each for each, count in zip((signal.SIGTERM, signal.SIGINT), counts, strict=True) if count]
        return int(heard[0]) if heard else None

    def _of_all(self, number: int) -> list[int]:
        """The numbers of all workers, in order."""
        own = [float(number) if index == self.worker.index else 0.0 for index in range(self.worker.count)]
        return [int(value) for value in self._sum(own)]

    def _sum(self, values: list[float]) -> list[Any]:
        if self.is_alone:
            return list(values)
        total: list[Any] = self.stepper.sum_over_workers(tf.constant(values, tf.float64)).numpy().tolist()
        return total
