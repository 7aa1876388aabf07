"""Sources of image batches: arrays in memory, image files, or the records of a TFDS set. All of them return uint8."""

import functools
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

from trainers.engine.data import ArraySource, Feed, IndexedSource, epochs, example_seed, one_by_one
from trainers.tasks.files import require_data
from trainers.tasks.images.augment import (
    draw_parts,
    image_size,
    pad_crop_flip,
    training_photograph,
    validation_photograph,
)

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
OPEN_FILES = 16
RECORDS_PER_TURN = 16

Arrays = tuple[np.ndarray, np.ndarray]  # images [n, height, width, channels] uint8, labels [n] int64


class SmallImages(ArraySource):
    """Images of one size, kept in memory; those in colour are shifted and mirrored at random in training."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        height, width, channels = images.shape[1:]
        # Digits and letters are grey, and mirroring could turn them into others.
        self.pad = max(1, max(height, width) // 8) if channels == 3 else 0
        super().__init__(images, labels, functools.partial(pad_crop_flip, pad=self.pad) if self.pad else None)


class Photographs(IndexedSource):
    """Image files of any size, read and decoded on demand."""

    ahead = 2

    def __init__(self, paths: Sequence[str], labels: Sequence[int], image_size: int) -> None:
        self.paths, self.labels, self.image_size = list(paths), list(labels), image_size
        self.size = len(self.paths)

    def contents(self) -> Iterable[Any]:
        """Only file names and classes: reading every photograph would take as long as an epoch."""
        names = os.fsencode("\n".join("/".join(Path(path).parts[-2:]) for path in self.paths))
        return names.decode(errors="backslashreplace"), np.asarray(self.labels)

    def load(self, parts: tf.data.Dataset, training: bool) -> tf.data.Dataset:
        paths, labels = tf.constant([os.fsencode(path) for path in self.paths]), tf.constant(self.labels, tf.int64)

        def read(index: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return tf.io.read_file(paths[index]), labels[index]

        return decoded(parts, read, self.image_size, training)


class StreamSource(IndexedSource):
    """The photographs of a TFDS set that is too large for memory, made from the records of its TFRecord files.

    The order of an epoch is a function of the seed and the epoch: the files are shuffled, sixteen at a time are
    interleaved, and encoded records are shuffled in a buffer of size `buffer`. To start within an epoch, the records
    before that point are read but not decoded.
    """

    ahead = 2

    def __init__(self, builder: Any, split: str, keys: tuple[str, str], image_size: int, buffer: int = 8192) -> None:
        rule = "A TFDS set of this size must be in TFRecord files"
        file_format = builder.info.file_format
        require_data(file_format == tfds.core.FileFormat.TFRECORD, rule, f"{file_format} in {builder.data_dir}")
        self.features, self.keys, self.image_size, self.buffer = builder.info.features, keys, image_size, buffer
        self.files = [str(path) for path in builder.info.splits[split].filepaths]
        self.size = builder.info.splits[split].num_examples

    def contents(self) -> Iterable[Any]:
        """The file names, which contain the set, the split and the number of files, and the number of examples."""
        return "\n".join(Path(file).name for file in self.files), str(self.size)

    def order(self, feed: Feed) -> tf.data.Dataset:
        steps = self.steps_per_epoch(feed)

        def rows(epoch: tf.Tensor, first: tf.Tensor) -> tf.data.Dataset:
            records = self._shuffled(feed.seed, epoch).take(steps * feed.batch_size)
            return self._batches(records, epoch, first, feed)

        return one_by_one(epochs(feed, steps, rows), feed)

    def evaluation_order(self, feed: Feed) -> tf.data.Dataset:
        # The last batch is filled up from the beginning.
        records = tf.data.TFRecordDataset(self.files).repeat().take(self.evaluation_steps(feed) * feed.batch_size)
        return one_by_one(self._batches(records, tf.constant(0, tf.int64), 0, feed), feed)

    def load(self, parts: tf.data.Dataset, training: bool) -> tf.data.Dataset:
        image_key, label_key = self.keys
        decoders = {image_key: tfds.decode.SkipDecoding()}

        def read(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            features = self.features.deserialize_example(record, decoders=decoders)
            return features[image_key], tf.cast(features[label_key], tf.int64)

        return decoded(parts, read, self.image_size, training)

    def _shuffled(self, seed: int, epoch: tf.Tensor) -> tf.data.Dataset:
        # `shuffle` combines its own seed with the graph's, so the order would depend on the caller's
        # `tf.random.set_seed`. This call sets the seed of the function that is being traced, and of nothing else.
        tf.random.set_seed(1)
        files = tf.random.experimental.stateless_shuffle(self.files, [seed, epoch])
        records = tf.data.Dataset.from_tensor_slices(files).interleave(
            tf.data.TFRecordDataset,
            cycle_length=OPEN_FILES,
            block_length=RECORDS_PER_TURN,
            num_parallel_calls=OPEN_FILES,
            deterministic=True,
        )
        return records.shuffle(self.buffer, seed=example_seed(seed, epoch), reshuffle_each_iteration=False)

    def _batches(self, records: tf.data.Dataset, epoch: tf.Tensor, first: Any, feed: Feed) -> tf.data.Dataset:
        batches = records.enumerate().skip(first * feed.batch_size).batch(feed.batch_size, drop_remainder=True)
        return batches.map(lambda positions, items: self.rows(positions, items, epoch, feed))


def decoded(
    parts: tf.data.Dataset, read: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]], size: int, training: bool
) -> tf.data.Dataset:
    """Decodes micro-batches of items into photographs; `read` maps an item to an encoded image and its label.

    Uses all cores and keeps the order of the examples. It works example by example, not batch by batch, so that no
    core waits for the end of a batch and few images are in memory at a time. Unbatching and batching again is cheap:
    it only moves indices, encoded images and bytes of pixels.
    """
    count = parts.element_spec[0].shape[0]

    def by_example(dataset: tf.data.Dataset, function: Callable[..., Any]) -> tf.data.Dataset:
        examples = dataset.unbatch().map(function, num_parallel_calls=CORES, deterministic=True)
        return examples.batch(count, drop_remainder=True)

    def read_example(item: tf.Tensor, seed: tf.Tensor, weight: tf.Tensor) -> Any:
        encoded, label = read(item)
        return encoded, image_size(encoded), seed, label, weight

    def draw(encoded: tf.Tensor, sizes: tf.Tensor, seeds: tf.Tensor, *others: tf.Tensor) -> Any:
        return encoded, *draw_parts(sizes, seeds), *others

    def see_part(encoded: tf.Tensor, window: tf.Tensor, mirrored: tf.Tensor, *others: tf.Tensor) -> Any:
        return training_photograph(encoded, window, mirrored, size), *others

    def see_centre(item: tf.Tensor, seed: tf.Tensor, weight: tf.Tensor) -> Any:
        encoded, label = read(item)
        return validation_photograph(encoded, size), label, weight

    if not training:
        return by_example(parts, see_centre)
    return by_example(by_example(parts, read_example).map(draw), see_part)
