"""Every image set is a pure function of the step, tiles over replicas, and says what is wrong with its files."""

import gzip
import math
import os
import shutil
import socket
import struct

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from tests.trainers.batches import assert_same, take
from trainers.engine.data import Feed, fingerprint
from trainers.system.errors import DataError
from trainers.tasks import cache
from trainers.tasks.images import augment
from trainers.tasks.images import data as image_data
from trainers.tasks.images import files as image_files
from trainers.tasks.images.config import ImageFlags
from trainers.tasks.images.data import load_images
from trainers.tasks.images.models import IMAGENET, UNIT, Scaling
from trainers.tasks.images.sources import Photographs, SmallImages, StreamSource

KINDS = ("idx", "folder", "in_memory", "stream")
AUGMENTED = ("folder", "in_memory", "stream")
TRAIN, VALIDATION, SIZE = 22, 11, 16  # every image of a split has a label of its own


def load(dataset, data_dir=None, image_size=None, download=False, bad_images="fail", **options):
    return load_images(ImageFlags(dataset, data_dir, image_size, download, bad_images, **options))


def picture(number: int, height: int, width: int) -> np.ndarray:
    """Smooth colours, different for every number, so that every crop is different too."""
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / 5 + number) + np.cos(y / 4 * (c + 1) + number) for c in range(3)]
    return (np.stack(waves, axis=-1) * 60 + 128).astype(np.uint8)


class SmallColours(tfds.core.GeneratorBasedBuilder):
    """Images of one size."""

    VERSION = tfds.core.Version("1.0.0")
    SHAPE = (32, 32, 3)
    ENCODING = "png"

    def _info(self):
        features = {
            "image": tfds.features.Image(shape=self.SHAPE, encoding_format=self.ENCODING),
            "label": tfds.features.ClassLabel(num_classes=TRAIN),
        }
        return self.dataset_info_from_configs(
            features=tfds.features.FeaturesDict(features), supervised_keys=("image", "label")
        )

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples(TRAIN), "test": self._generate_examples(VALIDATION)}

    def _generate_examples(self, count):
        for number in range(count):
            height, width = (side or 20 + number for side in self.SHAPE[:2])
            yield number, {"image": picture(number, height, width), "label": number}


class LargePhotographs(SmallColours):
    """Images of any size."""

    VERSION = tfds.core.Version("1.0.0")
    SHAPE = (None, None, 3)
    ENCODING = "jpeg"


class ThreeParts(SmallColours):
    """A set with a part for validation and one for a test."""

    VERSION = tfds.core.Version("1.0.0")

    def _split_generators(self, dl_manager):
        counts = {"train": TRAIN, "validation": VALIDATION, "test": 3}
        return {name: self._generate_examples(count) for name, count in counts.items()}


class Sentences(tfds.core.GeneratorBasedBuilder):
    """No images."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        return self.dataset_info_from_configs(features=tfds.features.FeaturesDict({"text": tfds.features.Text()}))

    def _split_generators(self, dl_manager):
        return {"train": []}

    def _generate_examples(self):
        yield from ()


def write_idx(path, array, magic=None):
    header = magic or bytes([0, 0, 8, array.ndim])
    data = header + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def write_idx_folder(folder, dot="-", suffix=""):
    folder.mkdir(exist_ok=True)
    for split, count in (("train", TRAIN), ("t10k", VALIDATION)):
        images = np.stack([picture(number, 12, 10)[..., 0] for number in range(count)])
        write_idx(folder / f"{split}-images{dot}idx3-ubyte{suffix}", images)
        write_idx(folder / f"{split}-labels{dot}idx1-ubyte{suffix}", np.arange(count, dtype=np.uint8))


def write_photographs(folder, classes=TRAIN, validation="val"):
    for split in ("train", validation):
        for number in range(classes):
            name = folder / split / f"class_{number:02}"
            name.mkdir(parents=True)
            image = picture(number, 18 + 3 * number, 60 - 2 * number)
            # Once a PNG that says it is a JPEG, as there is one in ImageNet, and once a grey JPEG.
            encoded = (
                tf.io.encode_png(image) if number == 2 else tf.io.encode_jpeg(image[..., : 1 if number == 3 else 3])
            )
            (name / "image.JPEG").write_bytes(encoded.numpy())
    return folder


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with one set of every kind."""
    root = tmp_path_factory.mktemp("images")
    write_idx_folder(root / "idx")
    write_photographs(root / "folder")
    shards = tfds.download.DownloadConfig(num_shards=4)
    for builder in (SmallColours, LargePhotographs):
        builder(data_dir=root).download_and_prepare(download_config=shards)
    return root


