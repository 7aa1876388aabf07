"""Every image set is a pure function of the step, tiles over replicas, and says what is wrong with its files."""

import math
import os
import re
import shutil
import socket

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from tests.trainers.batches import assert_same, take
from tests.trainers.pictures import (
    SIZE,
    TRAIN,
    VALIDATION,
    ThreeParts,
    load,
    picture,
    write_idx,
    write_idx_folder,
    write_image,
    write_photographs,
)
from trainers.engine.data import Feed, fingerprint
from trainers.system.errors import DataError
from trainers.tasks import cache
from trainers.tasks.images import augment
from trainers.tasks.images import data as image_data
from trainers.tasks.images import files as image_files
from trainers.tasks.images.models import IMAGENET, UNIT, Scaling
from trainers.tasks.images.sources import Photographs, SmallImages, StreamSource

CHOSEN_ON_TEST = "the best model is chosen on the test split: there is no other for validation"


class Sentences(tfds.core.GeneratorBasedBuilder):
    """No images."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        return self.dataset_info_from_configs(features=tfds.features.FeaturesDict({"text": tfds.features.Text()}))

    def _split_generators(self, dl_manager):
        return {"train": []}

    def _generate_examples(self):
        yield from ()


def error(*arguments, **options):
    with pytest.raises(DataError) as caught:
        load(*arguments, **options)
    return str(caught.value)


def test_each_kind_has_its_source_and_images_are_uint8_of_the_stated_shape(image_sets):
    kinds = {"idx": SmallImages, "folder": Photographs, "in_memory": SmallImages, "stream": StreamSource}
    for name, data in image_sets.items():
        assert (type(data.train), type(data.validation)) == (kinds[name],) * 2
        for dataset in (data.train.training(Feed(4)), data.validation.evaluation(Feed(4))):
            inputs, targets, weights = take(dataset, 1)[0]
            assert (inputs.shape, inputs.dtype) == ((4, *data.image_shape), np.uint8)
            assert (targets.dtype, weights.dtype) == (np.int64, np.float32)
        assert (data.classes, data.train.size) == (TRAIN, TRAIN)


@pytest.mark.parametrize("kind", ["idx", "in_memory"])
def test_images_of_one_size_are_the_pixels_as_they_are(image_sets, kind):
    data = image_sets[kind]
    assert data.scaling == UNIT
    for inputs, targets, _ in take(data.validation.evaluation(Feed(1)), 3):
        height, width, channels = data.image_shape
        np.testing.assert_array_equal(inputs[0], picture(targets[0], height, width)[..., :channels])


def test_a_data_set_leaves_the_global_seed_alone(image_sets):
    draws = []
    for build in (lambda: None, lambda: image_sets["stream"].train.training(Feed(6))):
        tf.random.set_seed(3)
        build()
        draws.append(tf.random.uniform([4]).numpy())
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize("kind", ["folder", "in_memory", "stream"])
def test_augmentation_differs_between_epochs(image_sets, kind):
    batches = take(image_sets[kind].train.training(Feed(11)), 4)
    first, second = (
        {label: image for batch in batches[i : i + 2] for image, label in zip(*batch[:2], strict=True)} for i in (0, 2)
    )
    # One of 162 small images is moved and mirrored the same way twice.
    assert sum(np.array_equal(first[label], second[label]) for label in range(TRAIN)) <= 1


def test_the_stream_is_mixed_beyond_its_buffer(image_root):
    builder = tfds.builder("large_photographs", data_dir=image_root)
    source = StreamSource(builder, "train", ("image", "label"), SIZE, buffer=4)
    assert len(source.files) == 4
    whole = take(source.training(Feed(11)), 4)
    assert sorted(np.concatenate([whole[0][1], whole[1][1]])) == list(range(TRAIN))
    assert_same(take(source.training(Feed(11, start_step=3)), 1), whole[3:])


def test_small_images_are_streamed_if_they_do_not_fit_into_memory_or_another_size_is_asked_for(image_root, monkeypatch):
    pixels = 32 * 32 * 3 * (TRAIN + VALIDATION)
    for limit, size, kind, shown in (
        (pixels, None, SmallImages, 32),
        (pixels - 1, None, StreamSource, 32),
        (pixels, 48, StreamSource, 48),
    ):
        monkeypatch.setattr(image_data, "MEMORY_LIMIT", limit)
        data = load("small_colours", image_root, size)
        assert (type(data.train), data.image_shape) == (kind, (shown, shown, 3))
        assert take(data.train.training(Feed(2)), 1)[0][0].shape == (2, shown, shown, 3)


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


def test_the_crops_of_a_batch_are_those_of_torchvision():
    shapes = [(375, 500), (500, 333), (64, 64), (10, 1000), (900, 7), (1, 1)] * 100
    uniform = tf.random.stateless_uniform([len(shapes), 22], [0, 1])
    windows = augment.crop_windows(tf.constant(shapes), uniform).numpy().tolist()
    rows = uniform.numpy().astype(float).tolist()
    assert windows == [torchvision_window(*shape, row) for shape, row in zip(shapes, rows, strict=True)]


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


# Files


@pytest.mark.parametrize(("dot", "suffix"), [("-", ""), ("-", ".gz"), (".", ""), (".", ".gz")])
def test_idx_files_are_found_by_each_of_their_names(tmp_path, dot, suffix):
    write_idx_folder(tmp_path, dot, suffix)
    data = load("folder", tmp_path)
    assert (data.train.size, data.validation.size, data.image_shape) == (TRAIN, VALIDATION, (12, 10, 1))


IMAGES, LABELS, TEST_IMAGES = "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte"
WHOLE = "readable and complete. Received: "


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (IMAGES, lambda data: data[:-1], f"{WHOLE}.*{IMAGES} .cannot reshape array of size 2639 into"),
        (IMAGES, lambda data: data[:10], f"{WHOLE}.*buffer is smaller"),
        (IMAGES, lambda data: b"", f"{WHOLE}.*it begins with nothing, not with 00000803"),
        (IMAGES, lambda data: b"\0\0\x08\x01" + data[4:], f"{WHOLE}.*it begins with 00000801, not with 00000803"),
        (IMAGES, lambda data: data[:4] + bytes(4) + data[8:16], f"{WHOLE}.*it has no items"),
        (IMAGES, None, r"without train-images-idx3-ubyte\[.gz\]$"),
        (LABELS, lambda data: data[:7] + b"\x05" + data[8:13], "Every image must have a label. Received: 22 images"),
        (LABELS, lambda data: data[:8] + bytes(TRAIN), "at least 2 classes. Received: 1"),
        (
            TEST_IMAGES,
            lambda data: data[:8] + data[12:16] + data[8:12] + data[16:],
            r"one size. Received: \(12, 10\) in",
        ),
    ],
)
def test_idx_files_must_be_whole_and_fit_each_other(tmp_path, name, change, message):
    write_idx_folder(tmp_path)
    write_idx(tmp_path / "t10k-labels-idx1-ubyte", np.zeros(VALIDATION, np.uint8))
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    if change:
        (tmp_path / name).write_bytes(change(data))
    assert re.search(message, error("folder", tmp_path))


def test_a_compressed_idx_file_must_be_complete(tmp_path):
    write_idx_folder(tmp_path, suffix=".gz")
    os.truncate(tmp_path / f"{IMAGES}.gz", 100)
    assert "must be readable and complete" in error("folder", tmp_path)


@pytest.mark.parametrize("validation", ["val", "validation", "test"])
def test_folders_have_classes_in_sorted_order(tmp_path, validation):
    data = load("folder", write_photographs(tmp_path, 3, validation))
    assert (CHOSEN_ON_TEST in data.notes) == (validation == "test")
    assert data.test is None
    assert data.image_shape == (224, 224, 3)
    assert data.validation.paths == [str(tmp_path / validation / f"class_0{i}" / "image.JPEG") for i in range(3)]
    assert data.validation.labels == [0, 1, 2]


JPEG = tf.io.encode_jpeg(picture(0, 40, 30)).numpy()
PNG = tf.io.encode_png(picture(0, 40, 30)).numpy()


GIF = b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
COMPLETE = (JPEG, PNG, JPEG + bytes(3), JPEG + bytes(10_000), PNG + bytes(5000))
HALF = JPEG[: len(JPEG) // 2]
CUT = (JPEG[:-1], JPEG[:-2], HALF, JPEG[:200] + bytes(9000), JPEG[:3], JPEG[2:], PNG[:-1], PNG[:-12], HALF + JPEG[-2:])


def test_whole_files_have_the_shape_of_their_images_and_others_none(tmp_path):
    contents = [*COMPLETE, *CUT, b"", bytes(9000), b"<html>404</html>", GIF]
    paths = [tmp_path / str(number) for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    shapes = image_files.image_shapes([*map(str, paths)], cache.DataCache(tmp_path)).tolist()
    assert shapes == [[40, 30, 3]] * len(COMPLETE) + [[0, 0, 0]] * (len(contents) - len(COMPLETE))


def test_a_folder_with_validation_and_test_has_both(tmp_path):
    write_photographs(tmp_path, 3)
    shutil.copytree(tmp_path / "val", tmp_path / "test")
    data = load("folder", tmp_path, SIZE)
    assert [str(tmp_path / "val" / "class_00" / "image.JPEG"), str(tmp_path / "test" / "class_00" / "image.JPEG")] == [
        source.paths[0] for source in (data.validation, data.test)
    ]
    assert CHOSEN_ON_TEST not in data.notes
    shutil.rmtree(tmp_path / "test/class_01")
    data = load("folder", tmp_path, SIZE)
    assert data.test is None
    assert "the test folder is not used: its classes are not those of train" in data.notes


def write_small(folder, channels=3):
    """The pictures of `SmallColours` as files."""
    for split, count in (("train", TRAIN), ("test", VALIDATION)):
        for number in range(TRAIN):
            image = picture(number % count, 32, 32)[..., :channels]
            write_image(folder / split / f"class_{number:02}" / "image.png", image)
    return folder


def test_the_size_of_images_decides_what_is_done_with_them_and_not_the_route(tmp_path, image_sets):
    files, prepared = load("folder", write_small(tmp_path / "small")), image_sets["in_memory"]
    np.testing.assert_array_equal(files.train.inputs[3], picture(3, 32, 32))
    for name in ("classes", "image_shape", "scaling", "notes"):
        assert getattr(files, name) == getattr(prepared, name)
    assert files.notes == (
        "images of 32x32x3 in memory, moved by up to 4 pixels and mirrored in training; pixels scaled to [0, 1]",
        "the best model is chosen on the test split: there is no other for validation",
    )
    enlarged = load("folder", tmp_path / "small", 48)
    assert (type(enlarged.train), enlarged.scaling) == (Photographs, IMAGENET)
    write_image(tmp_path / "small/train/class_00/large.png", picture(0, 33, 32))
    several = load("folder", tmp_path / "small")
    assert (type(several.train), several.image_shape) == (Photographs, (224, 224, 3))
    assert several.notes[0] == (
        "photographs, of which training sees random parts and validation the centre, at 224x224; "
        "pixels normalised by ImageNet's mean and deviation"
    )


def test_grey_images_of_one_size_stay_grey_and_are_not_mirrored(tmp_path):
    data = load("folder", write_small(tmp_path, channels=1))
    assert data.image_shape == (32, 32, 1)
    assert data.train.augment is None


def test_large_images_of_one_size_are_photographs(tmp_path):
    for name in ("train/a", "train/b", "val/a", "val/b"):
        write_image(tmp_path / name / "1.png", picture(0, 65, 64))
    assert isinstance(load("folder", tmp_path).train, Photographs)


def test_a_folder_like_that_of_tiny_imagenet_is_read(tmp_path):
    names = [f"train/{name}/images/{name}_{number}" for name in ("n01", "n02") for number in range(2)]
    names += [f"{split}/images/{split}_{number}" for split in ("val", "test") for number in range(3)]
    for number, name in enumerate(names):
        write_image(tmp_path / f"{name}.JPEG", picture(number, 64, 64), tf.io.encode_jpeg)
    (tmp_path / "train/n01/n01_boxes.txt").write_text("0\t0\n")
    annotations = tmp_path / "val/val_annotations.txt"
    annotations.write_text("".join(f"val_{n}.JPEG\t{c}\t0\t0\t9\t9\n" for n, c in enumerate(("n02", "n01", "n02"))))
    data = load("folder", tmp_path)
    assert (data.train.size, data.validation.size, data.classes, data.test) == (4, 3, 2, None)
    assert data.train.targets.tolist() == [0, 0, 1, 1]
    assert data.validation.targets.tolist() == [0, 1, 1]
    np.testing.assert_array_equal(
        data.validation.inputs[0], tf.io.decode_jpeg((tmp_path / "val/images/val_1.JPEG").read_bytes())
    )
    annotations.write_text("val_0.JPEG n02\n")
    assert "a file's name, a tab and a class folder of train. Received: 'val_0.JPEG n02'" in error("folder", tmp_path)


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
    assert f"bad_images='skip'` leaves the others out. Received: {bad[0]} and 4 more" in error("folder", tmp_path, SIZE)
    data = load("folder", tmp_path, SIZE, bad_images="skip")
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
        assert error("folder", tmp_path, SIZE).endswith(f"Received: {place}/fifo.jpg and 3 more")
        data = load("folder", tmp_path, SIZE, bad_images="skip")
    bad = ", ".join(f"{place}/{name}" for name in ("fifo.jpg", "folder.png", "gone.jpg", "socket.jpg"))
    assert f"left out 4 images that cannot be decoded: {bad}" in caplog.messages
    assert data.train.size == 6
    assert len(take(data.train.training(Feed(6)), 1)) == 1
    assert len(fingerprint(data.train.contents())) == 32
    (place / "fifo.jpg").unlink()
    os.truncate(os.fsencode(place) + b"/caf\xe9.jpg", 9)
    assert f"Received: {place}/caf\\xe9.jpg and 3 more" in error("folder", tmp_path, SIZE)


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
    first = load("folder", folder, SIZE, **options)
    assert len(opened) == 6
    assert (tmp_path / "kept").exists() == elsewhere != (folder / ".tfwarmup").exists()
    opened.clear()
    again = load("folder", folder, SIZE, **options)
    assert opened == []
    assert (again.train.paths, again.notes) == (first.train.paths, first.notes)
    changed = folder / "train/class_01/image.JPEG"
    state = changed.stat()
    changed.write_bytes(changed.read_bytes()[:-10] + bytes(10))  # as long as before, and damaged
    os.utime(changed, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    new = folder / "val/class_00/new.jpg"
    new.write_bytes(JPEG)
    assert f"Received: {changed} and 0 more" in error("folder", folder, SIZE, **options)
    assert sorted(opened) == [str(changed), str(new)]


def test_what_is_kept_moves_with_the_folder_and_is_made_again_if_it_is_damaged(tmp_path, opened):
    folder = write_photographs(tmp_path / "images", 3)
    load("folder", folder, SIZE)
    moved = folder.rename(tmp_path / "moved")
    opened.clear()
    load("folder", moved, SIZE)
    assert opened == []
    (kept,) = (moved / ".tfwarmup").iterdir()
    content = bytearray(kept.read_bytes())
    content[content.index(b"image.JPEG")] ^= 1
    for damaged in (bytes(content), content[:100], b""):
        kept.write_bytes(damaged)
        opened.clear()
        load("folder", moved, SIZE)
        assert len(opened) == 6


def test_a_folder_that_cannot_be_written_to_is_checked_every_time(tmp_path, opened, caplog):
    folder = write_photographs(tmp_path, 3)
    (folder / ".tfwarmup").write_text("in the way")  # root may write to a folder that is read-only
    for _ in range(2):
        opened.clear()
        load("folder", folder, SIZE)
        assert len(opened) == 6
    assert "set --cache_dir to a writable folder" in caplog.text


def test_folder_errors_say_the_rule_and_the_path(tmp_path):
    def error_in(folder, bad_images="fail"):
        return error("folder", folder, SIZE, bad_images=bad_images)

    assert "needs `data_dir`" in error_in(None)
    assert error_in(tmp_path / "no") == (
        f"`data_dir` must be a folder that can be read. Received: {tmp_path / 'no'} (No such file or directory)"
    )
    (tmp_path / "file").touch()
    assert "Not a directory" in error_in(tmp_path / "file")
    assert f"Received: {tmp_path} with ['file']" in error_in(tmp_path)
    assert "at least 2 classes. Received: ['class_00']" in error_in(write_photographs(tmp_path / "one", 1))
    two = write_photographs(tmp_path / "two", 2)
    image = two / "val" / "class_01" / "image.JPEG"
    image.write_bytes(JPEG[:50])
    assert error_in(two, "skip") == f"A class must have at least one complete image. Received: {image.parent}"
    image.rename(image.with_suffix(".txt"))
    assert f"at least one .jpg, .jpeg, .png file. Received: {image.parent}" in error_in(two)
    shutil.rmtree(image.parent)
    assert "where only one of train and val has ['class_01']" in error_in(two)


def test_grey_images_are_standardised_by_the_pixels_of_training(image_root):
    data = load("folder", image_root / "idx", standardize=True)
    pixels = data.train.inputs.astype(np.float64)
    np.testing.assert_allclose(data.scaling.mean, pixels.mean(), rtol=1e-12)
    np.testing.assert_allclose(data.scaling.deviation, pixels.std(), rtol=1e-12)
    mean, deviation = pixels.mean() / 255, pixels.std() / 255
    assert f"pixels standardised by mean {mean:.6g} and deviation {deviation:.6g} of [0, 1]" in data.notes[0]
    given = load("folder", image_root / "idx", standardize=True, standardize_by=(0.2, 0.4))
    assert given.scaling == Scaling((51.0,), (102.0,))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("folder", "idx", 32), {}, "must be left out for images of one size, here 12x10. Received: image_size=32"),
        (("small_colours", ""), {"standardize": True}, "is for grey images. Received: images with 3 channels"),
        (
            ("folder", "folder", SIZE),
            {"standardize": True},
            "images of one size, at most 64 pixels. Received: photographs",
        ),
    ],
)
def test_what_does_not_suit_the_images_is_refused(image_root, arguments, options, message):
    dataset, folder, *size = arguments
    assert message in error(dataset, image_root / folder, *size, **options)


# TFDS


def test_a_set_with_validation_and_test_has_both_and_one_without_says_so(image_sets, tmp_path):
    assert CHOSEN_ON_TEST in image_sets["in_memory"].notes
    ThreeParts(data_dir=tmp_path).download_and_prepare()
    data = load("three_parts", tmp_path)
    assert CHOSEN_ON_TEST not in data.notes
    assert (data.validation.size, data.test.size) == (VALIDATION, 3)
    assert load("three_parts", tmp_path, 48).test.size == 3


def test_a_set_must_have_images_and_its_files_must_be_there_and_whole(image_root, tmp_path):
    rule = "must have an image with 8 bits per channel and a class label. Received: sentences"
    assert rule in error("sentences", tmp_path)
    shutil.copytree(image_root / "small_colours", tmp_path / "small_colours")
    file = sorted(tmp_path.rglob("*train.tfrecord*"))[1]
    file.write_bytes(file.read_bytes()[:-5])
    assert "The files of a TFDS set must be complete; prepare " in error("small_colours", tmp_path)
    file.unlink()
    assert f"Received: no {file}, and 0 more are missing" in error("small_colours", tmp_path)
