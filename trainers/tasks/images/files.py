"""Image files: which split and class each file of a folder belongs to, and MNIST's idx files."""

import gzip
import os
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trainers.system.errors import DataError
from trainers.system.files import shown
from trainers.tasks.images.preparation import CHOSEN_ON_TEST, ImageSplits
from trainers.tasks.images.sources import Arrays

VALIDATION_FOLDERS = ("val", "validation")
SUFFIXES = (".jpg", ".jpeg", ".png")
INNER = "images"  # a folder between the class folder and its images, as in Tiny-ImageNet

ByClass = list[list[str]]  # the paths of each class


def read_folder(data_dir: str | None) -> Path:
    """Returns `data_dir` as a path; raises `DataError` unless it is a folder that can be read."""
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


def find_images(folder: Path) -> tuple[ImageSplits[ByClass], list[str]]:
    """The image files below `<folder>/<split>/<class>/`, and the names of the classes."""
    found = [name for name in VALIDATION_FOLDERS if (folder / name).is_dir()]
    has_test = (folder / "test").is_dir()
    if not (found or has_test) or not (folder / "train").is_dir():
        raise DataError(
            "`data_dir` must hold MNIST's idx files, or `train/<class>/*.jpg|jpeg|png` and the same below one of "
            f"{', '.join(VALIDATION_FOLDERS)}, test. "
            f"Received: {folder} with {[shown(path.name) for path in sorted(folder.iterdir())][:10]}"
        )
    classes = _class_names(folder / "train")
    if len(classes) < 2:
        raise DataError(f"Images must be of at least 2 classes. Received: {classes} in {folder / 'train'}")
    train = [_image_files(folder / "train" / name) for name in classes]
    if not found:
        return ImageSplits(train, _split(folder / "test", classes), None, (CHOSEN_ON_TEST,)), classes
    validation = _split(folder / found[0], classes)
    if not has_test:
        return ImageSplits(train, validation), classes
    if _class_names(folder / "test") != classes:  # Tiny-ImageNet's test images have no labels
        return ImageSplits(
            train, validation, None, ("the test folder is not used: its classes are not those of train",)
        ), (classes)
    return ImageSplits(train, validation, _split(folder / "test", classes)), classes


def _split(split: Path, classes: list[str]) -> ByClass:
    annotations = split / f"{split.name}_annotations.txt"
    if annotations.is_file():
        return _annotated(split, annotations, classes)
    others = _class_names(split)
    if classes != others:
        raise DataError(
            f"Both splits must have the same class folders. Received: {split.parent}, where only one of train and "
            f"{split.name} has {[shown(name) for name in sorted(set(classes) ^ set(others))[:10]]}"
        )
    return [_image_files(split / name) for name in classes]


def _annotated(split: Path, annotations: Path, classes: list[str]) -> ByClass:
    """The images of a folder whose classes are listed in a text file, as in Tiny-ImageNet's validation split."""
    numbers = {name: number for number, name in enumerate(classes)}
    found: ByClass = [[] for _ in classes]
    for place, line in enumerate(annotations.read_text(errors="replace").splitlines(), 1):
        name, _, rest = line.partition("\t")
        label = numbers.get(rest.split("\t")[0])
        if label is None:
            raise DataError(
                "A line of annotations must be a file's name, a tab and a class folder of train. "
                f"Received: {line[:80]!r}, line {place} of {annotations}"
            )
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
        if not paths:
            raise DataError(
                f"A class folder must hold at least one {', '.join(SUFFIXES)} file. Received: {shown(folder)}"
            )


def find_idx_files(folder: Path) -> dict[str, Path]:
    """Those of MNIST's four files that exist, by the first two words of their names (`train-images`)."""
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
    # A file that ends within its header has an incomplete shape; the padding then makes `expected` too large.
    shape = np.frombuffer(data[4:header].ljust(header - 4, b"\xff"), ">u4").astype(np.int64)
    expected = header + int(np.prod(shape, dtype=object))
    if len(data) != expected or shape[0] == 0:
        raise DataError(
            f"An idx file must hold at least one item and as many bytes as its header says, {expected}. "
            f"Received: {len(data)} bytes, {shape[0]} items in {path}"
        )
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)
