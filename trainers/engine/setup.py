"""The length of a run, and its objects: devices, data, a model, its optimizer and the compiled steps."""

import bisect
import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from trainers.engine.cluster import worker_of
from trainers.engine.config import Config
from trainers.engine.data import Feed, Source
from trainers.engine.devices import Team, check_divisible, make_strategy, prepare_devices
from trainers.engine.flags import INTEGERS
from trainers.engine.optimizers import UpdateSize, make_optimizer
from trainers.engine.step import Stepper, as_written
from trainers.engine.task import Task
from trainers.system.errors import ConfigError, require


@dataclasses.dataclass(frozen=True)
class Plan:
    """The length of a run."""

    steps_per_epoch: int
    total_steps: int

    @classmethod
    def of(cls, config: Config, source: Source, feed: Feed) -> "Plan":
        steps = source.steps_per_epoch(feed)
        if steps == 0:
            raise ConfigError(
                f"--{config.batch_flag} must not exceed what there is to train on, {source.size} examples. "
                f"Received: {config.global_batch}"
            )
        plan = cls(steps, config.steps or steps * config.epochs)
        require(plan.total_steps in INTEGERS, "--epochs must be fewer than 2^63 updates", config.epochs)
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
        check_divisible(config, self.strategy)
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
        self.team = Team(self.worker, self.stepper)
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
