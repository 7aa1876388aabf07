"""The image sets of TensorFlow Datasets."""

from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

from trainers.engine.errors import DataError
from trainers.tasks.images.config import ImageFlags
from trainers.tasks.images.kinds import CHOSEN_ON_TEST, ImageData, Splits, are_small, photographs, small_images
from trainers.tasks.images.sources import Arrays, StreamSource
from trainers.tasks.tfds_sets import check_files, make_builder, require_prepared

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


def _split_names(builder: Any, keys: tuple[str, str]) -> Splits[str]:
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
        return Splits("train", "test", notes=(CHOSEN_ON_TEST,))
    if "test" not in splits or not splits["test"].num_examples:
        return Splits("train", validation)
    check_files(builder, "test")
    if not _has_labels(builder, "test", keys):  # ImageNet's test labels are not public
        return Splits("train", validation, notes=("the test split is not used: it has no labels",))
    return Splits("train", validation, "test")


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
