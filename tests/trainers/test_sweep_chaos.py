"""A sweep that is disturbed in every way ends as one that is not."""

import json
import sys

import pytest

from tests.trainers.chaos import ALL, EVENTS, GRID
from tests.trainers.helpers import records, status
from tests.trainers.nodes import isolated
from tests.trainers.tiny_sweep import values_of
from trainers.results.results_csv import read_results
from trainers.results.trials import finished_trials

pytestmark = pytest.mark.xdist_group("ray")
RUNS = len(ALL) * len(GRID["learning_rates"]) * len(GRID["warmups"])


def curves(folder):
    """The records of every run, by the name of its cell."""
    return {result.name: records(folder / "trials" / result.trial) for result in read_results(folder)}


@pytest.mark.slow
def test_killed_stopped_full_and_growing_a_sweep_loses_nothing_and_changes_no_bit(tmp_path):
    """24 runs, two nodes: kill -9 of a worker, a raylet, the driver, all; SIGSTOP; a full disk; another node; seeds."""
    told = json.loads(isolated(sys.executable, "-m", "tests.trainers.chaos", str(tmp_path), "1").splitlines()[-1])
    assert told["calm"] == 0
    assert told["done"], told
    assert set(told["happened"]) == {event for event in EVENTS if told["fillable"] or event != "fill"}
    calm, disturbed = tmp_path / "calm", tmp_path / "disturbed"
    assert len(finished_trials(disturbed)) == len(values_of(disturbed)) == RUNS == 24  # each of them once
    assert values_of(disturbed) == values_of(calm)
    assert curves(disturbed) == curves(calm)
    assert status(disturbed) == "done\n"
    assert len((disturbed / "results.csv").read_text().splitlines()) == 1 + RUNS
    assert (disturbed / "summary.csv").read_text() == (calm / "summary.csv").read_text()
    assert told["left"] == []
    if not told["fillable"]:
        pytest.skip("no tmpfs could be mounted: all but a full disk was tried")
