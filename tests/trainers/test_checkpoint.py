"""Checkpoints that are not this run's, or cannot be read, are refused, and nothing is changed; their average."""

import errno
import json
import logging

import keras
import numpy as np
import pytest

from tests.trainers.helpers import final_weights, records, run_tiny, snapshot
from tests.trainers.tiny import Tiny
from trainers.engine.checkpoint import Checkpoints, variable_names
from trainers.system.errors import DataError


def damage(path):
    path.write_bytes(b"PK half a file")


def make_unreadable(path):
    path.unlink()
    path.mkdir()  # to read it is an OSError, for the owner of the machine too


@pytest.mark.parametrize("spoil", [damage, make_unreadable])
def test_a_run_none_of_whose_checkpoints_can_be_read_is_refused_and_left_alone(spoil, trained):
    paths = sorted((trained / "checkpoints").iterdir())
    for path in paths:
        spoil(path)
    before = snapshot(trained)
    with pytest.raises(DataError, match="must have one that can be read") as error:
        run_tiny(trained)
    assert all(str(path) in str(error.value) for path in paths)
    assert snapshot(trained) == before


def test_a_checkpoint_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    def write_half(file, **_):
        file.write(b"PK half a file")
        raise OSError(errno.ENOSPC, "No space left on device")

    checkpoints, saved = Checkpoints(tmp_path), [keras.Variable(np.zeros(2, "float32"))]
    checkpoints.save(1, saved, {})
    before = snapshot(tmp_path)
    monkeypatch.setattr(np, "savez", write_half)
    for step in (1, 2):
        with pytest.raises(OSError, match="No space left"):
            checkpoints.save(step, saved, {})
    assert snapshot(tmp_path) == before


def variables(**named):
    return [keras.Variable(value, name=name) for name, value in named.items()]


@pytest.mark.parametrize(
    ("others", "problem"),
    [
        (
            {"kernel": np.zeros(3, "float32"), "bias": np.zeros(2, "float32")},
            r"kernel \[2\] float32 instead of .*kernel \[3\]",
        ),
        ({"kernel": np.zeros(2, "float32"), "scale": np.zeros(2, "float32")}, "bias .* instead of scale"),
        ({"kernel": np.zeros(2, "float32"), "bias": np.zeros(2, "int32")}, "bias .* float32 instead of bias .* int32"),
        ({"kernel": np.zeros(2, "float32")}, "bias .* instead of nothing"),
    ],
    ids=["shape", "name", "dtype", "number"],
)
def test_a_checkpoint_of_other_variables_is_refused_and_none_is_assigned(others, problem, tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, variables(kernel=np.ones(2, "float32"), bias=np.ones(2, "float32")), {})
    others = variables(**others)
    with pytest.raises(DataError, match=f"must fit the model and the optimizer.*{problem}"):
        checkpoints.restore(others)
    assert all(not np.any(variable.numpy()) for variable in others)


def test_names_do_not_depend_on_how_many_models_a_process_has_made():
    names = [variable_names(keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)]).variables) for _ in range(3)]
    assert names[0] == names[1] == names[2] == ["sequential/dense/kernel", "sequential/dense/bias"]


def test_leftovers_of_killed_writes_are_removed(trained):
    names = (".best.tmp.keras", "tmpa1b2c3d4", "checkpoints/.step-000000000004.npz.77.tmp")
    left = [trained / name for name in names]
    for path in left:
        path.write_bytes(b"half a file")
    (trained / "notes.txt").write_text("a user's own")
    run_tiny(trained)
    assert not any(path.exists() for path in left)
    assert (trained / "notes.txt").exists()


def stored_weights(folder):
    """The weights in every checkpoint of a tiny run, which come first: two matrices with their biases."""
    rows = []
    for path in sorted((folder / "checkpoints").glob("step-*.npz")):
        with np.load(path) as stored:
            rows.append(np.concatenate([np.ravel(stored[f"{number:05d}"]) for number in range(4)]))
    return rows


@pytest.fixture
def averaged(finished):
    return finished(average=3)


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
