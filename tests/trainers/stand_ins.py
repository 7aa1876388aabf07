"""Small files that replace the data below /data on the pages, in the same formats."""

import gzip
import random

import numpy as np
import tensorflow as tf

from trainers.tasks.translation.number_words import number_pairs


def write_stand_ins(folder):
    """Writes all files, and returns the folder."""
    for name in ("wikitext-2", "wikitext-103"):
        write_wikitext(folder / name)
    write_books(folder / "books")
    write_pairs(folder / "pairs", {"train": 300}, "{split}.{language}")
    write_pairs(folder / "multi30k", {"train": 300, "val": 20, "test_2016_flickr": 20}, "{split}.{language}.gz")
    for name in ("mnist", "emnist"):
        write_mnist(folder / name)
    for name in ("photos", "imagenette"):
        write_photographs(folder / name)
    return folder


def write_wikitext(folder, words=12_000):
    """Writes WikiText's files, with more words than the cut-offs of configs/measured/wikitext2.flags."""
    folder.mkdir()
    lines = [" ".join(f"w{n}" for n in range(first, first + 20)) for first in range(0, words, 20)]
    (folder / "wiki.train.tokens").write_text("\n".join([*lines, "<unk>"]) + "\n")
    for split in ("valid", "test"):
        (folder / f"wiki.{split}.tokens").write_text("\n".join(lines[:20]) + "\n")


def write_books(folder, lines=4000):
    folder.mkdir()
    words = [f"{first}{second}" for first in "abcdefgh" for second in ("an", "en", "in", "on")]
    generator = random.Random(0)
    text = "\n".join(" ".join(generator.choices(words, k=10)) for _ in range(lines))
    (folder / "one.txt").write_text(text + "\n")


def write_pairs(folder, sizes, name):
    """Writes two files per split, with one sentence per line; .gz files are compressed."""
    folder.mkdir()
    for seed, (split, size) in enumerate(sizes.items()):
        for language, lines in zip(
            ("en", "de"), zip(*number_pairs(size, seed, held_out=False), strict=True), strict=True
        ):
            path = folder / name.format(split=split, language=language)
            content = "".join(f"{line}\n" for line in lines).encode()
            path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_mnist(folder):
    """Writes the four idx files."""
    folder.mkdir()
    generator = np.random.default_rng(0)
    for split, count in (("train", 300), ("t10k", 20)):
        images = generator.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = (np.arange(count) % 10).astype(np.uint8)
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
            (folder / f"{split}-{kind}-ubyte").write_bytes(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes())


def write_photographs(folder):
    """Writes two classes of JPEG files below train and val."""
    generator = np.random.default_rng(0)
    for split, count in (("train", 80), ("val", 4)):
        for name in ("n01440764", "n02102040"):
            (folder / split / name).mkdir(parents=True)
            for number in range(count):
                pixels = generator.integers(0, 256, (48, 64, 3), dtype=np.uint8)
                (folder / split / name / f"{number}.JPEG").write_bytes(tf.io.encode_jpeg(pixels).numpy())
