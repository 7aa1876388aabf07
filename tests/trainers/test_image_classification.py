"""The image trainer as a user runs it."""

import json
import os
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.trainers.helpers import ROOT, finish, program, records, status
from tests.trainers.pictures import write_idx_folder, write_image
from trainers.engine.flags import make_config
from trainers.engine.run import train
from trainers.system.errors import ConfigError, DataError
from trainers.tasks.images.config import ImageConfig
from trainers.tasks.images.task import ImageClassification

MODULE = "trainers.image_classification"
IMAGENETTE = ROOT.parent / "shared/data/imagenette"


def run(folder, **options):
    values = {"output_dir": str(folder), "progress": False, **options}
    return train(ImageClassification(), make_config(ImageConfig, values))


def write_cats_and_dogs(folder, train_images=8, validation_images=2, size=230):
    """Random JPEGs of two classes, in the layout of TFDS' ImageFolder."""
    generator = np.random.default_rng(0)
    for split, count in (("train", train_images), ("val", validation_images)):
        for name in ("cat", "dog"):
            for number in range(count):
                pixels = generator.integers(0, 255, (size + number, size, 3)).astype("uint8")
                write_image(folder / split / name / f"{number}.jpg", pixels, tf.io.encode_jpeg)
    return folder


@pytest.mark.slow
def test_the_digits_network_errs_on_less_than_a_tenth(tmp_path):
    output, _ = finish(program(MODULE, "--flagfile=configs/embedded/digits.flags", f"--output_dir={tmp_path}/run"))
    assert status(tmp_path / "run") == "done\n"
    last = records(tmp_path / "run")[-1]
    assert last["val_error"] < 0.1
    assert last["val_top5_error"] < 0.02
    assert "val_error" in output


HALF_RESNET = {"precision": "mixed_float16", "accumulate": 2, "model": "small_resnet"}


@pytest.mark.parametrize("options", [{}, pytest.param(HALF_RESNET, marks=pytest.mark.slow)])
def test_xla_trains_the_same_network(tmp_path, options):
    """In half precision and with batch normalisation too, to what these allow."""
    losses = {}
    for xla in (False, True):
        run(tmp_path / str(xla), xla=xla, steps=6, batch_size=64, log_every=3, checkpoint_every=0, **options)
        losses[xla] = [record["loss"] for record in records(tmp_path / str(xla))]
    np.testing.assert_allclose(losses[True], losses[False], rtol=2e-3 if options else 1e-6)


@pytest.mark.slow
def test_photographs_of_ones_own_train_and_a_truncated_one_is_skipped_or_fatal(tmp_path, caplog):
    folder = write_cats_and_dogs(tmp_path / "images", size=40)
    options = {"dataset": "folder", "data_dir": str(folder), "image_size": 32, "model": "small_resnet"}
    options |= {"batch_size": 4, "epochs": 1, "log_every": 1, "checkpoint_every": 0}
    metrics = run(tmp_path / "run", **options)
    assert set(metrics) == {"val_loss", "val_error", "val_top5_error", "best_step"}
    bad = folder / "train/cat/0.jpg"
    bad.write_bytes(bad.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"complete JPEG or PNG.*Received: .*train/cat/0\.jpg"):
        run(tmp_path / "fatal", **options)
    assert not (tmp_path / "fatal").exists()
    run(tmp_path / "skipped", bad_images="skip", **options)
    assert "0.jpg" in caplog.text