@pytest.fixture(scope="module")
def sets(root):
    return {
        "idx": load("folder", str(root / "idx")),
        "folder": load("folder", str(root / "folder"), SIZE),
        "in_memory": load("small_colours", str(root)),
        "stream": load("large_photographs", str(root), SIZE),
    }


@pytest.fixture(params=KINDS)
def images(request, sets):
    return sets[request.param]


def test_each_kind_has_its_source(sets):
    kinds = {name: (type(data.train), type(data.validation)) for name, data in sets.items()}
    expected = {"idx": SmallImages, "folder": Photographs, "in_memory": SmallImages, "stream": StreamSource}
    assert kinds == {name: (kind, kind) for name, kind in expected.items()}


def test_images_are_uint8_of_the_stated_shape_and_labels_int64(images):
    for dataset in (images.train.training(Feed(4)), images.validation.evaluation(Feed(4))):
        inputs, targets, weights = take(dataset, 1)[0]
        assert inputs.shape == (4, *images.image_shape)
        assert (inputs.dtype, targets.dtype, weights.dtype) == (np.uint8, np.int64, np.float32)
        assert dataset.element_spec[0].shape == (4, *images.image_shape)
    assert images.classes == TRAIN
    assert images.train.size == TRAIN


@pytest.mark.parametrize("kind", ["idx", "in_memory"])
def test_images_of_one_size_are_the_pixels_as_they_are(sets, kind):
    assert sets[kind].scaling == UNIT
    for inputs, targets, _ in take(sets[kind].validation.evaluation(Feed(1)), 3):
        height, width, channels = sets[kind].image_shape
        np.testing.assert_array_equal(inputs[0], picture(targets[0], height, width)[..., :channels])


def test_a_run_that_starts_at_a_step_sees_what_the_whole_run_sees(images):
    whole = take(images.train.training(Feed(6, seed=5)), 6)
    for start in (1, 3, 5):  # 3 is the first step of the second epoch
        rest = take(images.train.training(Feed(6, seed=5, start_step=start)), 6 - start)
        assert_same(rest, whole[start:])


def test_workers_and_replicas_tile_the_global_batch(images):
    for source, method in ((images.train, "training"), (images.validation, "evaluation")):
        whole = take(getattr(source, method)(Feed(8)), 2)
        parts = [take(getattr(source, method)(Feed(8, workers=2, worker=worker, replicas=2)), 4) for worker in range(2)]
        slices = [parts[worker][2 * step + replica] for step in range(2) for worker in range(2) for replica in range(2)]
        tiled = [tuple(np.concatenate(part) for part in zip(*slices[i : i + 4], strict=True)) for i in (0, 4)]
        assert_same(tiled, whole)


@pytest.mark.parametrize("batch_size", [4, 11, 32])  # 32: more than there are
def test_evaluation_sees_every_example_once(images, batch_size):
    batches = take(images.validation.evaluation(Feed(batch_size)), -1)
    targets, weights = (np.concatenate([batch[part] for batch in batches]) for part in (1, 2))
    size = images.validation.size
    assert len(batches) == math.ceil(size / batch_size)
    assert all(len(batch[0]) == batch_size for batch in batches)
    np.testing.assert_array_equal(weights, [1] * size + [0] * (len(weights) - size))
    assert sorted(targets[weights == 1]) == list(range(size))


def test_evaluation_is_the_same_every_time(images):
    assert_same(
        take(images.validation.evaluation(Feed(4)), -1), take(images.validation.evaluation(Feed(4, seed=9)), -1)
    )


def test_every_epoch_and_every_seed_has_its_own_order_without_repetition(images):
    batches = take(images.train.training(Feed(11)), 4) + take(images.train.training(Feed(11, seed=1)), 2)
    orders = [tuple(np.concatenate([batches[i][1], batches[i + 1][1]])) for i in (0, 2, 4)]
    assert all(sorted(order) == list(range(TRAIN)) for order in orders)
    assert len(set(orders)) == 3
    assert all((batch[2] == 1).all() for batch in batches)


def test_the_order_does_not_depend_on_the_global_seed(images):
    runs = []
    for seed in (0, 1):
        tf.random.set_seed(seed)
        runs.append(take(images.train.training(Feed(6)), 4))
    assert_same(*runs)


