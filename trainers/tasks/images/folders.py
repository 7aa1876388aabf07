"""Image files in a user's folder: which split and class each file belongs to."""

import os
from collections.abc import Sequence
from pathlib import Path

from trainers.engine.errors import DataError
from trainers.tasks.images.kinds import CHOSEN_ON_TEST, Splits
from trainers.tasks.paths import shown

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


def find_images(folder: Path) -> tuple[Splits[ByClass], list[str]]:
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
        return Splits(train, _split(folder / "test", classes), None, (CHOSEN_ON_TEST,)), classes
    validation = _split(folder / found[0], classes)
    if not has_test:
        return Splits(train, validation), classes
    if _class_names(folder / "test") != classes:  # Tiny-ImageNet's test images have no labels
        return Splits(train, validation, None, ("the test folder is not used: its classes are not those of train",)), (
            classes
        )
    return Splits(train, validation, _split(folder / "test", classes)), classes


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
