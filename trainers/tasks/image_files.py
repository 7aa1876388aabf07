"""Images in a folder of one's own: MNIST's idx files, or one JPEG or PNG an image and one folder a class."""

import gzip
import os
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from trainers.engine.data import ArraySource, IndexedSource
from trainers.engine.errors import DataError
from trainers.tasks.augment import pad_crop_flip, to_unit, training_photograph, validation_photograph

BAD_IMAGES = ("fail", "skip")
VALIDATION_FOLDERS = ("val", "validation", "test")
SUFFIXES = (".jpg", ".jpeg", ".png")
PHOTOGRAPH_SIZE = 224  # where no size is asked for
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

Arrays = tuple[np.ndarray, np.ndarray]  # images [n, height, width, channels] uint8, labels [n] int64


class SmallImages(ArraySource):
    """Images of one size, kept in memory as uint8; pictures of 32x32 in colour are moved and mirrored in training."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        super().__init__(images, labels, augment=pad_crop_flip if images.shape[1:] == (32, 32, 3) else None)

    def load(self, parts: tf.data.Dataset, training: bool) -> tf.data.Dataset:
        return super().load(parts, training).map(lambda images, labels, weights: (to_unit(images), labels, weights))


class Photographs(IndexedSource):
    """Image files of any size, read and decoded when their turn comes."""

    ahead = 2

    def __init__(self, paths: list[str], labels: list[int], image_size: int) -> None:
        self.paths, self.labels, self.image_size = paths, labels, image_size
        self.size = len(paths)

    def contents(self) -> Iterable[Any]:
        """Names and classes: to read every photograph would take as long as an epoch."""
        return "\n".join("/".join(Path(path).parts[-2:]) for path in self.paths), np.asarray(self.labels)

    def load(self, parts: tf.data.Dataset, training: bool) -> tf.data.Dataset:
        paths, labels = tf.constant(self.paths), tf.constant(self.labels, tf.int64)

        def example(index: tf.Tensor, seed: tf.Tensor, weight: tf.Tensor) -> Any:
            encoded = tf.io.read_file(paths[index])
            return photograph(encoded, seed, self.image_size, training), labels[index], weight

        return map_examples(parts, example)


def photograph(encoded: tf.Tensor, seed: tf.Tensor, size: int, training: bool) -> tf.Tensor:
    return training_photograph(encoded, seed, size) if training else validation_photograph(encoded, size)


def map_examples(parts: tf.data.Dataset, function: Callable[..., Any]) -> tf.data.Dataset:
    """`function` on every example of every micro-batch, all cores at work; they keep their order and size."""
    size = parts.element_spec[0].shape[0]
    # Example by example, not batch by batch: no core waits for the end of one, and few images are held at a time.
    examples = parts.unbatch().map(function, num_parallel_calls=CORES, deterministic=True)
    return examples.batch(size, drop_remainder=True)


def read_folder(data_dir: str | None) -> Path:
    """`data_dir` as a path, if it is a folder that can be read."""
    if not data_dir:
        raise DataError(f"dataset='folder' needs `data_dir`, the folder of the images. Received: data_dir={data_dir!r}")
    folder = Path(data_dir).expanduser()
    try:
        next(folder.iterdir(), None)
    except OSError as error:
        raise DataError(
            f"`data_dir` must be a folder that can be read. Received: {folder} ({error.strerror})"
        ) from error
    return folder


def find_idx_files(folder: Path) -> dict[str, Path]:
    """MNIST's four files by their first two words (`train-images`), as far as they are there."""
    found = {}
    for part in ("train-images", "train-labels", "t10k-images", "t10k-labels"):
        kind = "idx3-ubyte" if part.endswith("images") else "idx1-ubyte"
        names = [f"{part}{dot}{kind}{suffix}" for dot in "-." for suffix in ("", ".gz")]
        present = [folder / name for name in names if (folder / name).is_file()]
        if present:
            found[part] = present[0]
    return found


def load_idx(files: dict[str, Path]) -> tuple[Arrays, Arrays]:
    """The training and the test split of MNIST's four files."""
    missing = {"train-images", "train-labels", "t10k-images", "t10k-labels"} - set(files)
    if missing:
        folder = next(iter(files.values())).parent
        raise DataError(
            f"A folder of idx files must hold images and labels, train and t10k. Received: {folder} without "
            + ", ".join(f"{name}-idx{3 if name.endswith('images') else 1}-ubyte[.gz]" for name in sorted(missing))
        )
    train, test = (_idx_split(files[f"{split}-images"], files[f"{split}-labels"]) for split in ("train", "t10k"))
    if train[0].shape[1:] != test[0].shape[1:]:
        raise DataError(
            f"Training and test images must have one size. Received: {train[0].shape[1:3]} in {files['train-images']}, "
            f"{test[0].shape[1:3]} in {files['t10k-images']}"
        )
    return train, test