def test_a_data_set_leaves_the_global_seed_alone(sets):
    draws = []
    for build in (lambda: None, lambda: sets["stream"].train.training(Feed(6))):
        tf.random.set_seed(3)
        build()
        draws.append(tf.random.uniform([4]).numpy())
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize("kind", AUGMENTED)
def test_augmentation_differs_between_epochs(sets, kind):
    batches = take(sets[kind].train.training(Feed(11)), 4)
    first, second = (
        {label: image for batch in batches[i : i + 2] for image, label in zip(*batch[:2], strict=True)} for i in (0, 2)
    )
    # One of 162 small images is moved and mirrored the same way twice.
    assert sum(np.array_equal(first[label], second[label]) for label in range(TRAIN)) <= 1


def test_a_stream_needs_a_whole_batch(sets):
    with pytest.raises(DataError, match="`batch_size` must be at most 22. Received: batch_size=23"):
        sets["stream"].train.training(Feed(23))


def test_the_stream_is_mixed_beyond_its_buffer(root):
    builder = tfds.builder("large_photographs", data_dir=root)
    source = StreamSource(builder, "train", ("image", "label"), SIZE, buffer=4)
    assert len(source.files) == 4
    whole = take(source.training(Feed(11)), 4)
    assert sorted(np.concatenate([whole[0][1], whole[1][1]])) == list(range(TRAIN))
    assert_same(take(source.training(Feed(11, start_step=3)), 1), whole[3:])


def test_sets_that_do_not_fit_into_memory_are_streamed(root, monkeypatch):
    pixels = 32 * 32 * 3 * (TRAIN + VALIDATION)
    monkeypatch.setattr(image_data, "MEMORY_LIMIT", pixels)
    assert isinstance(load("small_colours", str(root)).train, SmallImages)
    monkeypatch.setattr(image_data, "MEMORY_LIMIT", pixels - 1)
    data = load("small_colours", str(root))
    assert isinstance(data.train, StreamSource)
    assert data.image_shape == (32, 32, 3)


def test_small_images_are_enlarged_when_another_size_is_asked_for(root):
    data = load("small_colours", str(root), 48)
    assert isinstance(data.train, StreamSource)
    assert take(data.train.training(Feed(2)), 1)[0][0].shape == (2, 48, 48, 3)


def test_digits_are_split_by_class():
    data = load("digits")
    assert (data.train.size, data.validation.size, data.classes, data.image_shape) == (4000, 1000, 10, (28, 28, 1))
    assert np.bincount(data.train.targets).tolist() == [400] * 10
    assert np.bincount(data.validation.targets).tolist() == [100] * 10
    inputs = take(data.train.training(Feed(64)), 1)[0][0]
    assert inputs.min() == 0
    assert inputs.max() == 255


# Augmentation