@pytest.mark.slow
def test_a_fifo_among_the_images_ends_the_program_with_one_line(tmp_path):
    folder = write_cats_and_dogs(tmp_path / "images", size=40)
    os.mkfifo(folder / "train/cat/fifo.jpg")
    flags = ["--dataset=folder", f"--data_dir={folder}", f"--output_dir={tmp_path}/run"]
    _, errors = finish(program(MODULE, *flags), code=2)
    said = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert len(said) == 1
    assert said[0].endswith(f"Received: {folder}/train/cat/fifo.jpg and 0 more")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_run_says_what_is_done_with_its_images_and_what_the_best_model_is_chosen_on(tmp_path):
    write_idx_folder(tmp_path / "data")
    flags = [f"--data_dir={tmp_path}/data", f"--output_dir={tmp_path}/run", "--steps=2", "--batch_size=8"]
    output, _ = finish(program(MODULE, "--dataset=folder", "--standardize", "--standardize_by=0.5,0.25", *flags))
    notes = [
        "images of 12x10x1 in memory; pixels standardised by mean 0.5 and deviation 0.25 of [0, 1]",
        "the best model is chosen on the test split: there is no other for validation",
    ]
    assert [f"data: {note}" for note in notes] == output.splitlines()[1:3]
    resolved = json.loads((tmp_path / "run/config.json").read_text())["resolved"]
    assert (resolved["data_notes"], resolved["test_examples"]) == (notes, 0)
    saved = keras.models.load_model(tmp_path / "run/last.keras").get_layer("scaled").get_config()
    assert (saved["mean"], saved["variance"]) == (127.5, 63.75**2)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"model": "small_resnet", "activation": "tanh"},
            ConfigError,
            "--activation is for --model=mlp, not for",
        ),
        ({"activation": "gelu"}, ConfigError, "--activation must be one of relu, tanh. Received: 'gelu'"),
        ({"standardize_by": [0.1, 0.3]}, ConfigError, "--standardize_by needs --standardize. Received: "),
        ({"standardize": True, "standardize_by": [0.1]}, ConfigError, "must be a mean and a deviation > 0"),
        ({"standardize": True, "standardize_by": [0.1, 0.0]}, ConfigError, "must be a mean and a deviation > 0"),
        (
            {"standardize": True, "standardize_by": ["nan", 1]},
            ConfigError,
            "--standardize_by must be a number. Received:",
        ),
        ({"model": "vgg"}, ConfigError, "--model must be one of mlp, small_resnet, resnet50. Received: 'vgg'"),
        ({"model": "resnet50"}, ConfigError, "resnet50 must be at least 32 pixels"),
        ({"dataset": "folder"}, DataError, "needs `data_dir`"),
        ({"dataset": "folder", "data_dir": "/nowhere"}, DataError, "must be a folder that can be read. Received: /now"),
        ({"dataset": "no_such_set"}, DataError, "must be digits, folder, or the name of a TFDS image set"),
        ({"dataset": "emnist/digits", "data_dir": "/nowhere"}, DataError, "must be on disk: pass --download"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(options, error, message, tmp_path):
    with pytest.raises(error, match=message):
        run(tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.xdist_group("large")
def test_the_papers_imagenet_experiment_builds_at_full_size_and_takes_steps(tmp_path):
    # Real photographs where they lie beside the checkout.
    images = IMAGENETTE if IMAGENETTE.is_dir() else write_cats_and_dogs(tmp_path / "images")
    flags = ["--dataset=folder", f"--data_dir={images}", "--strategy=mirrored", "--logical_devices=2"]
    small = ["--batch_size=4", "--steps=4", "--log_every=1", f"--output_dir={tmp_path}/run"]
    finish(program(MODULE, "--flagfile=configs/paper/imagenet_resnet50.flags", *flags, *small), seconds=900)
    last = records(tmp_path / "run")[-1]
    assert (last["step"], last["updates"]) == (4, 4)
    assert np.isfinite(last["loss"])
    config = json.loads((tmp_path / "run/config.json").read_text())["config"]
    assert (config["epochs"], config["weight_decay"], config["decay_epochs"]) == (90, 1e-4, [30, 60])


@pytest.mark.slow
def test_the_three_methods_of_the_paper_agree_on_a_residual_network(tmp_path):
    errors = {}
    for warmup in ("untuned_linear", "untuned_exponential", "radam"):
        flags = [
            "--flagfile=configs/embedded/digits_resnet.flags",
            f"--warmup={warmup}",
            f"--output_dir={tmp_path}/run",
        ]
        finish(program(MODULE, *flags))
        errors[warmup] = records(tmp_path / "run")[-1]["val_error"]
        shutil.rmtree(tmp_path / "run")
    assert max(errors.values()) < 0.03
    # A thousand validation images: three standard deviations of a difference at 2.5 %.
    assert max(errors.values()) - min(errors.values()) < 0.02
