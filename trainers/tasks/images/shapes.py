"""The shapes of image files, which are decoded once before the first run."""

import logging
import os
import stat
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import numpy as np
import tensorflow as tf

from trainers.engine.data import serving
from trainers.tasks import cache
from trainers.tasks.images.sources import CORES

NAME = "images"  # of the cache entry
LOGGED_FROM = 20_000  # files; checking this many takes a while and is logged
THREADS = 16  # that wait for the disk

State = tuple[int, int]  # size in bytes and modification time of a file
UNREADABLE: State = (-1, 0)


def image_shapes(paths: Sequence[str], known: cache.DataCache) -> np.ndarray:
    """Height, width and channels (1 or 3) of every image, int32 [n, 3]; zeros where the file cannot be decoded.

    Every file is decoded once, as in training. The results are cached, and files whose size and modification time have
    not changed are not opened again.
    """
    parts = [paths[first : first + 256] for first in range(0, len(paths), 256)]
    with ThreadPoolExecutor(THREADS) as pool:
        states = list(chain.from_iterable(pool.map(lambda part: [_state(path) for path in part], parts)))
    shapes = np.zeros((len(paths), 3), np.int32)
    before, stored = _read(known)
    new = []
    for number, (path, state) in enumerate(zip(paths, states, strict=True)):
        row = before.get((path, *state))
        if row is not None:
            shapes[number] = stored[row]
        elif state != UNREADABLE:
            new.append(number)
    began = time.monotonic()
    if len(new) >= LOGGED_FROM:
        logging.info("decoding %d images once, to check that they are not damaged", len(new))
    for index, shape in decoded_shapes([paths[number] for number in new]):
        shapes[new[index]] = shape
    if new and (before or time.monotonic() - began >= cache.WORTH_SECONDS):
        _keep(known, paths, states, shapes)
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


def _read(known: cache.DataCache) -> tuple[dict[tuple[str, int, int], int], np.ndarray]:
    """The row of each cached file, by its path and state, and the shapes of all rows."""
    stored = known.read(NAME)
    if stored is None:
        return {}, np.zeros((0, 3), np.int32)
    paths = [f"{known.root}{os.sep}{name}" for name in os.fsdecode(stored["paths"].tobytes()).split("\0")]
    states = zip(paths, stored["sizes"].tolist(), stored["times"].tolist(), strict=True)
    return {state: row for row, state in enumerate(states)}, stored["shapes"]


def _keep(known: cache.DataCache, paths: Sequence[str], states: Sequence[State], shapes: np.ndarray) -> None:
    names = "\0".join(path[len(str(known.root)) + 1 :] for path in paths)  # the folder may be moved
    sizes, times = np.array(states, np.int64).T
    text = np.frombuffer(os.fsencode(names), np.uint8)
    known.write(NAME, {"paths": text, "sizes": sizes, "times": times, "shapes": shapes})
