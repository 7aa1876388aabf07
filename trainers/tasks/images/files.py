"""Image files: which split and class each file of a folder belongs to, their shapes, and MNIST's idx files."""

import gzip
import logging
import os
import stat
import time
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import numpy as np
import tensorflow as tf

from trainers.engine.data import serving
from trainers.system.errors import DataError
from trainers.system.files import shown
from trainers.tasks import cache
from trainers.tasks.files import Splits, first_file, require_data
from trainers.tasks.images.sources import CORES, Arrays

CHOSEN_ON_TEST = "the best model is chosen on the test split: there is no other for validation"
VALIDATION_FOLDERS = ("val", "validation")
SUFFIXES = (".jpg", ".jpeg", ".png")
INNER = "images"  # a folder between the class folder and its images, as in Tiny-ImageNet
CACHED = "images"  # the name of the cache entry
LOGGED_FROM = 20_000  # files; checking this many takes a while and is logged
THREADS = 16  # that wait for the disk

ByClass = list[list[str]]  # the paths of each class
State = tuple[int, int]  # size in bytes and modification time of a file
UNREADABLE: State = (-1, 0)


def find_images(folder: Path) -> tuple[Splits[ByClass], list[str]]:
    """The image files below `<folder>/<split>/<class>/`, and the names of the classes."""
    found = [name for name in VALIDATION_FOLDERS if (folder / name).is_dir()]
    has_test = (folder / "test").is_dir()
    require_data(
        (found or has_test) and (folder / "train").is_dir(),
        "`data_dir` must hold MNIST's idx files, or `train/<class>/*.jpg|jpeg|png` and the same below one of "
        f"{', '.join(VALIDATION_FOLDERS)}, test",
        f"{folder} with {[shown(path.name) for path in sorted(folder.iterdir())][:10]}",
    )
    classes = _class_names(folder / "train")
    require_data(len(classes) >= 2, "Images must be of at least 2 classes", f"{classes} in {folder / 'train'}")
    train = [_image_files(folder / "train" / name) for name in classes]
    if not found:
        return Splits(train, _split(folder / "test", classes), notes=(CHOSEN_ON_TEST,)), classes
    splits = Splits(train, _split(folder / found[0], classes))
    if has_test and _class_names(folder / "test") == classes:
        splits = splits._replace(test=_split(folder / "test", classes))
    elif has_test:  # Tiny-ImageNet's test images have no labels
        splits = splits._replace(notes=("the test folder is not used: its classes are not those of train",))
    return splits, classes


def _split(split: Path, classes: list[str]) -> ByClass:
    annotations = split / f"{split.name}_annotations.txt"
    if annotations.is_file():
        return _annotated(split, annotations, classes)
    others = sorted({*classes} ^ {*_class_names(split)})
    rule = "Both splits must have the same class folders"
    only = f"{split.parent}, where only one of train and {split.name} has {[shown(name) for name in others[:10]]}"
    require_data(not others, rule, only)
    return [_image_files(split / name) for name in classes]


def _annotated(split: Path, annotations: Path, classes: list[str]) -> ByClass:
    """The images of a folder whose classes are listed in a text file, as in Tiny-ImageNet's validation split."""
    numbers = {name: number for number, name in enumerate(classes)}
    found: ByClass = [[] for _ in classes]
    for place, line in enumerate(annotations.read_text(errors="replace").splitlines(), 1):
        name, _, rest = line.partition("\t")
        label = numbers.get(rest.split("\t")[0])
        if label is None:
            rule = "A line of annotations must be a file's name, a tab and a class folder of train"
            raise DataError(f"{rule}. Received: {line[:80]!r}, line {place} of {annotations}")
        found[label].append(str(split / INNER / name))
    _require_images([split / name for name in classes], found)
    return found


