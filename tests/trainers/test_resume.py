"""Killed at any moment and started again, a run ends as if nothing had happened: to the bit."""

import json
import random
import time

import numpy as np
import pytest

from tests.trainers.helpers import final_weights, finish, program, records, run_tiny, status, tiny_flags
from trainers.engine.checkpoint import Checkpoints

OPTIONS = {"dropout": 0.3, "epochs": 60, "learning_rate": 1e-3}


def checkpoint_arrays(folder):
    path = sorted((folder / "checkpoints").glob("step-*.npz"))[-1]
    with np.load(path) as stored:
        return {name: stored[name] for name in stored.files}


def assert_same_run(ours, theirs):
    np.testing.assert_array_equal(final_weights(ours), final_weights(theirs))
    assert records(ours) == records(theirs)
    ours, theirs = checkpoint_arrays(ours), checkpoint_arrays(theirs)
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():  # weights, moments, counters, loss scale
        np.testing.assert_array_equal(array, theirs[name])


def kill_and_restart(folder, kills, **options):
    generator = random.Random(0)
    for _ in range(kills):
        process = program("tests.trainers.tiny", *tiny_flags(folder, **options))
        while not (folder / "metrics.jsonl").exists() and process.poll() is None:
            time.sleep(0.02)
        time.sleep(generator.uniform(0.05, 0.8))
        process.kill()
        process.communicate()
    finish(program("tests.trainers.tiny", *tiny_flags(folder, **options)))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.slow),
        {"precision": "mixed_float16", "strategy": "mirrored", "logical_devices": 2, "bad_row": 3},
    ],
)
def test_a_killed_run_ends_bit_identical(options, tmp_path):
    options = {**OPTIONS, **options}
    finish(program("tests.trainers.tiny", *tiny_flags(tmp_path / "whole", **options)))
    kill_and_restart(tmp_path / "killed", kills=3, **options)
    assert_same_run(tmp_path / "killed", tmp_path / "whole")
    assert status(tmp_path / "killed") == "done\n"


class StoppedError(Exception):
    pass


@pytest.fixture
def stop_after(monkeypatch):
    """Makes a run stop right after its nth checkpoint."""

    def arrange(count):
        save = Checkpoints.save
        calls = []

        def save_and_stop(self, *arguments):
            save(self, *arguments)
            calls.append(1)
            if len(calls) == count:
                raise StoppedError

        monkeypatch.setattr(Checkpoints, "save", save_and_stop)

    return arrange


def test_a_damaged_checkpoint_is_reported_and_the_one_before_it_used(tmp_path, stop_after, caplog):
    run_tiny(tmp_path / "whole")
    stop_after(3)
    with pytest.raises(StoppedError):
        run_tiny(tmp_path / "stopped")
    assert status(tmp_path / "stopped").startswith("failed: StoppedError")
    newest = sorted((tmp_path / "stopped/checkpoints").glob("*.npz"))[-1]
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 255
    newest.write_bytes(data)
    run_tiny(tmp_path / "stopped")
    assert "is damaged" in caplog.text
    assert newest.name in caplog.text
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")


def test_half_a_checkpoint_under_its_temporary_name_is_never_loaded(tmp_path, stop_after):
    run_tiny(tmp_path / "whole")
    stop_after(2)
    with pytest.raises(StoppedError):
        run_tiny(tmp_path / "stopped")
    (tmp_path / "stopped/checkpoints/.step-000000009999.npz.1.tmp").write_bytes(b"PK half a file")
    with (tmp_path / "stopped/metrics.jsonl").open("a") as file:
        file.write('{"step": 13, "los')
    run_tiny(tmp_path / "stopped")
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")


def test_only_two_checkpoints_are_kept(tmp_path):
    run_tiny(tmp_path)
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2


def test_a_finished_run_is_not_run_again(tmp_path):
    weights = run_tiny(tmp_path)
    before = (tmp_path / "metrics.jsonl").read_text()
    np.testing.assert_array_equal(run_tiny(tmp_path), weights)
    assert (tmp_path / "metrics.jsonl").read_text() == before


def test_config_of_another_run_reproduces_it(tmp_path):
    finish(program("tests.trainers.tiny", *tiny_flags(tmp_path / "a", dropout=0.3, seed=5)))
    again = [f"--config={tmp_path}/a/config.json", f"--output_dir={tmp_path}/b", "--noprogress"]
    finish(program("tests.trainers.tiny", *again))
    assert_same_run(tmp_path / "a", tmp_path / "b")
    stored = [json.loads((tmp_path / name / "config.json").read_text())["config"] for name in "ab"]
    assert stored[0] == {**stored[1], "output_dir": str(tmp_path / "a")}
