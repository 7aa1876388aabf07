"""How images are prepared for a network: splits, size, and the scaling of pixels. Needs no TensorFlow."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from trainers.engine.data import Data, Source
from trainers.system.errors import DataError
from trainers.tasks.images.config import ImageFlags
from trainers.tasks.images.sources import Arrays, SmallImages


@dataclasses.dataclass(frozen=True)
class Scaling:
    """(pixel - mean) / deviation, with one number for all channels or one per channel.

    Images stay uint8 until the first layer of a model scales them on its device. A saved model includes its scaling.
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __str__(self) -> str:
        if self == UNIT:
            return "pixels scaled to [0, 1]"
        if self == IMAGENET:
            return "pixels normalised by ImageNet's mean and deviation"
        mean, deviation = (value / 255 for value in (*self.mean, *self.deviation))
        return f"pixels standardised by mean {mean:.6g} and deviation {deviation:.6g} of [0, 1]"


UNIT = Scaling((0.0,), (255.0,))
IMAGENET = Scaling(
    tuple(255 * mean for mean in (0.485, 0.456, 0.406)), tuple(255 * deviation for deviation in (0.229, 0.224, 0.225))
)


def standardizing(images: np.ndarray) -> Scaling:
    """The scaling by the mean and the deviation of all pixels of uint8 images.

    >>> standardizing(np.array([0, 10], np.uint8))
    Scaling(mean=(5.0,), deviation=(5.0,))
    """
    values, counts = np.arange(256.0), np.bincount(images.ravel(), minlength=256)
    mean = float(np.average(values, weights=counts))
    return Scaling((mean,), (float(np.average((values - mean) ** 2, weights=counts)) ** 0.5,))


SMALL_SIZE = 64  # pixels of the longer side
MEMORY_LIMIT = 2 * 2**30  # bytes of uint8 pixels of all splits
CHOSEN_ON_TEST = "the best model is chosen on the test split: there is no other for validation"

PartT = TypeVar("PartT")
OtherT = TypeVar("OtherT")
SourceT = TypeVar("SourceT", bound=Source)


@dataclasses.dataclass(frozen=True)
class ImageData(Data):
    """Splits of uint8 images, channels last, with int64 labels, and the scaling that a model applies to the pixels."""

    classes: int
    image_shape: tuple[int, int, int]
    skipped: tuple[str, ...] = ()  # image files left out because they cannot be decoded
    scaling: Scaling = UNIT


class ImageSplits(NamedTuple, Generic[PartT]):
    """The splits of an image set, in any form. `notes` are remarks to show to the user."""

    train: PartT
    validation: PartT
    test: PartT | None = None
    notes: tuple[str, ...] = ()

    def parts(self) -> list[PartT]:
        return [self.train, self.validation] + ([] if self.test is None else [self.test])

    def map(self, function: Callable[[PartT], OtherT]) -> "ImageSplits[OtherT]":
        """The same splits in another form."""
        test = None if self.test is None else function(self.test)
        return ImageSplits(function(self.train), function(self.validation), test, self.notes)


def are_small(shape: Sequence[int], count: int, image_size: int | None) -> bool:
    """Whether `count` images of one shape count as small, and no other size is requested."""
    asked = image_size is None or tuple(shape[:2]) == (image_size, image_size)
    return asked and max(shape[:2]) <= SMALL_SIZE and math.prod(shape) * count <= MEMORY_LIMIT


def small_images(splits: ImageSplits[Arrays], options: ImageFlags, classes: int | None = None) -> ImageData:
    """Images of one size, in memory."""
    images = splits.train[0]
    height, width, channels = images.shape[1:]
    size = options.image_size
    if size is not None and (height, width) != (size, size):
        raise DataError(
            f"`image_size` must be left out for images of one size, here {height}x{width}. Received: image_size={size}"
        )
    classes = classes or 1 + int(max(labels.max() for _, labels in splits.parts()))
    if classes < 2:
        raise DataError(f"Images must be of at least 2 classes. Received: {classes}")
    sources = splits.map(lambda arrays: SmallImages(*arrays))
    scaling, pad = _scaling(images, options), sources.train.pad
    moved = f", moved by up to {pad} pixels and mirrored in training" if pad else ""
    return ImageData(
        sources.train,
        sources.validation,
        classes,
        (height, width, channels),
        scaling=scaling,
        test=sources.test,
        notes=(f"images of {height}x{width}x{channels} in memory{moved}; {scaling}", *splits.notes),
    )


def photographs(
    splits: ImageSplits[SourceT], options: ImageFlags, classes: int, size: int, skipped: tuple[str, ...] = ()
) -> ImageData:
    """Images of any size, cropped to `size` as they are loaded."""
    if options.standardize:
        raise DataError(
            f"`standardize` is for grey images of one size, at most {SMALL_SIZE} pixels. Received: photographs"
        )
    treatment = f"photographs, of which training sees random parts and validation the centre, at {size}x{size}"
    return ImageData(
        splits.train,
        splits.validation,
        classes,
        (size, size, 3),
        skipped,
        IMAGENET,
        test=splits.test,
        notes=(f"{treatment}; {IMAGENET}", *splits.notes),
    )


def _scaling(images: np.ndarray, options: ImageFlags) -> Scaling:
    if not options.standardize:
        return UNIT
    if images.shape[-1] != 1:
        raise DataError(f"`standardize` is for grey images. Received: images with {images.shape[-1]} channels")
    if options.standardize_by:
        mean, deviation = options.standardize_by
        return Scaling((255 * mean,), (255 * deviation,))
    scaling = standardizing(images)
    if not scaling.deviation[0]:
        raise DataError("Images to be standardised must differ. Received: all pixels are the same")
    return scaling
