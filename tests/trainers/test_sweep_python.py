"""A sweep as a call in Python, and its table as a data frame."""

import importlib
import json

import numpy as np
import pandas
import pytest
import tensorflow as tf

from tests.trainers.tiny_sweep import SMALL, TASK
from trainers import sweep
from trainers.system.errors import ConfigError, IncompleteError
from trainers.tasks import CONFIGS, register

FLAGS = {**{name: value for name, value in SMALL.items() if name != "task"}, "threads": 0}


@pytest.fixture(autouse=True)
def _known_by_name():
    register(TASK)
    yield
    del CONFIGS[TASK.name]


def test_a_call_returns_the_table_and_the_file_reads_back_into_the_same(tmp_path):
    warmups = {"warmups": ["none", "linear"], "warmup_periods": [3, 10], "learning_rates": [1e-2]}
    table = sweep.run(TASK, tmp_path, **{**FLAGS, **warmups, "sweep": {"weight_decay": [0, 0.1]}})
    pandas.testing.assert_frame_equal(table, sweep.read(tmp_path))
    recorded = json.loads((tmp_path / "config.json").read_text())["resolved"]
    assert recorded == {"objective": "val_error", "direction": "min"}  # for reports on a task that they do not know
    assert len(table) == 3 * 2 * 2
    assert set(table.warmup) == {"none", "linear"}
    assert set(table.weight_decay) == {0.0, 0.1}
    assert table.warmup_period.isna().sum() == 4
    assert (table.error == "").all()
    for row in table.itertuples():
        stored = json.loads((tmp_path / "trials" / row.trial / "result.json").read_text())
        assert row.val_error == stored["objective"]
        assert row.seed == stored["values"]["seed"]
    assert table.seed.dtype == np.int64
    means = table.groupby(["learning_rate", "warmup"]).val_error.mean()
    assert means.notna().all()


def test_lists_may_be_ranges_arrays_and_axes_too(tmp_path):
    lists = {"seeds": range(1, 3), "learning_rates": np.array([1e-2]), "warmups": ("none",)}
    table = sweep.run(TASK, tmp_path, **{**FLAGS, **lists, "sweep": {"width": np.array([4, 16])}})
    assert sorted(zip(table.seed, table.width, strict=True)) == [(1, 4), (1, 16), (2, 4), (2, 16)]


def test_the_call_takes_a_name_of_a_task_and_only_its_flags(tmp_path):
    with pytest.raises(ConfigError, match="Flags must be those of the sweep and of its task. Received: 'rate'"):
        sweep.run(TASK.name, tmp_path / "run", **FLAGS, rate=1)
    with pytest.raises(ConfigError, match=r"Values of `sweep` must have no comma. Received: \['a,b'\]"):
        sweep.run(TASK.name, tmp_path / "run", **FLAGS, sweep={"init_from": ["a,b"]})
    with pytest.raises(ConfigError, match="--learning_rates must be a number > 0"):
        sweep.run(TASK.name, tmp_path / "run", **{**FLAGS, "learning_rates": [0.0]})
    tf.constant(0)  # from here on TensorFlow is at work, whichever tests have run before
    with pytest.raises(ConfigError, match="--threads and --logical_devices must be set before TensorFlow starts"):
        sweep.run(TASK.name, tmp_path / "run", **{**FLAGS, "threads": 7})
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_several_workers_run_from_a_process_in_which_tensorflow_and_ray_are_at_work(tmp_path):
    tf.constant(0)
    importlib.import_module("ray")  # reads the environment of this process
    flags = {**FLAGS, "threads": 1}
    table = sweep.run(TASK, tmp_path / "two", **flags, workers=2)
    again = sweep.run(TASK, tmp_path / "again", **{**flags, "seeds": [1]}, workers=2)  # another Ray in this process
    shared = table[table.seed == 1].reset_index(drop=True)
    pandas.testing.assert_frame_equal(shared.drop(columns="seconds"), again.drop(columns="seconds"))


def test_an_incomplete_sweep_is_an_error_and_what_there_is_can_be_read(tmp_path):
    with pytest.raises(IncompleteError, match="2 failed, 0 missing"):
        sweep.run(TASK, tmp_path, **{**FLAGS, "learning_rates": [1e-2]}, broken_seed=2)
    assert sweep.read(tmp_path).status.value_counts().to_dict() == {"done": 2, "failed": 2}
