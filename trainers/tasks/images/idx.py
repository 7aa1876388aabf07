"""MNIST's idx files."""

import gzip
import zlib
from pathlib import Path

import numpy as np

from trainers.engine.errors import DataError
from trainers.tasks.images.sources import Arrays


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
