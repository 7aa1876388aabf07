"""Data as a pure function of the global step, so that a run can start at any step and two runs see the same batches.

Step s belongs to epoch s // steps_per_epoch. Every epoch has its own order, drawn statelessly from the seed and the
epoch, and drops its last partial batch. A replica reads its own micro-batches of the global batch.
"""

import abc
import dataclasses
import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Feed:
    """Which micro-batches a worker reads.

    A global batch is cut into `workers * replicas * micro_batches` equal ones, worker by worker. A worker's data set
    yields `parts` of them per step: the first of each of its replicas, in their order, then the second of each, ...
    """

    batch_size: int  # of the global batch, in the unit of the source
    seed: int = 0
    start_step: int = 0
    workers: int = 1
    worker: int = 0
    replicas: int = 1  # of this worker
    micro_batches: int = 1  # of a replica

    @property
    def parts(self) -> int:
        return self.replicas * self.micro_batches

    @property
    def micro_size(self) -> int:
        return self.batch_size // (self.workers * self.parts)


class Source(abc.ABC):
    """A data set that knows its size and serves micro-batches `(inputs, targets, weights)`."""

    size: int
    example_weight: float = 1.0  # the mean weight per unit of a batch, approximately
    ahead: int = 8  # micro-batches to prepare in advance; fewer where one is large

    def contents(self) -> Iterable[Any]:
        """Arrays and texts that identify the data, wherever they are stored."""
        return (str(self.size),)

    def steps_per_epoch(self, feed: Feed) -> int:
        return self.size // feed.batch_size

    def evaluation_steps(self, feed: Feed) -> int:
        return -(-self.size // feed.batch_size)

    @abc.abstractmethod
    def training(self, feed: Feed) -> tf.data.Dataset:
        """Endless, shuffled and, if desired, augmented micro-batches from `feed.start_step` on."""

    @abc.abstractmethod
    def evaluation(self, feed: Feed) -> tf.data.Dataset:
        """One pass in the data set's own order; the last batch is padded with examples of weight 0."""


@dataclasses.dataclass(frozen=True)
class Data:
    """The parts of a task's data; a task's own class adds what its model needs to know about them."""

    train: Source
    validation: Source
    # A further part that no choice depends on.
    test: Source | None = dataclasses.field(default=None, kw_only=True)
    # Notes on the processing of the data, which a program prints first.
    notes: tuple[str, ...] = dataclasses.field(default=(), kw_only=True)


class IndexedSource(Source):
    """A source that makes its batches from items in some order: from indices, since it has random access."""

    @abc.abstractmethod
    def load(self, parts: tf.data.Dataset, training: bool) -> tf.data.Dataset:
        """Turns micro-batches of `(indices [n], seeds [n, 2], weights [n])` into ones of `(inputs, targets, weights)`.

        A seed belongs to one example of one epoch, and is all the randomness that its augmentation may use.
        """

    def training(self, feed: Feed) -> tf.data.Dataset:
        return serving(self.load(self.order(feed), training=True), self.ahead)

    def evaluation(self, feed: Feed) -> tf.data.Dataset:
        return serving(self.load(self.evaluation_order(feed), training=False), self.ahead)

    def order(self, feed: Feed) -> tf.data.Dataset:
        """The order of training: endless micro-batches of what `load` turns into examples."""
        steps = self.steps_per_epoch(feed)

        def rows(epoch: tf.Tensor, first: tf.Tensor) -> tf.data.Dataset:
            # A permutation is drawn once per epoch, not once per step.
            order = tf.random.experimental.stateless_shuffle(tf.range(self.size, dtype=tf.int64), [feed.seed, epoch])
            return tf.data.Dataset.range(first, steps).map(lambda step: self._step(order, step, epoch, feed))

        return one_by_one(epochs(feed, steps, rows), feed)

    def evaluation_order(self, feed: Feed) -> tf.data.Dataset:
        """The micro-batches of one pass; the last batch is filled up."""
        batches = self.evaluation_steps(feed)
        order = tf.minimum(tf.range(batches * feed.batch_size, dtype=tf.int64), self.size - 1)
        rows = tf.data.Dataset.range(batches).map(lambda step: self._step(order, step, tf.constant(0, tf.int64), feed))
        return one_by_one(rows, feed)

    def _step(self, order: tf.Tensor, step: tf.Tensor, epoch: tf.Tensor, feed: Feed) -> tuple[tf.Tensor, ...]:
        positions = step * feed.batch_size + tf.range(feed.batch_size, dtype=tf.int64)
        return self.rows(positions, tf.gather(order, positions), epoch, feed)

    def rows(self, positions: tf.Tensor, items: tf.Tensor, epoch: tf.Tensor, feed: Feed) -> tuple[tf.Tensor, ...]:
        """This worker's rows of a global batch: items, seeds and weights, [parts, micro_size] if there are parts."""
        shape = [feed.parts, feed.micro_size] if feed.parts > 1 else [feed.micro_size]
        count = feed.parts * feed.micro_size
        mine = slice(feed.worker * count, (feed.worker + 1) * count)
        positions, items = positions[mine], items[mine]
        seeds = tf.stack([tf.fill([count], example_seed(feed.seed, epoch)), positions], axis=1)
        weights = tf.cast(positions < self.size, tf.float32)
        return tf.reshape(items, shape), tf.reshape(seeds, [*shape, 2]), tf.reshape(weights, shape)


class ArraySource(IndexedSource):
    """Arrays in memory; `augment(inputs, seeds)` works on whole micro-batches."""

    def __init__(self, inputs: Any, targets: Any, augment: Any = None) -> None:
        self.inputs, self.targets, self.augment = inputs, targets, augment
        self.size = len(targets)

    def contents(self) -> Iterable[Any]:
        return self.inputs, self.targets

    def load(self, parts: tf.data.Dataset, training: bool) -> tf.data.Dataset:
        inputs, targets = tf.constant(self.inputs), tf.constant(self.targets)

        def gather(indices: tf.Tensor, seeds: tf.Tensor, weights: tf.Tensor) -> Any:
            rows = tf.gather(inputs, indices)
            if training and self.augment is not None:
                rows = self.augment(rows, seeds)
            return rows, tf.gather(targets, indices), weights

        return parts.map(gather)


def fingerprint(contents: Iterable[Any]) -> str:
    """A short text that identifies the contents.

    >>> fingerprint(["a", "b"]) == fingerprint(["ab"])
    False
    """
    total = hashlib.blake2b(digest_size=16)
    for content in contents:
        array = np.frombuffer(content.encode(), np.uint8) if isinstance(content, str) else np.ascontiguousarray(content)
        total.update(f"{array.dtype} {array.shape} ".encode())
        total.update(array)  # type: ignore[arg-type]
    return total.hexdigest()


def example_seed(seed: int, epoch: tf.Tensor) -> tf.Tensor:
    """The first half of an example's seed; distinct from that of the epoch's order, which is [seed, epoch]."""
    return tf.cast(seed, tf.int64) * 1_000_003 + epoch + 1


def serving(dataset: tf.data.Dataset, ahead: int) -> tf.data.Dataset:
    """Adds the options of every data set of the engine, and prefetches."""
    options = tf.data.Options()
    # With autotune on, destroying an iterator can block for seconds.
    options.autotune.enabled = False
    options.deterministic = True
    return dataset.with_options(options).prefetch(ahead)


def epochs(feed: Feed, steps: int, parts: Callable[[tf.Tensor, tf.Tensor], tf.data.Dataset]) -> tf.data.Dataset:
    """Endless data: `parts(epoch, first)` of every epoch of `steps` steps, from its step `first` on."""
    epoch_now, step_now = divmod(feed.start_step, steps)

    def of_epoch(epoch: tf.Tensor) -> tf.data.Dataset:
        return parts(epoch, tf.where(epoch == epoch_now, tf.constant(step_now, tf.int64), 0))

    return tf.data.Dataset.range(epoch_now, tf.int32.max).flat_map(of_epoch)


def one_by_one(rows: tf.data.Dataset, feed: Feed) -> tf.data.Dataset:
    """The micro-batches in the rows of a step."""
    return rows.unbatch() if feed.parts > 1 else rows  # unbatching takes longer than making the rows


ALIGNMENT = 64  # bytes, required by TensorFlow for the memory of a tensor


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy of a one-dimensional array, aligned so that it can become a tensor without another copy."""
    buffer = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    first = -buffer.ctypes.data % ALIGNMENT
    copy = buffer[first : first + array.nbytes].view(array.dtype)
    copy[:] = array
    return copy


def shared_tensor(array: np.ndarray) -> tf.Tensor:
    """An aligned array as a tensor that shares its memory. `tf.constant` would make two more copies."""
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