def _idx_split(images: Path, labels: Path) -> Arrays:
    pixels, numbers = read_idx(images, 3), read_idx(labels, 1)
    if len(pixels) != len(numbers):
        raise DataError(
            f"Every image must have a label. Received: {len(pixels)} images in {images}, "
            f"{len(numbers)} labels in {labels}"
        )
    return pixels[..., None], numbers.astype(np.int64)


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """The uint8 array of one idx file: a magic number, the length of every dimension (big endian), the bytes."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"An idx file must be readable and complete. Received: {path} ({error})") from error
    magic = bytes([0, 0, 8, dimensions])
    if data[:4] != magic:
        raise DataError(
            f"This idx file must begin with {magic.hex()}. Received: {data[:4].hex() or 'nothing'} in {path}"
        )
    header = 4 + 4 * dimensions
    # A file cut off within its header has no whole shape; it is then shorter than the header asks for.
    shape = np.frombuffer(data[4:header].ljust(header - 4, b"\xff"), ">u4").astype(np.int64)
    expected = header + int(np.prod(shape, dtype=object))
    if len(data) != expected or shape[0] == 0:
        raise DataError(
            f"An idx file must hold at least one item and as many bytes as its header says, {expected}. "
            f"Received: {len(data)} bytes, {shape[0]} items in {path}"
        )
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)


def load_photographs(folder: Path, size: int, bad_images: str) -> tuple[Photographs, Photographs, int, tuple[str, ...]]:
    """Training and validation images below `<folder>/<split>/<class>/`, the number of classes, the files left out."""
    validation = next((name for name in VALIDATION_FOLDERS if (folder / name).is_dir()), None)
    if validation is None or not (folder / "train").is_dir():
        raise DataError(
            "`data_dir` must hold MNIST's idx files, or `train/<class>/*.jpg|jpeg|png` and the same below one of "
            f"{', '.join(VALIDATION_FOLDERS)}. Received: {folder} with {sorted(p.name for p in folder.iterdir())[:10]}"
        )
    classes = _class_names(folder / "train")
    if len(classes) < 2:
        raise DataError(f"Images must be of at least 2 classes. Received: {classes} in {folder / 'train'}")
    others = _class_names(folder / validation)
    if classes != others:
        raise DataError(
            f"Both splits must have the same class folders. Received: {folder}, where only one of train and "
            f"{validation} has {sorted(set(classes) ^ set(others))[:10]}"
        )
    files = {split: [_image_files(folder / split / name) for name in classes] for split in ("train", validation)}
    bad = _bad_files([path for split in files.values() for paths in split for path in paths])
    if bad and bad_images == "fail":
        raise DataError(
            "Every image must be a complete JPEG or PNG file; `bad_images='skip'` leaves the others out. "
            f"Received: {bad[0]} and {len(bad) - 1} more"
        )
    train, held_out = (_photographs(files[split], set(bad), size) for split in ("train", validation))
    return train, held_out, len(classes), tuple(bad)


def _class_names(split: Path) -> list[str]:
    return sorted(entry.name for entry in split.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def _image_files(folder: Path) -> list[str]:
    # macOS leaves `._name.jpg` beside `name.jpg`: it is no image.
    names = (entry.name for entry in folder.iterdir())
    files = [str(folder / name) for name in sorted(names) if name.lower().endswith(SUFFIXES) and name[0] != "."]
    if not files:
        raise DataError(f"A class folder must hold at least one {', '.join(SUFFIXES)} file. Received: {folder}")
    return files


def _photographs(classes: list[list[str]], bad: set[str], size: int) -> Photographs:
    examples = [(path, label) for label, paths in enumerate(classes) for path in paths if path not in bad]
    left = {label for _, label in examples}
    for label, paths in enumerate(classes):
        if label not in left:
            raise DataError(f"A class must have at least one complete image. Received: {Path(paths[0]).parent}")
    return Photographs([path for path, _ in examples], [label for _, label in examples], size)


def _bad_files(paths: list[str]) -> list[str]:
    # Threads, because the time goes into waiting for the disk.
    with ThreadPoolExecutor(16) as pool:
        return [path for path, good in zip(paths, pool.map(is_complete, paths, chunksize=256), strict=True) if not good]


def is_complete(path: str) -> bool:
    """Whether a file begins and ends as a JPEG or PNG does; zeros may follow the end. What lies between is not read."""
    try:
        with open(path, "rb") as file:
            begin = file.read(8)
            end = _last_bytes(file)
    except OSError:
        return False
    if begin.startswith(b"\xff\xd8\xff"):
        return end.endswith(b"\xff\xd9")
    # The end of a PNG is an empty IEND chunk and its checksum, the same four bytes in every file.
    return begin == b"\x89PNG\r\n\x1a\n" and end.endswith(b"IEND\xae\x42\x60\x82")


def _last_bytes(file: Any, block: int = 4096) -> bytes:
    end = file.seek(0, os.SEEK_END)
    tail = b""
    while end > 0 and len(tail) < 8:
        begin = max(0, end - block)
        file.seek(begin)
        tail = (file.read(end - begin) + tail).rstrip(b"\0")
        end = begin
    return tail
