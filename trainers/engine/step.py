"""The train step: micro-batches, one reduction over replicas, one update; many steps in one graph."""

from typing import Any

import keras
import tensorflow as tf

from trainers.engine.config import Config
from trainers.engine.randomness import seed_by_step
from trainers.engine.task import Task

# Float16 skips a step whose gradients overflow, and its loss may overflow too; this many in a row are no accident.
PATIENCE = {"float32": 1, "mixed_bfloat16": 1, "mixed_float16": 30}

# As in Keras' own train step: functions of data and of a replica are traced as they are written. AutoGraph, which finds
# no loops or branches in them to convert, would take a second to look for some.
as_written = tf.autograph.experimental.do_not_convert


class Stepper:
    """Runs train and validation steps of one model under one strategy."""

    def __init__(
        self, config: Config, task: Task, model: keras.Model, optimizer: Any, strategy: tf.distribute.Strategy
    ) -> None:
        self.config, self.task, self.model, self.optimizer, self.strategy = config, task, model, optimizer, strategy
        # Counted apart from the optimizer's iterations, which stand still when a float16 step is skipped.
        self.step, self.seed = _counter(0), _counter(config.seed)
        self._micro_batch: Any = tf.constant(0, tf.int64)
        seed_by_step(model, self.seed, self._position)
        self._gradients = tf.function(self._micro_gradients, jit_compile=True) if config.xla else self._micro_gradients
        self._sums = [_accumulator(variable) for variable in self._accumulated_variables()]

    @tf.function
    def train(self, iterator: Any, count: Any) -> tuple[Any, Any, Any]:
        """Takes `count` steps.

        Returns the mean of their finite losses, how many of the last were not finite, and the weight of all examples.
        """
        total, finite_steps, bad_in_a_row = tf.constant(0.0), tf.constant(0.0), tf.constant(0)
        total_weight = tf.constant(0.0, tf.float64)
        for _ in tf.range(count):
            tf.autograph.experimental.set_loop_options(parallel_iterations=1)
            loss, weight = self._step(iterator)
            total_weight += tf.cast(weight, tf.float64)
            finite = tf.math.is_finite(loss)
            total += tf.where(finite, loss, 0.0)
            finite_steps += tf.cast(finite, tf.float32)
            bad_in_a_row = tf.where(finite, 0, bad_in_a_row + 1)
            self.step.assign_add(1)
        return total / finite_steps, bad_in_a_row, total_weight

    @tf.function
    def evaluate(self, iterator: Any, count: Any) -> dict[str, Any]:
        """Weighted means of the loss and the metrics over `count` batches: a whole data set."""
        sums = dict.fromkeys(("loss", *self.task.metric_names, "weight"), tf.constant(0.0, tf.float64))
        for _ in tf.range(count):
            values = self._local(self.strategy.run(self._replica_metrics, args=(next(iterator),)))
            sums = {name: sums[name] + tf.cast(values[name], tf.float64) for name in sums}
        return {name: value / sums["weight"] for name, value in sums.items() if name != "weight"}

    def _step(self, iterator: Any) -> tuple[Any, Any]:
        if self.config.accumulate == 1:
            local: tuple[Any, Any] = self._local(self.strategy.run(self._whole_batch, args=(next(iterator),)))
            return local
        loss, weight, assumed = tf.constant(0.0), tf.constant(0.0), tf.constant(0.0)
        # The loop stands outside the replicas: inside, nothing in a model could synchronise, batch normalisation least.
        for index in tf.range(self.config.accumulate):
            # One at a time: by default ten micro-batches may be under way, with the memory of ten.
            tf.autograph.experimental.set_loop_options(parallel_iterations=1)
            arguments = (next(iterator), index, assumed)
            part, part_weight, assumed = self._local(self.strategy.run(self._one_micro_batch, args=arguments))
            loss += part
            weight += part_weight
        self.strategy.run(self._apply_sums, args=(assumed / weight,))
        return loss * (assumed / weight), weight

    @as_written
    def _whole_batch(self, batch: Any) -> tuple[Any, Any]:
        inputs, targets, weights = batch
        weight = self._over_replicas(tf.reduce_sum(weights))
        loss, gradients = self._gradients(inputs, targets, weights / weight)
        self.optimizer.apply(gradients, self.model.trainable_variables)
        return self._over_replicas(loss), weight

    @as_written
    def _one_micro_batch(self, batch: Any, index: Any, assumed: Any) -> tuple[Any, Any, Any]:
        """Adds the gradients of one micro-batch to the sums of this replica.

        An example counts by its share in the weight of the whole batch: a mean of means would be another loss. That
        weight is known when the last micro-batch has been seen; until then one is assumed, from the first.
        """
        self._micro_batch = tf.cast(index, tf.int64)
        inputs, targets, weights = batch
        weight = self._over_replicas(tf.reduce_sum(weights))
        assumed = tf.where(index == 0, weight * self.config.accumulate, assumed)
        loss, gradients = self._gradients(inputs, targets, weights / assumed)
        for total, gradient in zip(self._sums, gradients, strict=True):
            total.assign_add(tf.convert_to_tensor(gradient))
        return self._over_replicas(loss), weight, assumed

    @as_written
    def _apply_sums(self, correction: Any) -> None:
        """Updates with the sums, corrected for the weight that was assumed."""
        gradients = [total * tf.cast(correction, total.dtype) for total in self._sums]
        self.optimizer.apply(gradients, self.model.trainable_variables)
        for total in self._sums:
            total.assign(tf.zeros_like(total))

    def _micro_gradients(self, inputs: Any, targets: Any, weights: Any) -> tuple[Any, list[Any]]:
        with tf.GradientTape() as tape:
            outputs = self.model(inputs, training=True)
            loss = tf.reduce_sum(weights * self.task.loss(self.config, targets, outputs))
            scaled = self.optimizer.scale_loss(loss)
        return loss, tape.gradient(scaled, self.model.trainable_variables)

    def _accumulated_variables(self) -> list[Any]:
        return self.model.trainable_variables if self.config.accumulate > 1 else []

    @as_written
    def _replica_metrics(self, batch: Any) -> dict[str, Any]:
        inputs, targets, weights = batch
        outputs = self.model(inputs, training=False)
        values = {"loss": self.task.loss(self.config, targets, outputs), **self.task.metrics(targets, outputs)}
        sums = {name: tf.reduce_sum(value * weights) for name, value in values.items()}
        return {name: self._over_replicas(value) for name, value in (sums | {"weight": tf.reduce_sum(weights)}).items()}

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
        """One of the values that all replicas agree on."""
        return tf.nest.map_structure(lambda value: self.strategy.experimental_local_results(value)[0], values)


def _counter(value: int) -> tf.Variable:
    """An integer that all replicas have in common."""
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
