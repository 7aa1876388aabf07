"""What happens to an image between the disk and the model, as functions of the image and a seed.

Small images (28x28, 32x32) become float32 in [0, 1]. Photographs get ImageNet's usual input, that of the paper: a
random part of the picture to train on, the centre to validate on, both normalised by ImageNet's mean and deviation.
"""

import math

import numpy as np
import tensorflow as tf

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
AREA = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
ATTEMPTS = 10


def to_unit(images: tf.Tensor) -> tf.Tensor:
    """uint8 images as float32 in [0, 1]."""
    return tf.cast(images, tf.float32) / 255.0


def normalize(images: tf.Tensor) -> tf.Tensor:
    """(x / 255 - mean) / std with ImageNet's mean and deviation of each channel; the result is not in [0, 1]."""
    width = images.shape[-2]
    mean, std = np.tile(IMAGENET_MEAN, width), np.tile(IMAGENET_STD, width)
    # Whole rows at a time: arithmetic with three numbers that repeat costs more than decoding the photograph.
    rows = tf.reshape(tf.cast(images, tf.float32), [-1, 3 * width])
    return tf.reshape(rows * np.float32(1 / (255 * std)) - np.float32(mean / std), tf.shape(images))


def pad_crop_flip(images: tf.Tensor, seeds: tf.Tensor, pad: int = 4) -> tf.Tensor:
    """Each image moved by up to `pad` pixels, black coming in, and mirrored half of the time.

    `images` are [n, height, width, channels], `seeds` [n, 2].
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


def training_photograph(encoded: tf.Tensor, seed: tf.Tensor, size: int) -> tf.Tensor:
    """A random part of a JPEG or PNG, resized to [size, size, 3], mirrored half of the time, normalised."""
    uniform = tf.random.stateless_uniform([2 * ATTEMPTS + 3], seed)
    jpeg = tf.io.is_jpeg(encoded)

    def part_of_jpeg() -> tf.Tensor:
        # Only the blocks of the part are decoded.
        window = crop_window(tf.image.extract_jpeg_shape(encoded)[:2], uniform[:-1])
        return tf.image.decode_and_crop_jpeg(encoded, window, channels=3)

    def part_of_other() -> tf.Tensor:
        image = tf.image.decode_image(encoded, channels=3, expand_animations=False)
        y, x, height, width = tf.unstack(crop_window(tf.shape(image)[:2], uniform[:-1]))
        return image[y : y + height, x : x + width]

    image = tf.cond(jpeg, part_of_jpeg, part_of_other)
    # Not `image[:, ::-1]`, which takes longer than decoding the photograph; `tf.reverse` takes next to nothing.
    image = tf.cond(uniform[-1] < 0.5, lambda: tf.reverse(image, [1]), lambda: image)
    image = tf.ensure_shape(_resize(image, tf.constant([size, size])), [size, size, 3])
    return tf.ensure_shape(normalize(image), [size, size, 3])


def validation_photograph(encoded: tf.Tensor, size: int) -> tf.Tensor:
    """The short side of a JPEG or PNG resized to 256 / 224 of `size`, then the [size, size, 3] in its centre."""
    image = tf.image.decode_image(encoded, channels=3, expand_animations=False)
    shape = tf.shape(image)[:2]
    target = round(size * 256 / 224)
    resized = target * shape // tf.reduce_min(shape)
    image = _resize(image, resized)
    y, x = tf.unstack((resized - size) // 2)
    image = tf.ensure_shape(image[y : y + size, x : x + size], [size, size, 3])
    return tf.ensure_shape(normalize(image), [size, size, 3])


def crop_window(shape: tf.Tensor, uniform: tf.Tensor) -> tf.Tensor:
    """The window [y, x, height, width] of torchvision's `RandomResizedCrop` for an image of `shape` [2].

    Ten times, an area (0.08 to 1 of the image) and a ratio width / height (3/4 to 4/3, uniform in its logarithm) are
    drawn; the first pair that fits is taken, else the largest part in the middle that keeps the ratio within bounds.
    `uniform` holds the 2 * 10 + 2 numbers in [0, 1) that decide.
    """
    height, width = tf.unstack(tf.cast(shape, tf.float32))
    area = height * width * (AREA[0] + (AREA[1] - AREA[0]) * uniform[:ATTEMPTS])
    low, high = math.log(RATIO[0]), math.log(RATIO[1])
    ratio = tf.exp(low + (high - low) * uniform[ATTEMPTS : 2 * ATTEMPTS])
    sizes = tf.round(tf.stack([tf.sqrt(area / ratio), tf.sqrt(area * ratio)], axis=1))
    fits = tf.reduce_all((sizes >= 1) & (sizes <= [height, width]), axis=1)
    whole = tf.stack([tf.minimum(height, tf.round(width / RATIO[0])), tf.minimum(width, tf.round(height * RATIO[1]))])
    space = tf.stack([height, width])
    drawn = sizes[tf.argmax(fits)]
    # In float32 a number just below 1 times n can round up to n.
    corner = tf.minimum(tf.floor(uniform[2 * ATTEMPTS :] * (space - drawn + 1)), space - drawn)
    some = tf.reduce_any(fits)
    corner = tf.where(some, corner, (space - whole) // 2)
    return tf.cast(tf.concat([corner, tf.where(some, drawn, whole)], axis=0), tf.int32)


def _resize(image: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    # Anti-aliasing costs half of the throughput, and does nothing to an image that grows.
    shrinks = tf.reduce_any(tf.shape(image)[:2] > shape)
    return tf.cond(
        shrinks, lambda: tf.image.resize(image, shape, antialias=True), lambda: tf.image.resize(image, shape)
    )


def _below(seeds: tf.Tensor, draw: int, limit: int) -> tf.Tensor:
    """One integer in [0, limit) for every seed: splitmix64 of the seed's two numbers and the number of the draw.

    `tf.random.stateless_uniform` takes one seed a call; a loop of it over the seeds of a batch takes six times as long.
    """
    pair = tf.bitcast(tf.cast(seeds, tf.int64), tf.uint64)
    state = _mix(_mix(pair[:, 0]) ^ pair[:, 1])
    bits = _mix(state + tf.constant(draw * 0x9E3779B97F4A7C15 % 2**64, tf.uint64))
    top = tf.cast(tf.bitwise.right_shift(bits, tf.constant(40, tf.uint64)), tf.int64)  # 24 bits
    return tf.cast(tf.bitwise.right_shift(top * limit, tf.constant(24, tf.int64)), tf.int32)


def _mix(bits: tf.Tensor) -> tf.Tensor:
    bits += tf.constant(0x9E3779B97F4A7C15, tf.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        shifted = tf.bitwise.right_shift(bits, tf.constant(shift, tf.uint64))
        bits = tf.bitwise.bitwise_xor(bits, shifted) * tf.constant(factor, tf.uint64)
    return tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, tf.constant(31, tf.uint64)))