def torchvision_window(height, width, uniform):
    """`RandomResizedCrop.get_params`, its draws taken from a list."""
    n = augment.ATTEMPTS
    for i in range(n):
        area = height * width * (0.08 + 0.92 * uniform[i])
        ratio = math.exp(math.log(3 / 4) + (math.log(4 / 3) - math.log(3 / 4)) * uniform[n + i])
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return [int(uniform[2 * n] * (height - h + 1)), int(uniform[2 * n + 1] * (width - w + 1)), h, w]
    w, h = width, height
    if width / height < 3 / 4:
        h = round(w / (3 / 4))
    elif width / height > 4 / 3:
        w = round(h * (4 / 3))
    return [(height - h) // 2, (width - w) // 2, h, w]


@pytest.mark.parametrize("shape", [(375, 500), (500, 333), (64, 64), (10, 1000), (900, 7), (1, 1)])
def test_the_crop_is_that_of_torchvision(shape):
    uniform = tf.random.stateless_uniform([100, 22], [0, 1])
    windows = augment.crop_windows(tf.constant([shape] * 100), uniform).numpy().tolist()
    assert windows == [torchvision_window(*shape, row) for row in uniform.numpy().astype(float).tolist()]


def test_the_crops_of_a_batch_are_those_of_its_images():
    shapes = tf.constant([(375, 500), (10, 1000), (1, 1), (64, 64)])
    uniform = tf.random.stateless_uniform([4, 22], [0, 1])
    one_by_one = [augment.crop_windows(shapes[i : i + 1], uniform[i : i + 1]) for i in range(4)]
    np.testing.assert_array_equal(augment.crop_windows(shapes, uniform), np.concatenate(one_by_one))


def test_parts_are_drawn_evenly_and_by_the_seed_of_an_image_alone():
    count = 4000
    seeds = tf.stack([tf.fill([count], tf.constant(7, tf.int64)), tf.range(count, dtype=tf.int64)], axis=1)
    sizes = tf.fill([count, 2], 1000)
    windows, mirrored = augment.draw_parts(sizes, seeds)
    areas = np.prod(windows.numpy()[:, 2:] / 1000, axis=1)
    # Areas that fit whatever their ratio are uniform: a tenth of the draws is in each tenth below three quarters.
    counts, _ = np.histogram(areas, np.linspace(0.08, 0.72, 9))
    assert np.abs(counts / counts.mean() - 1).max() < 0.15  # three deviations of about 0.05
    assert abs(np.mean(mirrored) - 0.5) < 3 * 0.5 / count**0.5
    again, _ = augment.draw_parts(sizes[:5], seeds[100:105])
    np.testing.assert_array_equal(again, windows[100:105])


@pytest.mark.parametrize("content", [tf.io.encode_jpeg, tf.io.encode_png])
def test_the_header_tells_the_size_of_an_image(content):
    assert augment.image_size(content(picture(0, 40, 300))).numpy().tolist() == [40, 300]


def test_a_crop_at_the_end_of_the_draws_stays_inside():
    uniform = tf.fill([1, 22], np.float32(1 - 2**-24))
    y, x, height, width = augment.crop_windows(tf.constant([[4001, 4003]]), uniform).numpy()[0]
    assert y + height <= 4001
    assert x + width <= 4003


def test_validation_takes_the_centre_of_the_resized_photograph():
    image = picture(1, 256, 300)
    result = augment.validation_photograph(tf.io.encode_png(image), 224)
    np.testing.assert_array_equal(result, image[16:240, 38:262])


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_a_training_photograph_is_its_window_resized(kind):
    image = picture(1, 90, 120)
    # With subsampled colours, pixels at the edge of a window depend on whether those beyond are decoded too.
    encoded = tf.io.encode_png(image) if kind == "png" else tf.io.encode_jpeg(image, chroma_downsampling=False)
    image = tf.io.decode_image(encoded)
    windows, mirrored = augment.draw_parts(tf.constant([[90, 120]] * 6), tf.constant([[0, n] for n in range(6)]))
    assert {*mirrored.numpy().tolist()} == {False, True}
    for window, mirror in zip(windows.numpy(), mirrored.numpy(), strict=True):
        y, x, height, width = window
        expected = tf.image.resize(image[y : y + height, x : x + width], [40, 40], antialias=True)
        expected = expected[:, ::-1] if mirror else expected
        result = augment.training_photograph(encoded, window, mirror, 40)
        assert result.dtype == tf.uint8
        # Rounded, and not cut off; a mean that is all but half way between two numbers may go either way.
        assert np.abs(np.float64(result) - expected.numpy()).max() < 0.5001


def test_small_images_are_moved_and_mirrored_evenly():
    draws = 162 * 100
    numbers = np.arange(1, 10, dtype=np.uint8)
    image = np.zeros((9, 9, 1), np.uint8)
    image[4, :, 0] = numbers  # row, column and direction can be read from the result
    seeds = tf.stack([tf.fill([draws], tf.constant(7, tf.int64)), tf.range(draws, dtype=tf.int64)], axis=1)
    results = augment.pad_crop_flip(tf.constant(np.repeat(image[None], draws, 0)), seeds).numpy()[..., 0]
    padded = np.pad(image[..., 0], 4)
    windows = [padded[y : y + 9, x : x + 9] for y in range(9) for x in range(9)]
    expected = {view.tobytes(): i for i, view in enumerate(windows + [window[:, ::-1] for window in windows])}
    counts = np.bincount([expected[result.tobytes()] for result in results], minlength=162)
    chi_square = ((counts - 100) ** 2 / 100).sum()
    assert 110 < chi_square < 220  # 161 degrees of freedom: the mean, and three deviations of 18


def test_a_small_image_depends_on_its_own_seed_only():
    images = tf.constant(np.stack([picture(number, 32, 32) for number in range(6)]))
    seeds = tf.constant([[3, number] for number in range(6)], tf.int64)
    whole = augment.pad_crop_flip(images, seeds)
    np.testing.assert_array_equal(whole[4:], augment.pad_crop_flip(images[4:], seeds[4:]))


# Files


@pytest.mark.parametrize(("dot", "suffix"), [("-", ""), ("-", ".gz"), (".", ""), (".", ".gz")])
def test_idx_files_are_found_by_each_of_their_names(tmp_path, dot, suffix):
    write_idx_folder(tmp_path, dot, suffix)
    data = load("folder", str(tmp_path))
    assert (data.train.size, data.validation.size, data.image_shape) == (TRAIN, VALIDATION, (12, 10, 1))


def test_idx_files_must_be_whole(tmp_path):
    write_idx_folder(tmp_path)
    images, labels = tmp_path / "train-images-idx3-ubyte", tmp_path / "train-labels-idx1-ubyte"
    whole = images.read_bytes()

    def error():
        with pytest.raises(DataError) as caught:
            load("folder", str(tmp_path))
        return str(caught.value)

    for length in (len(whole) - 1, 10):
        images.write_bytes(whole[:length])
        assert "as many bytes as its header says" in error()
        assert f"Received: {length} bytes" in error()
    images.write_bytes(b"")
    assert "must begin with 00000803. Received: nothing in" in error()
    images.write_bytes(labels.read_bytes())
    assert f"must begin with 00000803. Received: 00000801 in {images}" in error()
    images.unlink()
    assert error().endswith("without train-images-idx3-ubyte[.gz]")
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(whole)[:-20])
    assert "must be readable and complete" in error()
    images.write_bytes(whole)
    write_idx(labels, np.arange(5, dtype=np.uint8))
    assert "Every image must have a label. Received: 22 images" in error()