def _class_names(split: Path) -> list[str]:
    return sorted(entry.name for entry in split.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def _image_files(folder: Path) -> list[str]:
    files = _files_in(folder)
    if not files and (folder / INNER).is_dir():
        files = _files_in(folder / INNER)
    _require_images([folder], [files])
    return files


def _files_in(folder: Path) -> list[str]:
    # macOS leaves `._name.jpg`, which is not an image, beside `name.jpg`.
    names = sorted(os.listdir(folder))
    return [str(folder / name) for name in names if name.lower().endswith(SUFFIXES) and name[0] != "."]


def _require_images(folders: Sequence[Path], files: ByClass) -> None:
    for folder, paths in zip(folders, files, strict=True):
        require_data(paths, f"A class folder must hold at least one {', '.join(SUFFIXES)} file", shown(folder))


def image_shapes(paths: Sequence[str], known: cache.DataCache) -> np.ndarray:
    """Height, width and channels (1 or 3) of every image, int32 [n, 3]; zeros where the file cannot be decoded.

    Every file is decoded once, as in training. The results are cached, and files whose size and modification time have
    not changed are not opened again.
    """
    parts = [paths[first : first + 256] for first in range(0, len(paths), 256)]
    with ThreadPoolExecutor(THREADS) as pool:
        states = list(chain.from_iterable(pool.map(lambda part: [_state(path) for path in part], parts)))
    names = [os.fsencode(path[len(str(known.root)) + 1 :]) for path in paths]  # the folder may be moved
    before, stored = {}, known.read(CACHED)
    if stored:
        keys = zip(stored["names"].tolist(), map(tuple, stored["states"].tolist()), strict=True)
        before = dict(zip(keys, stored["shapes"].tolist(), strict=True))
    found = [before.get(key) for key in zip(names, states, strict=True)]
    shapes = np.array([shape or (0, 0, 0) for shape in found], np.int32)
    new = [n for n, shape in enumerate(found) if shape is None and states[n] != UNREADABLE]
    began = time.monotonic()
    if len(new) >= LOGGED_FROM:
        logging.info("decoding %d images once, to check that they are not damaged", len(new))
    for index, shape in decoded_shapes([paths[number] for number in new]):
        shapes[new[index]] = shape
    if new and (before or time.monotonic() - began >= cache.WORTH_SECONDS):
        known.write(CACHED, {"names": np.array(names), "states": np.array(states, np.int64), "shapes": shapes})
    return shapes


def _state(path: str) -> State:
    """The state of a regular file; others count as unreadable, since opening a FIFO would wait forever."""
    try:
        status = os.stat(path)
    except OSError:
        return UNREADABLE
    return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else UNREADABLE


def decoded_shapes(paths: Sequence[str]) -> Iterable[tuple[int, np.ndarray]]:
    """The number and the shape of each image that can be decoded."""
    if not paths:
        return
    places = tf.constant([os.fsencode(path) for path in paths])
    shapes = tf.data.Dataset.range(len(paths)).map(
        lambda number: (number, _shape(tf.io.read_file(places[number]))), num_parallel_calls=CORES
    )
    # Files that cannot be decoded raise an error and are left out.
    yield from serving(shapes.ignore_errors(), ahead=64).as_numpy_iterator()


def _shape(encoded: tf.Tensor) -> tf.Tensor:
    """The shape of an image; fails if it cannot be decoded."""

    def of_jpeg() -> tf.Tensor:
        height, width, channels = tf.unstack(tf.io.extract_jpeg_shape(encoded))
        # At an eighth of the size, every byte is decoded but few pixels are computed. The result depends on them,
        # because TensorFlow removes operations whose results nobody needs, even control dependencies.
        rows = tf.shape(tf.io.decode_jpeg(encoded, channels=3, ratio=8))[0]
        return tf.stack([tf.where(rows > 0, height, 0), width, tf.where(channels == 1, 1, 3)])

    def of_png() -> tf.Tensor:
        # Other kinds could be decoded here, but their headers do not tell whether they are grey.
        tf.debugging.assert_equal(tf.strings.substr(encoded, 1, 3), b"PNG")
        shape = tf.shape(tf.io.decode_image(encoded, channels=3, expand_animations=False))
        kind = tf.strings.substr(encoded, 25, 1)
        grey = (kind == b"\x00") | (kind == b"\x04")  # without and with transparency
        return tf.stack([shape[0], shape[1], tf.where(grey, 1, 3)])

    return tf.ensure_shape(tf.cond(tf.io.is_jpeg(encoded), of_jpeg, of_png), [3])


IDX_PARTS = {"train-images": 3, "train-labels": 1, "t10k-images": 3, "t10k-labels": 1}  # their dimensions


def find_idx_files(folder: Path) -> dict[str, Path]:
    """Those of MNIST's four files that exist, by the first two words of their names (`train-images`)."""
    found = {
        part: first_file(folder, [f"{part}{dot}idx{n}-ubyte{suffix}" for dot in "-." for suffix in ("", ".gz")])
        for part, n in IDX_PARTS.items()
    }
    return {part: path for part, path in found.items() if path}


def load_idx(files: dict[str, Path]) -> tuple[Arrays, Arrays]:
    """The training and the test split of MNIST's four files."""
    missing = [f"{part}-idx{n}-ubyte[.gz]" for part, n in IDX_PARTS.items() if part not in files]
    rule = "A folder of idx files must hold images and labels, train and t10k"
    require_data(not missing, rule, f"{next(iter(files.values())).parent} without {', '.join(missing)}")
    train, test = (_idx_split(files[f"{split}-images"], files[f"{split}-labels"]) for split in ("train", "t10k"))
    sizes = [pixels.shape[1:3] for pixels, _ in (train, test)]
    received = f"{sizes[0]} in {files['train-images']}, {sizes[1]} in {files['t10k-images']}"
    require_data(sizes[0] == sizes[1], "Training and test images must have one size", received)
    return train, test


def _idx_split(images: Path, labels: Path) -> Arrays:
    pixels, numbers = read_idx(images, 3), read_idx(labels, 1)
    received = f"{len(pixels)} images in {images}, {len(numbers)} labels in {labels}"
    require_data(len(pixels) == len(numbers), "Every image must have a label", received)
    return pixels[..., None], numbers.astype(np.int64)


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """The uint8 array of one idx file: a magic number, the length of every dimension (big endian), the bytes."""
    magic = bytes([0, 0, 8, dimensions])
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        if data[:4] != magic:
            raise ValueError(f"it begins with {data[:4].hex() or 'nothing'}, not with {magic.hex()}")
        shape = np.frombuffer(data, ">u4", dimensions, offset=4)
        array = np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(shape)
        if not len(array):
            raise ValueError("it has no items")
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise DataError(f"An idx file must be readable and complete. Received: {path} ({error})") from error
    return array
