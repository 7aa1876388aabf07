"""The mean of the last checkpoints as a run's result."""

import json
import logging

import keras
import numpy as np
import pytest

from tests.trainers.helpers import final_weights, records, run_tiny
from tests.trainers.tiny import Tiny
from trainers.engine.checkpoint import Checkpoints


def stored_weights(folder):
    """The weights in every checkpoint of a tiny run, which come first: two matrices with their biases."""
    rows = []
    for path in sorted((folder / "checkpoints").glob("step-*.npz")):
        with np.load(path) as stored:
            rows.append(np.concatenate([np.ravel(stored[f"{number:05d}"]) for number in range(4)]))
    return rows


@pytest.fixture(scope="module")
def averaged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("averaged")
    run_tiny(folder, average=3)
    return folder


def test_the_averaged_model_is_the_mean_of_the_last_checkpoints(averaged):
    stored = stored_weights(averaged)
    assert len(stored) == 3
    mean = np.mean(stored, axis=0, dtype="float64").astype("float32")
    np.testing.assert_array_equal(final_weights(averaged, "average"), mean)
    np.testing.assert_array_equal(final_weights(averaged, "last"), stored[-1])
    assert np.abs(final_weights(averaged, "average") - stored[-1]).max() > 1e-4


def test_the_results_are_those_of_the_averaged_model(averaged):
    results = json.loads((averaged / "results.json").read_text())
    model = keras.models.load_model(averaged / "average.keras")
    config = Tiny.config_class()
    validation = Tiny().load(config).validation
    losses = Tiny().loss(config, validation.targets, model(validation.inputs)).numpy()
    assert results["val_loss"] == pytest.approx(losses.mean(), rel=1e-6)
    assert results["val_loss"] != pytest.approx(records(averaged)[-1]["val_loss"], rel=1e-6)


def test_a_finished_run_averages_the_same_again(averaged):
    before = (averaged / "results.json").read_text()
    run_tiny(averaged, average=3)
    assert (averaged / "results.json").read_text() == before


def test_a_damaged_checkpoint_is_left_out_with_a_word(tmp_path, caplog):
    variables = [keras.Variable(np.zeros(2, "float32"))]
    checkpoints = Checkpoints(tmp_path, keep=3)
    for step, value in enumerate((1.0, 3.0, 5.0)):
        variables[0].assign([value, 2 * value])
        checkpoints.save(step, variables, {})
    (tmp_path / "step-000000000001.npz").write_bytes(b"PK half a file")
    with caplog.at_level(logging.WARNING):
        checkpoints.average(3, variables)
    np.testing.assert_array_equal(variables[0].numpy(), [3.0, 6.0])
    assert "step-000000000001.npz is damaged" in caplog.text
