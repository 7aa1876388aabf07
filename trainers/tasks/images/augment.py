"""Augmentation and cropping of images, as functions of the image and a seed.

Images stay uint8. Small colour images are shifted and mirrored in training. Photographs get the usual preprocessing of
ImageNet, as in the paper: a random crop for training, the centre for validation.
"""

import functools
import math
from collections.abc import Iterable

import tensorflow as tf

AREA = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
ATTEMPTS = 10


def pad_crop_flip(images: tf.Tensor, seeds: tf.Tensor, pad: int = 4) -> tf.Tensor:
    """Shifts each image by up to `pad` pixels, filled with black, and mirrors it half of the time.

    `images` is [n, height, width, channels], `seeds` is [n, 2].
    """
    height, width = images.shape[1], images.shape[2]
    padded = tf.pad(images, [[0, 0], [pad, pad], [pad, pad], [0, 0]])
    moves = 2 * pad + 1
    rows = _below(seeds, 0, moves)[:, None] + tf.range(height)
    columns = _below(seeds, 1, moves)[:, None] + tf.range(width)
    # The columns of a mirrored image are read from right to left.
    columns = tf.where(_below(seeds, 2, 2)[:, None] == 1, columns[:, ::-1], columns)
    padded = tf.gather(padded, rows, axis=1, batch_dims=1)
    return tf.ensure_shape(tf.gather(padded, columns, axis=2, batch_dims=1), images.shape)


def image_size(encoded: tf.Tensor) -> tf.Tensor:
    """Height and width of a JPEG or PNG, int32 [2], from its header."""

    def of_png() -> tf.Tensor:
        return tf.io.decode_raw(tf.strings.substr(encoded, 16, 8), tf.int32, little_endian=False)[::-1]

    size = tf.cond(tf.io.is_jpeg(encoded), lambda: tf.io.extract_jpeg_shape(encoded)[:2], of_png)
    return tf.ensure_shape(size, [2])


