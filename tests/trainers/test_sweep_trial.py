"""A trial in its folder: begun, resumed, taken over, and its result written once."""

import concurrent.futures
import json

import pytest

from tests.trainers.helpers import snapshot, stopped_at_a_checkpoint, wait_for
from tests.trainers.sweeps import CELLS, result_of
from tests.trainers.tiny_sweep import settings
from trainers.results.results_csv import read_results
from trainers.sweeps import trial
from trainers.sweeps.trial import LostTrialError, Trials
from trainers.system.access import InUseError


def test_a_late_worker_cannot_overwrite_what_another_has_taken_over(tmp_path):
    """It hangs in the middle of its run, and wakes up when the run has been done by another."""
    cell, gate = CELLS[0], tmp_path / "gate"
    late = Trials(settings(tmp_path, waiting_seed=1, gate=str(gate)))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        hanging = pool.submit(late.run, cell.name, cell.values)
        wait_for((tmp_path / "trials" / cell.name / "status").exists)
        with pytest.raises(InUseError):
            Trials(settings(tmp_path)).run(cell.name, cell.values)
        result = Trials(settings(tmp_path)).run(cell.name, cell.values, take_over=True)
        before = snapshot(tmp_path / "trials" / f"{cell.name}@2")
        gate.touch()
        with pytest.raises(LostTrialError):
            hanging.result(timeout=60)
    assert snapshot(tmp_path / "trials" / f"{cell.name}@2") == before
    assert read_results(tmp_path) == [result]
    assert (result.status, result.name) == ("done", cell.name)
    assert Trials(settings(tmp_path)).run(cell.name, cell.values) == result


def test_a_result_is_written_once(tmp_path, monkeypatch):
    """A second one, of a worker whose first was thought lost, is not taken."""
    cell = CELLS[0]
    first = Trials(settings(tmp_path)).run(cell.name, cell.values)
    assert trial._write_once(tmp_path / "trials" / cell.name, result_of(cell)) == first
    assert read_results(tmp_path) == [first]
    assert not list((tmp_path / "trials" / cell.name).glob(".*.tmp"))


def test_a_trial_that_diverges_has_a_result_without_a_value(tmp_path):
    cell, trials = CELLS[0], Trials(settings(tmp_path, all_bad=True))
    result = trials.run(cell.name, cell.values)
    assert (result.status, result.objective) == ("diverged", None)
    assert result.error.startswith("the loss was not finite")
    assert read_results(tmp_path) == [result]


def test_a_trial_that_makes_progress_may_be_killed_any_number_of_times(tmp_path):
    cell, trials = CELLS[0], Trials(settings(tmp_path))
    folder = tmp_path / "trials" / cell.name
    with stopped_at_a_checkpoint():
        trials.run(cell.name, cell.values)
    attempts = folder / trial.ATTEMPTS
    attempts.write_text(json.dumps({"count": 3, "step": 0}))  # it has come to step 2 since
    assert trials.run(cell.name, cell.values).status == "done"
    (folder / "result.json").unlink()
    attempts.write_text(json.dumps({"count": 3, "step": 6}))
    failed = trials.run(cell.name, cell.values)
    assert (failed.status, failed.error) == ("failed", "ended its process 3 times")
    assert trials.run(cell.name, cell.values).status == "done"  # the next start tries it again
    for damaged in ("", "[]", '{"count": null, "step": 6}'):
        (folder / "result.json").unlink()
        attempts.write_text(damaged)
        assert trials.run(cell.name, cell.values).status == "done"
