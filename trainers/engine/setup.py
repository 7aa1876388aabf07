"""The length of a run, and its objects: devices, data, a model, its optimizer and the compiled steps."""

import bisect
import dataclasses
import functools
import os
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from trainers.engine.config import Config
from trainers.engine.data import Feed, Source
from trainers.engine.flags import INTEGERS
from trainers.engine.optimizers import UpdateSize, make_optimizer
from trainers.engine.step import Stepper, as_written
from trainers.engine.task import Task
from trainers.engine.workers import Team, worker_of
from trainers.system.errors import ConfigError, require
from trainers.system.private import keep_sums_as_they_are
from trainers.system.streams import quiet


@dataclasses.dataclass(frozen=True)
class Plan:
    """The length of a run."""

    steps_per_epoch: int
    total_steps: int

    @classmethod
    def of(cls, config: Config, source: Source, feed: Feed) -> "Plan":
        steps = source.steps_per_epoch(feed)
        rule = f"--{config.batch_flag} must not exceed what there is to train on, {source.size} examples"
        require(steps, rule, config.global_batch)
        plan = cls(steps, config.steps or steps * config.epochs)
        require(plan.total_steps in INTEGERS, "--epochs must be fewer than 2^63 updates", config.epochs)
        rule = f"--profile must end within the run's {plan.total_steps} updates"
        require(not config.profile or config.profile[1] <= plan.total_steps, rule, config.profile)
        written = plan.checkpoints(config.checkpoint_every)
        require(config.average <= written, f"--average must be at most the run's {written} checkpoints", config.average)
        return plan

    def segments(self, start: int, intervals: Sequence[int], stops: Sequence[int] = ()) -> Iterator[tuple[int, int]]:
        """(first, last) steps between two records: at multiples of intervals, ends of epochs, sorted stops."""
        while start < self.total_steps:
            multiples = [(start // every + 1) * every for every in intervals]
            following = bisect.bisect_right(stops, start)
            end = min([*multiples, *stops[following : following + 1], self.total_steps, self.epoch_end(start)])
            yield start, end
            start = end

    def epoch_end(self, step: int) -> int:
        return (step // self.steps_per_epoch + 1) * self.steps_per_epoch

    def is_epoch_end(self, step: int) -> bool:
        return step % self.steps_per_epoch == 0 or step == self.total_steps

    def checkpoints(self, every: int) -> int:
        """The number of checkpoints that the run writes: one per `every` steps, or per epoch, and one at its end."""
        return -(-self.total_steps // (every or self.steps_per_epoch))


class Beginning:
    """The devices, the data and the length of a run: enough to check whether a run can start.

    Raises:
        ConfigError, DataError: for a config that no run can start with.
    """

    def __init__(self, config: Config, task: Task) -> None:
        self.config, self.task = config, task
        prepare_devices(config)
        self.worker = worker_of(config)  # first: it sets TF_CONFIG under SLURM
        self.strategy = make_strategy(config)
        parts = f"{self.strategy.num_replicas_in_sync} x {config.accumulate}"
        rule = f"--{config.batch_flag} must be a multiple of replicas x --accumulate = {parts}"
        divisible = config.global_batch % (self.strategy.num_replicas_in_sync * config.accumulate) == 0
        require(divisible, rule, config.global_batch)
        self.data = task.load(config)
        self.plan = Plan.of(config, self.data.train, self._feed(0, training=True))

    def _feed(self, start: int, training: bool) -> Feed:
        worker = self.worker
        replicas = self.strategy.num_replicas_in_sync // worker.count
        # Validation has no micro-batches, and must fit into the same memory.
        parts = self.config.accumulate
        size, parts = (self.config.global_batch, parts) if training else (self.config.global_batch // parts, 1)
        return Feed(size, self.config.seed, start, worker.count, worker.index, replicas, parts)


class Setup(Beginning):
    """Adds the model, its optimizer and the compiled steps, which take long to create."""

    def __init__(self, config: Config, task: Task) -> None:
        super().__init__(config, task)
        keras.utils.set_random_seed(config.seed)
        with self.strategy.scope():
            self.model = task.build(config, self.data)
            self.optimizer = self._make_optimizer()
            self.optimizer.build(self.model.trainable_variables)
            self.stepper = Stepper(
                config, task, self.model, self.optimizer, self.strategy, self.data.train.example_weight
            )
        self.team = Team(self.worker, self.stepper.sums_over_workers)
        self.update_size = UpdateSize(self.optimizer, self.model.trainable_variables)
        self.extra_validation = task.extra_validation(config, self.data, self.model)

    @property
    def reported_optimizer(self) -> Any:
        """The optimizer whose learning rate and warmup factor are recorded."""
        return self.optimizer

    def training(self, start: int) -> Any:
        """Training batches from step `start` on."""
        return self._distributed(self.data.train.training, self._feed(start, training=True))

    @functools.cached_property
    def validation(self) -> Any:
        # Created once: that takes longer than a pass over a small data set.
        return self.evaluation(self.data.validation)

    def evaluation(self, source: Source) -> Any:
        """One pass over a source."""
        return self._distributed(source.evaluation, self._feed(0, training=False))

    def evaluation_steps(self, source: Source) -> int:
        return source.evaluation_steps(self._feed(0, training=False))

    def _make_optimizer(self) -> Any:
        return make_optimizer(self.config, self.plan.steps_per_epoch, self.plan.total_steps)

    def _distributed(self, make: Any, feed: Feed) -> Any:
        gpus = tf.config.list_logical_devices("GPU")
        if gpus and self.strategy.num_replicas_in_sync == 1:
            # A strategy of several replicas does this by itself.
            return make(feed).apply(tf.data.experimental.prefetch_to_device(gpus[0].name))
        return self.strategy.distribute_datasets_from_function(as_written(lambda _: make(feed)))


def prepare_devices(config: Config) -> None:
    """Sets the threads and the precision, and splits the CPU. Must be called before TensorFlow is used."""
    for gpu in find_gpus():
        # Otherwise the first process takes all memory of a GPU, however small its model.
        if not tf.config.experimental.get_memory_growth(gpu):
            tf.config.experimental.set_memory_growth(gpu, True)
    try:
        _set_threads(config)
        _split_cpu(config)
    except RuntimeError as error:
        raise ConfigError(
            "--threads and --logical_devices must be set before TensorFlow starts, and be the same for all runs of a "
            f"process (0 keeps the number of threads). Received: {config.threads} and {config.logical_devices}"
        ) from error
    keras.config.set_dtype_policy(config.precision)


def _set_threads(config: Config) -> None:
    """Sets --threads. Replicas on one CPU keep the inter-op threads, because they wait for each other."""
    threading = tf.config.threading
    if config.threads and threading.get_intra_op_parallelism_threads() != config.threads:
        threading.set_intra_op_parallelism_threads(config.threads)
    alone = config.threads and config.logical_devices == 1
    if alone and threading.get_inter_op_parallelism_threads() != config.threads:
        threading.set_inter_op_parallelism_threads(config.threads)


def _split_cpu(config: Config) -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration()] * config.logical_devices
    if len(parts) > 1 and tf.config.get_logical_device_configuration(cpu) != parts:
        tf.config.set_logical_device_configuration(cpu, parts)


def find_gpus() -> list[tf.config.PhysicalDevice]:
    """The GPUs of this machine, without TensorFlow's complaints if there are none."""
    with quiet():
        return list(tf.config.list_physical_devices("GPU"))


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
