"""Every image set is a pure function of the step, tiles over replicas, and says what is wrong with its files."""

import gzip
import math
import shutil
import struct
import urllib.error

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from trainers.engine.data import Feed
from trainers.engine.errors import DataError
from trainers.tasks import augment, image_data
from trainers.tasks.image_data import StreamSource, load_images
from trainers.tasks.image_files import Photographs, SmallImages, is_complete

KINDS = ("idx", "folder", "in_memory", "stream")
AUGMENTED = ("folder", "in_memory", "stream")
TRAIN, VALIDATION, SIZE = 22, 11, 16  # every image of a split has a label of its own


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
        "idx": load_images("folder", str(root / "idx"), None, False, "fail"),
        "folder": load_images("folder", str(root / "folder"), SIZE, False, "fail"),
        "in_memory": load_images("small_colours", str(root), None, False, "fail"),
        "stream": load_images("large_photographs", str(root), SIZE, False, "fail"),
    }


@pytest.fixture(params=KINDS)
def images(request, sets):
    return sets[request.param]


def take(dataset, count):
    return [tuple(part.numpy() for part in batch) for batch in dataset.take(count)]


def assert_same(batches, others):
    assert len(batches) == len(others)
    for batch, other in zip(batches, others, strict=True):
        for part, other_part in zip(batch, other, strict=True):
            np.testing.assert_array_equal(part, other_part)


def test_each_kind_has_its_source(sets):
    kinds = {name: (type(data.train), type(data.validation)) for name, data in sets.items()}
    expected = {"idx": SmallImages, "folder": Photographs, "in_memory": SmallImages, "stream": StreamSource}
    assert kinds == {name: (kind, kind) for name, kind in expected.items()}


def test_images_are_float32_of_the_stated_shape_and_labels_int64(images):
    for dataset in (images.train.training(Feed(4)), images.validation.evaluation(Feed(4))):
        inputs, targets, weights = take(dataset, 1)[0]
        assert inputs.shape == (4, *images.image_shape)
        assert (inputs.dtype, targets.dtype, weights.dtype) == (np.float32, np.int64, np.float32)
        assert dataset.element_spec[0].shape == (4, *images.image_shape)
    assert images.classes == TRAIN
    assert images.train.size == TRAIN


@pytest.mark.parametrize("kind", ["idx", "in_memory"])
def test_images_of_one_size_are_the_pixels_in_the_unit_interval(sets, kind):
    for inputs, targets, _ in take(sets[kind].validation.evaluation(Feed(1)), 3):
        height, width, channels = sets[kind].image_shape
        expected = picture(targets[0], height, width)[..., :channels]
        np.testing.assert_array_equal(inputs[0], np.float32(expected) / np.float32(255))


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
    assert isinstance(load_images("small_colours", str(root), None, False, "fail").train, SmallImages)
    monkeypatch.setattr(image_data, "MEMORY_LIMIT", pixels - 1)
    data = load_images("small_colours", str(root), None, False, "fail")
    assert isinstance(data.train, StreamSource)
    assert data.image_shape == (32, 32, 3)


def test_small_images_are_enlarged_when_another_size_is_asked_for(root):
    data = load_images("small_colours", str(root), 48, False, "fail")
    assert isinstance(data.train, StreamSource)
    assert take(data.train.training(Feed(2)), 1)[0][0].shape == (2, 48, 48, 3)


def test_digits_are_split_by_class():
    data = load_images("digits", None, None, False, "fail")
    assert (data.train.size, data.validation.size, data.classes, data.image_shape) == (4000, 1000, 10, (28, 28, 1))
    assert np.bincount(data.train.targets).tolist() == [400] * 10
    assert np.bincount(data.validation.targets).tolist() == [100] * 10
    inputs = take(data.train.training(Feed(64)), 1)[0][0]
    assert inputs.min() == 0
    assert inputs.max() == 1


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
    window = tf.function(augment.crop_window, input_signature=[tf.TensorSpec([2], tf.int32), tf.TensorSpec([22])])
    for seed in range(100):
        uniform = tf.random.stateless_uniform([22], [seed, 1])
        expected = torchvision_window(*shape, uniform.numpy().astype(float).tolist())
        assert window(tf.constant(shape), uniform).numpy().tolist() == expected


def test_a_crop_at_the_end_of_the_draws_stays_inside():
    uniform = tf.fill([22], np.float32(1 - 2**-24))
    y, x, height, width = augment.crop_window(tf.constant([4001, 4003]), uniform).numpy()
    assert y + height <= 4001
    assert x + width <= 4003


