"""Made-up image sets of every kind, in which every image of a split has a label of its own."""

import gzip
import struct

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

from trainers.tasks.images.config import ImageFlags
from trainers.tasks.images.data import load_images

TRAIN, VALIDATION, SIZE = 22, 11, 16


def load(dataset, data_dir=None, image_size=None, **options):
    return load_images(ImageFlags(dataset, data_dir and str(data_dir), image_size, **options))


def picture(number: int, height: int, width: int) -> np.ndarray:
    """Smooth colours, different for every number, so that every crop is different too."""
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / 5 + number) + np.cos(y / 4 * (c + 1) + number) for c in range(3)]
    return (np.stack(waves, axis=-1) * 60 + 128).astype(np.uint8)


class SmallColours(tfds.core.GeneratorBasedBuilder):
    """Images of one size."""

    VERSION = tfds.core.Version("1.0.0")
    SHAPE = (32, 32, 3)
    ENCODING = "png"
    COUNTS = (("train", TRAIN), ("test", VALIDATION))

    def _info(self):
        features = {
            "image": tfds.features.Image(shape=self.SHAPE, encoding_format=self.ENCODING),
            "label": tfds.features.ClassLabel(num_classes=TRAIN),
        }
        return self.dataset_info_from_configs(
            features=tfds.features.FeaturesDict(features), supervised_keys=("image", "label")
        )

    def _split_generators(self, dl_manager):
        return {split: self._generate_examples(count) for split, count in self.COUNTS}

    def _generate_examples(self, count):
        for number in range(count):
            height, width = (side or 20 + number for side in self.SHAPE[:2])
            yield number, {"image": picture(number, height, width), "label": number}


class LargePhotographs(SmallColours):
    """Images of any size."""

    VERSION = tfds.core.Version("1.0.0")
    SHAPE = (None, None, 3)
    ENCODING = "jpeg"


class ThreeParts(SmallColours):
    """A set with a part for validation and one for a test."""

    VERSION = tfds.core.Version("1.0.0")
    COUNTS = (("train", TRAIN), ("validation", VALIDATION), ("test", 3))


def write_idx(path, array):
    data = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def write_idx_folder(folder, dot="-", suffix=""):
    folder.mkdir(exist_ok=True)
    for split, count in (("train", TRAIN), ("t10k", VALIDATION)):
        images = np.stack([picture(number, 12, 10)[..., 0] for number in range(count)])
        write_idx(folder / f"{split}-images{dot}idx3-ubyte{suffix}", images)
        write_idx(folder / f"{split}-labels{dot}idx1-ubyte{suffix}", np.arange(count, dtype=np.uint8))


def write_image(path, pixels, encode=tf.io.encode_png):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(pixels).numpy())


def write_photographs(folder, classes=TRAIN, validation="val"):
    for split in ("train", validation):
        for number in range(classes):
            image = picture(number, 18 + 3 * number, 60 - 2 * number)[..., : 1 if number == 3 else 3]
            # Once a PNG that says it is a JPEG, as there is one in ImageNet, and once a grey JPEG.
            encode = tf.io.encode_png if number == 2 else tf.io.encode_jpeg
            write_image(folder / split / f"class_{number:02}" / "image.JPEG", image, encode)
    return folder