def test_idx_images_must_be_of_one_size_and_of_two_classes(tmp_path):
    write_idx_folder(tmp_path)
    for split, count in (("train", TRAIN), ("t10k", VALIDATION)):
        write_idx(tmp_path / f"{split}-labels-idx1-ubyte", np.zeros(count, np.uint8))
    with pytest.raises(DataError, match="at least 2 classes. Received: 1"):
        load("folder", str(tmp_path))
    write_idx(tmp_path / "t10k-images-idx3-ubyte", np.zeros((VALIDATION, 5, 5), np.uint8))
    with pytest.raises(DataError, match=r"must have one size. Received: \(12, 10\)"):
        load("folder", str(tmp_path))


@pytest.mark.parametrize("validation", ["val", "validation", "test"])
def test_folders_have_classes_in_sorted_order(tmp_path, validation):
    data = load("folder", str(write_photographs(tmp_path, 3, validation)))
    assert (image_files.CHOSEN_ON_TEST in data.notes) == (validation == "test")
    assert data.test is None
    assert data.image_shape == (224, 224, 3)
    assert data.validation.paths == [str(tmp_path / validation / f"class_0{i}" / "image.JPEG") for i in range(3)]
    assert data.validation.labels == [0, 1, 2]


JPEG = tf.io.encode_jpeg(picture(0, 40, 30)).numpy()
PNG = tf.io.encode_png(picture(0, 40, 30)).numpy()


def shape_of(folder, content):
    (folder / "image").write_bytes(content)
    return image_files.image_shapes([str(folder / "image")], cache.DataCache(folder))[0].tolist()


@pytest.mark.parametrize("content", [JPEG, PNG, JPEG + bytes(3), JPEG + bytes(10_000), PNG + bytes(5000)])
def test_whole_files_have_the_shape_of_their_images(tmp_path, content):
    assert shape_of(tmp_path, content) == [40, 30, 3]