def test_validation_takes_the_centre_of_the_resized_photograph():
    image = picture(1, 256, 300)
    result = augment.validation_photograph(tf.io.encode_png(image), 224)
    np.testing.assert_allclose(result, augment.normalize(image[16:240, 38:262]), atol=1e-6)


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_a_training_photograph_is_its_window_resized(kind):
    image = picture(1, 90, 120)
    # With subsampled colours, pixels at the edge of a window depend on whether those beyond are decoded too.
    encoded = tf.io.encode_png(image) if kind == "png" else tf.io.encode_jpeg(image, chroma_downsampling=False)
    image = tf.io.decode_image(encoded)
    mirrored = set()
    for seed in ([0, 1], [0, 2], [0, 3], [0, 4]):
        uniform = tf.random.stateless_uniform([23], seed)
        y, x, height, width = augment.crop_window(tf.constant([90, 120]), uniform[:-1]).numpy()
        expected = tf.image.resize(image[y : y + height, x : x + width], [40, 40], antialias=True)
        mirrored.add(bool(uniform[-1] < 0.5))
        expected = expected[:, ::-1] if uniform[-1] < 0.5 else expected
        result = augment.training_photograph(encoded, seed, 40)
        np.testing.assert_allclose(result, augment.normalize(expected), atol=1e-5)
    assert mirrored == {False, True}


def test_normalised_photographs_have_imagenets_mean_at_zero():
    mean, std = np.array(augment.IMAGENET_MEAN), np.array(augment.IMAGENET_STD)
    images = np.stack([mean, mean + std, mean - 2 * std])[None] * 255  # one row of three pixels
    np.testing.assert_allclose(augment.normalize(images)[0], [[0] * 3, [1] * 3, [-2] * 3], atol=1e-6)


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
    data = load_images("folder", str(tmp_path), None, False, "fail")
    assert (data.train.size, data.validation.size, data.image_shape) == (TRAIN, VALIDATION, (12, 10, 1))


def test_idx_files_must_be_whole(tmp_path):
    write_idx_folder(tmp_path)
    images, labels = tmp_path / "train-images-idx3-ubyte", tmp_path / "train-labels-idx1-ubyte"
    whole = images.read_bytes()

    def error():
        with pytest.raises(DataError) as caught:
            load_images("folder", str(tmp_path), None, False, "fail")
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
        load_images("folder", str(tmp_path), None, False, "fail")
    write_idx(tmp_path / "t10k-images-idx3-ubyte", np.zeros((VALIDATION, 5, 5), np.uint8))
    with pytest.raises(DataError, match=r"must have one size. Received: \(12, 10\)"):
        load_images("folder", str(tmp_path), None, False, "fail")


@pytest.mark.parametrize("validation", ["val", "validation", "test"])
def test_folders_have_classes_in_sorted_order(tmp_path, validation):
    data = load_images("folder", str(write_photographs(tmp_path, 3, validation)), None, False, "fail")
    assert data.image_shape == (224, 224, 3)
    assert data.validation.paths == [str(tmp_path / validation / f"class_0{i}" / "image.JPEG") for i in range(3)]
    assert data.validation.labels == [0, 1, 2]


JPEG = tf.io.encode_jpeg(picture(0, 40, 30)).numpy()
PNG = tf.io.encode_png(picture(0, 40, 30)).numpy()


@pytest.mark.parametrize("content", [JPEG, PNG, JPEG + bytes(3), JPEG + bytes(10_000), PNG + bytes(5000)])
def test_whole_files_are_complete(tmp_path, content):
    (tmp_path / "image").write_bytes(content)
    assert is_complete(str(tmp_path / "image"))


