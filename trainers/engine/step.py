"""The train step: micro-batches, one reduction over replicas, one update; many steps in one graph."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tfwarmup.distribution import gradients_are_summed, summed_over_replicas
from trainers.engine.config import Config
from trainers.engine.layer_state import MovingStatistics, StatelessSeeds
from trainers.engine.task import Task

# Float16 skips a step whose gradients overflow, and its loss may overflow too; this many in a row are no accident.
PATIENCE = {"float32": 1, "mixed_bfloat16": 1, "mixed_float16": 30}

# As in Keras' own train step, functions of data and of a replica are traced without AutoGraph: they have no loops or
# branches to convert, and looking for some would take a second.
as_written = tf.autograph.experimental.do_not_convert


class Sums(NamedTuple):
    """Sums over the steps since the last record, carried from call to call: no bit depends on where calls end."""

    loss: Any  # of the finite losses
    finite: Any  # the number of finite losses
    weight: Any  # of all examples
    bad_in_a_row: Any  # the last steps without a finite loss or an update, also across records
    gradient_norm: Any  # of the last step, before clipping

    @classmethod
    def of(cls, values: Sequence[float]) -> "Sums":
        dtypes = (tf.float32, tf.float32, tf.float64, tf.int32, tf.float32)
        return cls(*(tf.constant(value, dtype) for value, dtype in zip(values, dtypes, strict=True)))

    @classmethod
    def none(cls, bad_in_a_row: int = 0) -> "Sums":
        return cls.of([0.0, 0.0, 0.0, bad_in_a_row, 0.0])

    def values(self) -> list[float]:
        """The sums as Python numbers, exactly."""
        return [value.numpy().item() for value in self]


class Stepper:
    """Runs train and validation steps of one model under one strategy."""

    def __init__(
        self,
        config: Config,
        task: Task,
        model: keras.Model,
        optimizer: Any,
        strategy: tf.distribute.Strategy,
        example_weight: float = 1.0,
    ) -> None:
        self.config, self.task, self.model, self.optimizer, self.strategy = config, task, model, optimizer, strategy
        # Counted apart from the optimizer's iterations, which stand still when a float16 step is skipped.
        self.step, self.seed = _counter(0), _counter(config.seed)
        self._micro_batch: Any = tf.constant(0, tf.int64)
        self._seeds = StatelessSeeds(model, self.seed, self._position)
        self._statistics = MovingStatistics(model)
        self.measured: tuple[str, ...] = ()  # what `evaluate` sums up
        self._gradients = tf.function(self._micro_gradients, jit_compile=True) if config.xla else self._micro_gradients
        accumulated = model.trainable_variables if config.accumulate > 1 else []
        self._sums = [_accumulator(variable) for variable in accumulated]
        self._loss_and_weight = _accumulator(tf.zeros([2]))
        self._likely_weight = config.global_batch * example_weight  # of a whole batch

    @tf.function
    def train(self, iterator: Any, count: Any, sums: Sums) -> Sums:
        """Takes `count` steps and adds them to the sums."""
        total, finite_steps, total_weight, bad_in_a_row, norm = sums
        for index in tf.range(count):
            tf.autograph.experimental.set_loop_options(parallel_iterations=1)
            updates = tf.identity(self.optimizer.iterations)
            loss, weight, norm = self._step(iterator, index == count - 1)
            total_weight += tf.cast(weight, tf.float64)
            finite = tf.math.is_finite(loss)
            total += tf.where(finite, loss, 0.0)
            finite_steps += tf.cast(finite, tf.float32)
            good = tf.logical_and(finite, tf.identity(self.optimizer.iterations) > updates)
            bad_in_a_row = tf.where(good, 0, bad_in_a_row + 1)
            self.step.assign_add(1)
        return Sums(total, finite_steps, total_weight, bad_in_a_row, norm)

    def _step(self, iterator: Any, measured: Any) -> Any:
        if self.config.accumulate == 1:
            return self._local(self.strategy.run(self._whole_batch, args=(next(iterator), measured)))
        # The loop is outside `strategy.run`: inside, layers such as batch normalisation could not synchronise.
        for index in tf.range(self.config.accumulate):
            # One at a time: by default, ten micro-batches may run at once, with ten times the memory.
            tf.autograph.experimental.set_loop_options(parallel_iterations=1)
            self.strategy.run(self._one_micro_batch, args=(next(iterator), index))
        return self._local(self.strategy.run(self._apply_sums, args=(measured,)))

    @as_written
    def _whole_batch(self, batch: Any, measured: Any) -> tuple[Any, Any, Any]:
        inputs, targets, weights = batch
        weight = self._over_replicas(tf.reduce_sum(weights))
        loss, gradients = self._gradients(inputs, targets, tf.math.divide_no_nan(weights, weight))
        return self._over_replicas(loss), weight, self._update(gradients, measured)

    @as_written
    def _one_micro_batch(self, batch: Any, index: Any) -> None:
        """Adds the gradients of one micro-batch, its loss and its weight to the sums of this replica.

        An example counts by its share in the weight of the whole batch: a mean of means would be a different loss. That
        weight is only known after the last micro-batch; until then, the expected weight is assumed. So no replica waits
        for another before the update, unless the model itself synchronises.
        """
        self._micro_batch = tf.cast(index, tf.int64)
        inputs, targets, weights = batch
        loss, gradients = self._gradients(inputs, targets, weights / self._likely_weight)
        for total, gradient in zip(self._sums, gradients, strict=True):
            total.assign_add(tf.convert_to_tensor(gradient))
        self._loss_and_weight.assign_add(tf.stack([loss, tf.reduce_sum(weights)]))

    @as_written
    def _apply_sums(self, measured: Any) -> tuple[Any, Any, Any]:
        """Applies the summed gradients, corrected for the assumed weight; returns loss, weight and norm."""
        loss, weight = tf.unstack(self._over_replicas(tf.identity(self._loss_and_weight)))
        correction = tf.math.divide_no_nan(self._likely_weight, weight)
        norm = self._update([total * tf.cast(correction, total.dtype) for total in self._sums], measured)
        for total in (*self._sums, self._loss_and_weight):
            total.assign(tf.zeros_like(total))
        return loss * correction, weight, norm

    def _micro_gradients(self, inputs: Any, targets: Any, weights: Any) -> tuple[Any, list[Any]]:
        self._seeds.begin_pass()
        with tf.GradientTape() as tape:
            outputs = self.model(inputs, training=True)
            loss = tf.reduce_sum(weights * self.task.loss(self.config, targets, outputs))
            scaled = self.optimizer.scale_loss(loss)
        return loss, tape.gradient(scaled, self.model.trainable_variables)

    def _update(self, gradients: Sequence[Any], measured: Any) -> Any:
        """Applies the gradients of all replicas; returns their norm if it is `measured`."""
        summed = summed_over_replicas(gradients)
        scale = self.optimizer.scale_loss(tf.constant(1.0))  # the optimizer may change it
        norm = tf.cond(measured, lambda: _global_norm(summed) / scale, lambda: tf.constant(0.0))
        with gradients_are_summed():
            self.optimizer.apply(summed, self.model.trainable_variables)
        self._statistics.average()
        return norm

    @tf.function
    def evaluate(self, iterator: Any, count: Any) -> Any:
        """The sums of `count` batches, float64 with one row per batch. Sets `measured`, the names of the columns."""
        rows = tf.TensorArray(tf.float64, count)
        for index in tf.range(count):
            rows = rows.write(index, self._evaluated_batch(iterator))
        return rows.stack()

    def _evaluated_batch(self, iterator: Any) -> Any:
        values = self._local(self.strategy.run(self._replica_metrics, args=(next(iterator),)))
        self.measured = tuple(values)
        return tf.stack([tf.cast(value, tf.float64) for value in values.values()])

    @as_written
    def _replica_metrics(self, batch: Any) -> dict[str, Any]:
        inputs, targets, weights = batch
        outputs = self.model(inputs, training=False)
        values = {
            "loss": self.task.loss(self.config, targets, outputs),
            **self.task.metrics(self.config, targets, outputs),
        }
        sums = {name: tf.reduce_sum(value * weights) for name, value in values.items()}
        return {name: self._over_replicas(value) for name, value in (sums | {"weight": tf.reduce_sum(weights)}).items()}

    def sums_over_workers(self, values: list[float]) -> list[float]:
        """The sums of a list of numbers over all workers, which wait for each other here."""
        return list(self._sum_over_workers(tf.constant(values, tf.float64)).numpy().tolist())

    @tf.function
    def _sum_over_workers(self, values: Any) -> Any:
        # A copy, because a reduction needs its input on the replica's device.
        add = as_written(lambda vector: self._over_replicas(tf.identity(vector)))
        total = self._local(self.strategy.run(add, args=(values,)))
        return total / len(self.strategy.extended.worker_devices)  # every replica of a worker adds its vector

    def _position(self) -> Any:
        context = tf.distribute.get_replica_context()
        replica = 0 if context is None else context.replica_id_in_sync_group
        number = self.step * self.strategy.num_replicas_in_sync + tf.cast(replica, tf.int64)
        return number * self.config.accumulate + self._micro_batch

    def _over_replicas(self, value: Any) -> Any:
        context = tf.distribute.get_replica_context()
        if context.num_replicas_in_sync == 1:
            return value
        return context.all_reduce(tf.distribute.ReduceOp.SUM, value)

    def _local(self, values: Any) -> Any:
        """The value of one replica, where all replicas have the same."""
        return tf.nest.map_structure(lambda value: self.strategy.experimental_local_results(value)[0], values)


def _global_norm(gradients: Sequence[Any]) -> Any:
    return tf.linalg.global_norm([_without_duplicates(gradient) for gradient in gradients if gradient is not None])


def _without_duplicates(gradient: Any) -> Any:
    """The rows of an embedding's gradient; those of the same word are added up."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    words, places = tf.unique(gradient.indices)
    return tf.math.unsorted_segment_sum(gradient.values, places, tf.size(words))


def _counter(value: int) -> tf.Variable:
    """An integer that all replicas share."""
    only_first = tf.VariableAggregation.ONLY_FIRST_REPLICA
    return tf.Variable(value, dtype=tf.int64, trainable=False, aggregation=only_first)


def _accumulator(variable: Any) -> tf.Variable:
    """A sum that each replica keeps for itself."""
    return tf.Variable(
        tf.zeros(variable.shape, variable.dtype),
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )
