"""How pixels from 0 to 255 are scaled for a network. Needs no TensorFlow."""

import dataclasses

import numpy as np


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