CUT = (JPEG[:-1], JPEG[:-2], JPEG[: len(JPEG) // 2], JPEG[:200] + bytes(9000), JPEG[:3], JPEG[2:], PNG[:-1], PNG[:-12])


@pytest.mark.parametrize("content", [*CUT, b"", bytes(9000), b"<html>404</html>"])
def test_truncated_files_are_not_complete(tmp_path, content):
    (tmp_path / "image").write_bytes(content)
    assert not is_complete(str(tmp_path / "image"))


def test_truncated_files_fail_or_are_left_out(tmp_path):
    write_photographs(tmp_path, 3)
    bad = [str(tmp_path / "train" / "class_00" / "a.jpg"), str(tmp_path / "val" / "class_01" / "b.png")]
    for path, content in zip(bad, (JPEG[:-9], PNG[:-9]), strict=True):
        with open(path, "wb") as file:
            file.write(content)
    with pytest.raises(DataError, match=f"bad_images='skip'` leaves the others out. Received: {bad[0]} and 1 more"):
        load_images("folder", str(tmp_path), SIZE, False, "fail")
    data = load_images("folder", str(tmp_path), SIZE, False, "skip")
    assert data.skipped == tuple(bad)
    assert (data.train.size, data.validation.size) == (3, 3)
    assert len(take(data.train.training(Feed(3)), 2)) == 2


def test_folder_errors_say_the_rule_and_the_path(tmp_path):
    def error(folder, bad_images="fail"):
        with pytest.raises(DataError) as caught:
            load_images("folder", folder and str(folder), SIZE, False, bad_images)
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


def test_arguments_are_checked():
    with pytest.raises(DataError, match="`bad_images` must be one of fail, skip. Received: bad_images='keep'"):
        load_images("digits", None, None, False, "keep")
    with pytest.raises(DataError, match="`image_size` must be > 0. Received: image_size=0"):
        load_images("digits", None, 0, False, "fail")


def test_images_of_one_size_take_no_other(root):
    with pytest.raises(DataError, match="must be left out for images of one size, here 12x10. Received: image_size=32"):
        load_images("folder", str(root / "idx"), 32, False, "fail")


# TFDS


@pytest.mark.parametrize("name", ["no_such_set", "emnist/no_such_config", "not a name"])
def test_unknown_names_say_which_names_there_are(tmp_path, name):
    with pytest.raises(DataError, match=f"`dataset` must be digits, folder, or .* Received: dataset='{name}'"):
        load_images(name, str(tmp_path), None, False, "fail")


def test_a_missing_set_says_how_to_get_it(tmp_path):
    with pytest.raises(DataError, match=f"run `tfds build emnist/digits --data_dir={tmp_path}`"):
        load_images("emnist/digits", str(tmp_path), None, False, "fail")
    with pytest.raises(DataError, match="manual_dir should contain two files: ILSVRC2012_img_train.tar"):
        load_images("imagenet2012", str(tmp_path), None, False, "fail")


def test_without_a_network_a_download_fails_at_once(tmp_path, monkeypatch):
    def no_network(request, timeout):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr("urllib.request.urlopen", no_network)
    with pytest.raises(DataError, match="needs a network. .* Received: no answer from biometrics.nist.gov"):
        load_images("emnist/digits", str(tmp_path), None, True, "fail")


def test_archives_to_fetch_by_hand_are_asked_for(tmp_path):
    asked = f"Put them into {tmp_path}/downloads/manual, .* Received: "
    with pytest.raises(DataError, match=asked + "(AssertionError|no answer from)"):
        load_images("imagenet2012", str(tmp_path), None, True, "fail")
    (tmp_path / "downloads/manual").mkdir(parents=True, exist_ok=True)
    (tmp_path / "downloads/manual/another.tar").touch()  # no network is asked where something was fetched by hand
    with pytest.raises(DataError, match=asked + "NotFoundError"):
        load_images("imagenet2012", str(tmp_path), None, True, "fail")


def test_a_set_is_prepared_when_downloads_are_allowed(tmp_path):
    with pytest.raises(DataError, match="Received: nothing there"):
        load_images("small_colours", str(tmp_path), None, False, "fail")
    assert load_images("small_colours", str(tmp_path), None, True, "fail").train.size == TRAIN
    assert load_images("small_colours", str(tmp_path), None, False, "fail").train.size == TRAIN


def test_a_set_without_images_is_refused(tmp_path):
    with pytest.raises(
        DataError, match="must have an image of 8 bits a channel and a class label. Received: sentences"
    ):
        load_images("sentences", str(tmp_path), None, False, "fail")


def test_files_of_a_set_must_be_there_and_whole(root, tmp_path):
    shutil.copytree(root / "small_colours", tmp_path / "small_colours")
    file = sorted(tmp_path.rglob("*train.tfrecord*"))[1]
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(DataError, match="The files of a TFDS set must be complete; prepare .* again"):
        load_images("small_colours", str(tmp_path), None, False, "fail")
    file.unlink()
    with pytest.raises(DataError, match=f"Received: no {file}, and 0 more are missing"):
        load_images("small_colours", str(tmp_path), None, False, "fail")