GIF = b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
CUT = (
    JPEG[:-1],
    JPEG[:-2],
    JPEG[: len(JPEG) // 2],
    JPEG[:200] + bytes(9000),
    JPEG[:3],
    JPEG[2:],
    PNG[:-1],
    PNG[:-12],
    JPEG[: len(JPEG) // 2] + JPEG[-2:],
)


@pytest.mark.parametrize("content", [*CUT, b"", bytes(9000), b"<html>404</html>", GIF])
def test_truncated_files_and_other_kinds_of_files_have_no_shape(tmp_path, content):
    assert shape_of(tmp_path, content) == [0, 0, 0]


def test_a_folder_with_validation_and_test_has_both(tmp_path):
    write_photographs(tmp_path, 3)
    shutil.copytree(tmp_path / "val", tmp_path / "test")
    data = load("folder", str(tmp_path), SIZE)
    assert [str(tmp_path / "val" / "class_00" / "image.JPEG"), str(tmp_path / "test" / "class_00" / "image.JPEG")] == [
        source.paths[0] for source in (data.validation, data.test)
    ]
    assert image_files.CHOSEN_ON_TEST not in data.notes
    shutil.rmtree(tmp_path / "test/class_01")
    data = load("folder", str(tmp_path), SIZE)
    assert data.test is None
    assert "the test folder is not used: its classes are not those of train" in data.notes


def write_small(folder, encode=tf.io.encode_png, channels=3):
    """The pictures of `SmallColours` as files."""
    for split, count in (("train", TRAIN), ("test", VALIDATION)):
        for number in range(TRAIN):
            place = folder / split / f"class_{number:02}"
            place.mkdir(parents=True)
            image = picture(number % count, 32, 32)[..., :channels]
            (place / "image.png").write_bytes(encode(image).numpy())
    return folder


def test_the_size_of_images_decides_what_is_done_with_them_and_not_the_route(tmp_path, sets):
    files, prepared = load("folder", str(write_small(tmp_path / "small"))), sets["in_memory"]
    np.testing.assert_array_equal(files.train.inputs[3], picture(3, 32, 32))
    for name in ("classes", "image_shape", "scaling", "notes"):
        assert getattr(files, name) == getattr(prepared, name)
    assert files.notes == (
        "images of 32x32x3 in memory, moved by up to 4 pixels and mirrored in training; pixels scaled to [0, 1]",
        "the best model is chosen on the test split: there is no other for validation",
    )
    enlarged = load("folder", str(tmp_path / "small"), 48)
    assert (type(enlarged.train), enlarged.scaling) == (Photographs, IMAGENET)
    large = tmp_path / "small/train/class_00/large.png"
    large.write_bytes(tf.io.encode_png(picture(0, 33, 32)).numpy())
    several = load("folder", str(tmp_path / "small"))
    assert (type(several.train), several.image_shape) == (Photographs, (224, 224, 3))
    assert several.notes[0] == (
        "photographs, of which training sees random parts and validation the centre, at 224x224; "
        "pixels normalised by ImageNet's mean and deviation"
    )


def test_grey_images_of_one_size_stay_grey_and_are_not_mirrored(tmp_path):
    data = load("folder", str(write_small(tmp_path, channels=1)))
    assert data.image_shape == (32, 32, 1)
    assert data.train.augment is None


def test_large_images_of_one_size_are_photographs(tmp_path):
    for split in ("train", "val"):
        for name in ("a", "b"):
            (tmp_path / split / name).mkdir(parents=True)
            (tmp_path / split / name / "1.png").write_bytes(tf.io.encode_png(picture(0, 65, 64)).numpy())
    assert isinstance(load("folder", str(tmp_path)).train, Photographs)


def test_a_folder_like_that_of_tiny_imagenet_is_read(tmp_path):
    for name in ("n01", "n02"):
        (tmp_path / "train" / name / "images").mkdir(parents=True)
        (tmp_path / "train" / name / f"{name}_boxes.txt").write_text("0\t0\n")
        for number in range(2):
            path = tmp_path / "train" / name / "images" / f"{name}_{number}.JPEG"
            path.write_bytes(tf.io.encode_jpeg(picture(number, 64, 64)).numpy())
    for split in ("val", "test"):
        (tmp_path / split / "images").mkdir(parents=True)
        for number in range(3):
            path = tmp_path / split / "images" / f"{split}_{number}.JPEG"
            path.write_bytes(tf.io.encode_jpeg(picture(number, 64, 64)).numpy())
    annotations = tmp_path / "val/val_annotations.txt"
    annotations.write_text("".join(f"val_{n}.JPEG\t{c}\t0\t0\t9\t9\n" for n, c in enumerate(("n02", "n01", "n02"))))
    data = load("folder", str(tmp_path))
    assert (data.train.size, data.validation.size, data.classes, data.test) == (4, 3, 2, None)
    assert data.train.targets.tolist() == [0, 0, 1, 1]
    assert data.validation.targets.tolist() == [0, 1, 1]
    np.testing.assert_array_equal(
        data.validation.inputs[0], tf.io.decode_jpeg((tmp_path / "val/images/val_1.JPEG").read_bytes())
    )
    annotations.write_text("val_0.JPEG n02\n")
    with pytest.raises(DataError, match="a file's name, a tab and a class folder of train. Received: 'val_0.JPEG n02'"):
        load("folder", str(tmp_path))


def test_files_that_are_cut_or_corrupt_inside_are_named_or_left_out(tmp_path, caplog):
    write_photographs(tmp_path, 3)
    large = tf.io.encode_png(picture(0, 90, 80)).numpy()
    jpeg = bytearray(JPEG)
    start = jpeg.index(b"\xff\xc0") + 9  # the number of colours, in the header of the frame
    jpeg[start] = 77
    contents = {"train/class_00/a.jpg": bytes(jpeg), "train/class_00/b.png": large[:300] + b"?" + large[301:]}
    contents |= {"val/class_01/c.png": b"", "val/class_01/d.jpg": JPEG[:-9], "val/class_02/e.png": PNG[:-9]}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    bad = [tmp_path / name for name in contents]
    with pytest.raises(DataError, match=f"bad_images='skip'` leaves the others out. Received: {bad[0]} and 4 more"):
        load("folder", str(tmp_path), SIZE)
    data = load("folder", str(tmp_path), SIZE, bad_images="skip")
    assert caplog.messages[-1].endswith(": " + ", ".join(map(str, bad)))
    assert (data.train.size, data.validation.size) == (3, 3)
    assert len(take(data.train.training(Feed(3)), 2)) == 2


def test_whatever_else_lies_in_a_class_folder_neither_hangs_nor_crashes(tmp_path, caplog):
    place = write_photographs(tmp_path, 3) / "train" / "class_00"
    os.mkfifo(place / "fifo.jpg")
    (place / "folder.png").mkdir()
    (place / "gone.jpg").symlink_to(tmp_path / "nowhere")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(place / "socket.jpg"))
        names = [b"two\nlines.jpg", b"caf\xe9.jpg", " spaced 图.jpg".encode()]
        for name in names:
            with open(os.fsencode(place) + b"/" + name, "wb") as file:
                file.write(JPEG)
        with pytest.raises(DataError) as caught:
            load("folder", str(tmp_path), SIZE)
        assert str(caught.value).endswith(f"Received: {place}/fifo.jpg and 3 more")
        data = load("folder", str(tmp_path), SIZE, bad_images="skip")
    bad = ", ".join(f"{place}/{name}" for name in ("fifo.jpg", "folder.png", "gone.jpg", "socket.jpg"))
    assert f"left out 4 images that cannot be decoded: {bad}" in caplog.messages
    assert data.train.size == 6
    assert len(take(data.train.training(Feed(6)), 1)) == 1
    assert len(fingerprint(data.train.contents())) == 32
    (place / "fifo.jpg").unlink()
    os.truncate(os.fsencode(place) + b"/caf\xe9.jpg", 9)
    with pytest.raises(DataError) as caught:
        load("folder", str(tmp_path), SIZE)
    assert f"Received: {place}/caf\\xe9.jpg and 3 more" in str(caught.value)


@pytest.fixture
def opened(monkeypatch):
    """Every check is kept, and the names of the files that are opened for one."""
    names = []
    decoded = image_files.decoded_shapes
    monkeypatch.setattr(cache, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(image_files, "decoded_shapes", lambda paths: names.extend(paths) or decoded(paths))
    return names


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_second_start_opens_only_files_that_have_changed(tmp_path, opened, elsewhere):
    folder = write_photographs(tmp_path / "images", 3)
    options = {"cache_dir": str(tmp_path / "kept")} if elsewhere else {}
    first = load("folder", str(folder), SIZE, **options)
    assert len(opened) == 6
    assert (tmp_path / "kept").exists() == elsewhere != (folder / ".tfwarmup").exists()
    opened.clear()
    again = load("folder", str(folder), SIZE, **options)
    assert opened == []
    assert (again.train.paths, again.notes) == (first.train.paths, first.notes)
    changed = folder / "train/class_01/image.JPEG"
    state = changed.stat()
    changed.write_bytes(changed.read_bytes()[:-10] + bytes(10))  # as long as before, and damaged
    os.utime(changed, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    new = folder / "val/class_00/new.jpg"
    new.write_bytes(JPEG)
    with pytest.raises(DataError, match=f"Received: {changed} and 0 more"):
        load("folder", str(folder), SIZE, **options)
    assert sorted(opened) == [str(changed), str(new)]


def test_what_is_kept_moves_with_the_folder_and_is_made_again_if_it_is_damaged(tmp_path, opened):
    folder = write_photographs(tmp_path / "images", 3)
    load("folder", str(folder), SIZE)
    moved = folder.rename(tmp_path / "moved")
    opened.clear()
    load("folder", str(moved), SIZE)
    assert opened == []
    (kept,) = (moved / ".tfwarmup").iterdir()
    content = bytearray(kept.read_bytes())
    content[content.index(b"image.JPEG")] ^= 1
    for damaged in (bytes(content), content[:100], b""):
        kept.write_bytes(damaged)
        opened.clear()
        load("folder", str(moved), SIZE)
        assert len(opened) == 6


def test_a_folder_that_cannot_be_written_to_is_checked_every_time(tmp_path, opened, caplog):
    folder = write_photographs(tmp_path, 3)
    (folder / ".tfwarmup").write_text("in the way")  # root may write to a folder that is read-only
    for _ in range(2):
        opened.clear()
        load("folder", str(folder), SIZE)
        assert len(opened) == 6
    assert "set --cache_dir to a writable folder" in caplog.text


def test_folder_errors_say_the_rule_and_the_path(tmp_path):
    def error(folder, bad_images="fail"):
        with pytest.raises(DataError) as caught:
            load("folder", folder and str(folder), SIZE, False, bad_images)
        return str(caught.value)

    assert "needs `data_dir`" in error(None)
    assert error(tmp_path / "no") == (
        f"`data_dir` must be a folder that can be read. Received: {tmp_path / 'no'} (No such file or directory)"
    )
    (tmp_path / "file").touch()
    assert "Not a directory" in error(tmp_path / "file")
    assert f"Received: {tmp_path} with ['file']" in error(tmp_path)
    assert "at least 2 classes. Received: ['class_00']" in error(write_photographs(tmp_path / "one", 1))
    two = write_photographs(tmp_path / "two", 2)
    image = two / "val" / "class_01" / "image.JPEG"
    image.write_bytes(JPEG[:50])
    assert error(two, "skip") == f"A class must have at least one complete image. Received: {image.parent}"
    image.rename(image.with_suffix(".txt"))
    assert f"at least one .jpg, .jpeg, .png file. Received: {image.parent}" in error(two)
    shutil.rmtree(image.parent)
    assert "where only one of train and val has ['class_01']" in error(two)


def test_images_of_one_size_take_no_other(root):
    with pytest.raises(DataError, match="must be left out for images of one size, here 12x10. Received: image_size=32"):
        load("folder", str(root / "idx"), 32)


def test_grey_images_are_standardised_by_the_pixels_of_training(root):
    data = load("folder", str(root / "idx"), standardize=True)
    pixels = data.train.inputs.astype(np.float64)
    np.testing.assert_allclose(data.scaling.mean, pixels.mean(), rtol=1e-12)
    np.testing.assert_allclose(data.scaling.deviation, pixels.std(), rtol=1e-12)
    mean, deviation = pixels.mean() / 255, pixels.std() / 255
    assert f"pixels standardised by mean {mean:.6g} and deviation {deviation:.6g} of [0, 1]" in data.notes[0]
    given = load("folder", str(root / "idx"), standardize=True, standardize_by=(0.2, 0.4))
    assert given.scaling == Scaling((51.0,), (102.0,))


def test_only_grey_images_of_one_size_are_standardised(root):
    with pytest.raises(DataError, match="`standardize` is for grey images. Received: images with 3 channels"):
        load("small_colours", str(root), standardize=True)
    with pytest.raises(DataError, match="grey images of one size, at most 64 pixels. Received: photographs"):
        load("folder", str(root / "folder"), SIZE, standardize=True)


# TFDS


def test_a_set_with_validation_and_test_has_both_and_one_without_says_so(root, tmp_path):
    assert image_files.CHOSEN_ON_TEST in load("small_colours", str(root)).notes
    three = ThreeParts(data_dir=tmp_path)
    three.download_and_prepare()
    data = load("three_parts", str(tmp_path))
    assert image_files.CHOSEN_ON_TEST not in data.notes
    assert (data.validation.size, data.test.size) == (VALIDATION, 3)
    assert load("three_parts", str(tmp_path), 48).test.size == 3


def test_a_set_without_images_is_refused(tmp_path):
    with pytest.raises(
        DataError, match="must have an image with 8 bits per channel and a class label. Received: sentences"
    ):
        load("sentences", str(tmp_path))


def test_files_of_a_set_must_be_there_and_whole(root, tmp_path):
    shutil.copytree(root / "small_colours", tmp_path / "small_colours")
    file = sorted(tmp_path.rglob("*train.tfrecord*"))[1]
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(DataError, match="The files of a TFDS set must be complete; prepare .* again"):
        load("small_colours", str(tmp_path))
    file.unlink()
    with pytest.raises(DataError, match=f"Received: no {file}, and 0 more are missing"):
        load("small_colours", str(tmp_path))