def draw_parts(sizes: tf.Tensor, seeds: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Draws random crops for training: windows [n, 4], and whether each is mirrored [n], half of the time.

    `sizes` and `seeds` are [n, 2]. Works on many images at once: running these many small operations for each image
    would take a quarter of the time that decoding takes.
    """
    uniform = _uniform(seeds, 2 * ATTEMPTS + 3)
    return crop_windows(sizes, uniform[:, :-1]), uniform[:, -1] < 0.5


def training_photograph(encoded: tf.Tensor, window: tf.Tensor, mirrored: tf.Tensor, size: int) -> tf.Tensor:
    """A part of a JPEG or PNG, mirrored or not, resized to [size, size, 3]; uint8."""

    def part_of_other() -> tf.Tensor:
        image = tf.image.decode_image(encoded, channels=3, expand_animations=False)
        y, x, height, width = tf.unstack(window)
        return image[y : y + height, x : x + width]

    # For a JPEG, only the blocks inside the window are decoded.
    part_of_jpeg = functools.partial(tf.image.decode_and_crop_jpeg, encoded, window, channels=3)
    image = tf.cond(tf.io.is_jpeg(encoded), part_of_jpeg, part_of_other)
    # Not `image[:, ::-1]`, which takes longer than decoding the photograph; this takes next to nothing.
    image = tf.raw_ops.Reverse(tensor=image, dims=tf.stack([False, mirrored, False]))
    return tf.ensure_shape(_resize(image, tf.constant([size, size])), [size, size, 3])


def validation_photograph(encoded: tf.Tensor, size: int) -> tf.Tensor:
    """The central [size, size, 3] of a JPEG or PNG, after its short side is resized to 256 / 224 of `size`."""
    image = tf.image.decode_image(encoded, channels=3, expand_animations=False)
    shape = tf.shape(image)[:2]
    target = round(size * 256 / 224)
    resized = target * shape // tf.reduce_min(shape)
    image = _resize(image, resized)
    y, x = tf.unstack((resized - size) // 2)
    return tf.ensure_shape(image[y : y + size, x : x + size], [size, size, 3])


def crop_windows(sizes: tf.Tensor, uniform: tf.Tensor) -> tf.Tensor:
    """The windows [y, x, height, width] of torchvision's `RandomResizedCrop` for images of `sizes` [n, 2].

    Ten times, an area (0.08 to 1 of the image) and a ratio width / height (3/4 to 4/3, uniform in its logarithm) are
    drawn; the first pair that fits is taken, else the largest part in the middle that keeps the ratio within bounds.
    `uniform` holds 2 * 10 + 2 random numbers in [0, 1) for each image.
    """
    space = tf.cast(sizes, tf.float32)
    height, width = space[:, :1], space[:, 1:]
    area = height * width * (AREA[0] + (AREA[1] - AREA[0]) * uniform[:, :ATTEMPTS])
    low, high = math.log(RATIO[0]), math.log(RATIO[1])
    ratio = tf.exp(low + (high - low) * uniform[:, ATTEMPTS : 2 * ATTEMPTS])
    drawn = tf.round(tf.stack([tf.sqrt(area / ratio), tf.sqrt(area * ratio)], axis=2))
    fits = tf.reduce_all((drawn >= 1) & (drawn <= space[:, None]), axis=2)
    whole = [tf.minimum(height, tf.round(width / RATIO[0])), tf.minimum(width, tf.round(height * RATIO[1]))]
    # The last candidate always fits.
    candidates = tf.concat([drawn, tf.stack(whole, axis=2)], axis=1)
    chosen = tf.argmax(tf.pad(fits, [[0, 0], [0, 1]], constant_values=True), axis=1)
    window = tf.gather(candidates, chosen, batch_dims=1)
    # In float32 a number just below 1 times n can round up to n.
    corner = tf.minimum(tf.floor(uniform[:, 2 * ATTEMPTS :] * (space - window + 1)), space - window)
    corner = tf.where(chosen[:, None] < ATTEMPTS, corner, (space - window) // 2)
    return tf.cast(tf.concat([corner, window], axis=1), tf.int32)


def _resize(image: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    """Resizes an image and rounds it to uint8, like the input in the paper's runs."""
    # Anti-aliasing costs half of the throughput, and does nothing to an image that grows.
    shrinks = tf.reduce_any(tf.shape(image)[:2] > shape)
    resized = tf.cond(
        shrinks, lambda: tf.image.resize(image, shape, antialias=True), lambda: tf.image.resize(image, shape)
    )
    # Weighted means of pixels lie between 0 and 255, up to rounding errors.
    return tf.cast(resized + 0.5, tf.uint8)


def _below(seeds: tf.Tensor, draw: int, limit: int) -> tf.Tensor:
    """One integer in [0, limit) for every seed."""
    scaled = _draws(seeds, [draw])[:, 0] * limit
    return tf.cast(tf.bitwise.right_shift(scaled, tf.constant(24, tf.int64)), tf.int32)


def _uniform(seeds: tf.Tensor, count: int) -> tf.Tensor:
    """Numbers in [0, 1) for every seed, float32 [n, count]."""
    return tf.cast(_draws(seeds, range(count)), tf.float32) / 2**24


def _draws(seeds: tf.Tensor, numbers: Iterable[int]) -> tf.Tensor:
    """24 random bits for each seed and draw number, int64 [n, draws]: splitmix64 of the two seed values and the number.

    `tf.random.stateless_uniform` takes one seed per call; a loop over the seeds of a batch takes six times as long.
    """
    pair = tf.bitcast(tf.cast(seeds, tf.int64), tf.uint64)
    state = _mix(_mix(pair[:, 0]) ^ pair[:, 1])
    offsets = tf.constant([number * 0x9E3779B97F4A7C15 % 2**64 for number in numbers], tf.uint64)
    bits = _mix(state[:, None] + offsets)
    return tf.cast(tf.bitwise.right_shift(bits, tf.constant(40, tf.uint64)), tf.int64)


def _mix(bits: tf.Tensor) -> tf.Tensor:
    bits += tf.constant(0x9E3779B97F4A7C15, tf.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        shifted = tf.bitwise.right_shift(bits, tf.constant(shift, tf.uint64))
        bits = tf.bitwise.bitwise_xor(bits, shifted) * tf.constant(factor, tf.uint64)
    return tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, tf.constant(31, tf.uint64)))
