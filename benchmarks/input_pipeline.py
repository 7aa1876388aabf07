"""Photographs per second per core: the trainer's input and a bare `tf.data` pipeline; and how long a start takes.

Command: `python -m benchmarks.input_pipeline --data_dir=FOLDER`, with a folder of `train/<class>/*.jpg` and `val`.
Without one, JPEG files are written first. The comparison uses processor time, which other programs do not affect.
"""

import argparse
import dataclasses
import os
import pathlib
import shutil
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import numpy as np
import tensorflow as tf

from benchmarks.timing import interleaved, print_medians, ratio
from trainers.engine.data import Feed, serving
from trainers.tasks import cache
from trainers.tasks.images.config import ImageFlags
from trainers.tasks.images.data import load_images
from trainers.tasks.images.sources import CORES
from trainers.tasks.language.config import TextFlags
from trainers.tasks.language.data import load_text
from trainers.tasks.translation.config import ParallelTextFlags
from trainers.tasks.translation.data import load_translation

SIZE, BATCH, BATCHES, ROUNDS, GOAL = 224, 64, 8, 15, 0.95
STARTS = 3


def write_photographs(folder, images=500):
    """Writes files of about the size of ImageNet's: smooth waves with a little noise."""
    generator = np.random.default_rng(0)
    y, x = np.mgrid[:375, :500]
    for split, count in (("train", images), ("val", images // 10)):
        for name in ("a", "b"):
            (folder / split / name).mkdir(parents=True)
            for number in range(count // 2):
                waves = [np.sin(x / (20 + number % 9) + c) + np.cos(y / 17 * (c + 1) + number) for c in range(3)]
                pixels = 128 + 50 * np.stack(waves, axis=-1) + generator.normal(0, 8, (375, 500, 3))
                encoded = tf.io.encode_jpeg(np.clip(pixels, 0, 255).astype("uint8"), quality=90)
                (folder / split / name / f"{number}.jpg").write_bytes(encoded.numpy())


def resized(image, antialias):
    size = [SIZE, SIZE]
    if antialias is not None:
        return tf.image.resize(image, size, antialias=antialias)
    shrinks = tf.reduce_any(tf.shape(image)[:2] > size)
    return tf.cond(shrinks, lambda: tf.image.resize(image, size, antialias=True), lambda: tf.image.resize(image, size))


def bare_pipeline(paths, antialias):
    """A hand-written pipeline: decode a random window, resize, mirror, batch.

    With `antialias=None`, only images that shrink are anti-aliased; for others it would change no pixel.
    """

    def example(path):
        encoded = tf.io.read_file(path)
        begin, extent, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(encoded),
            tf.zeros([0, 0, 4]),
            aspect_ratio_range=(3 / 4, 4 / 3),
            area_range=(0.08, 1.0),
            max_attempts=10,
            use_image_if_no_bounding_boxes=True,
        )
        window = tf.concat([begin[:2], extent[:2]], axis=0)
        image = tf.image.decode_and_crop_jpeg(encoded, window, channels=3)
        return tf.cast(tf.image.random_flip_left_right(resized(image, antialias)), tf.uint8)

    files = tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths)).repeat()
    return serving(files.map(example, num_parallel_calls=CORES).batch(BATCH, drop_remainder=True), ahead=2)


def duration(dataset):
    """Returns a function that measures core milliseconds per photograph over a few batches."""
    batches = iter(dataset)
    next(batches)

    def measure():
        began = idle_time()
        for _ in range(BATCHES):
            next(batches)
        return (idle_time() - began) / (BATCHES * BATCH) * 1e3

    return measure


def idle_time():
    """The processor time once the pipeline is idle, so that as many batches are ready before and after."""
    before = -1.0
    while time.process_time() - before > 2e-3:
        before = time.process_time()
        time.sleep(0.1)
    return before


def compare_pipelines(folder):
    source = load_images(ImageFlags("folder", str(folder), SIZE)).train
    times = interleaved(
        {
            "bare, the same pixels": duration(bare_pipeline(source.paths, antialias=None)),
            "bare, always anti-aliased": duration(bare_pipeline(source.paths, antialias=True)),
            "bare, never anti-aliased": duration(bare_pipeline(source.paths, antialias=False)),
            "trainer": duration(source.training(Feed(BATCH)).map(lambda images, *_: images)),
        },
        ROUNDS,
    )
    print(f"{source.size} photographs at {SIZE} x {SIZE}, {CORES} cores: core milliseconds per photograph")
    print_medians(times)
    speed = ratio(times, "bare, the same pixels", "trainer")
    print(f"  photographs per second per core, trainer / bare: {speed:.3f}   goal >= {GOAL}", end="  ")
    print("reached" if speed >= GOAL else "MISSED")
    for name in ("bare, always anti-aliased", "bare, never anti-aliased"):
        print(f"  against {name}: {ratio(times, name, 'trainer'):.3f}")


def write_lines(path, lines, seed):
    """Writes ten words per line, some of them far more frequent than others."""
    numbers = (20_000 ** np.random.default_rng(seed).random((lines, 10))).astype(int)
    path.write_text("".join(" ".join(map(word, row)) + "\n" for row in numbers.tolist()))


def word(number):
    return "".join("bcdfghjklm"[int(digit)] + "aeiou"[int(digit) % 5] for digit in str(number))


def compare_starts(name, load):
    """Times the loading of a data set into memory, without and with the cache of an earlier start."""
    with tempfile.TemporaryDirectory() as kept:
        load(kept)  # warms up the file cache and TensorFlow

        def start(forget):
            if forget:
                shutil.rmtree(kept)
            began = time.perf_counter()
            load(kept)
            return (time.perf_counter() - began) * 1e3

        times = interleaved({"first start": lambda: start(True), "second start": lambda: start(False)}, STARTS)
    print(f"to load {name}")
    print_medians(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data_dir", help="folder of photographs")
    folder = parser.parse_args().data_dir
    with tempfile.TemporaryDirectory() as made:
        if folder is None:
            write_photographs(pathlib.Path(made))
        compare_pipelines(folder or made)
        cache.WORTH_SECONDS = 0.0
        photographs = ImageFlags("folder", folder or made, SIZE)
        compare_starts("the photographs", lambda kept: load_images(dataclasses.replace(photographs, cache_dir=kept)))
    with tempfile.TemporaryDirectory() as made:
        texts = pathlib.Path(made)
        for seed, file in enumerate(("text.txt", "source", "target")):
            write_lines(texts / file, 200_000 if seed == 0 else 50_000, seed)
        text = TextFlags("text", f"{made}/text.txt")
        pairs = ParallelTextFlags("text", source=f"{made}/source", target=f"{made}/target", vocabulary_size=4000)
        compare_starts("2,000,000 words", lambda kept: load_text(dataclasses.replace(text, cache_dir=kept)))
        compare_starts("50,000 pairs", lambda kept: load_translation(dataclasses.replace(pairs, cache_dir=kept)))


if __name__ == "__main__":
    main()
