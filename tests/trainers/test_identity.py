"""What changes a run's result is its identity; with anything else changed, the same folder goes on."""

import json

import numpy as np
import pytest

from tests.trainers.helpers import final_weights, records, run_tiny
from trainers.system.errors import ConfigError


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    run_tiny(folder, epochs=8)
    return folder


def test_a_longer_run_extends_a_shorter_one_to_the_bit(whole, tmp_path):
    run_tiny(tmp_path, epochs=4)
    np.testing.assert_array_equal(run_tiny(tmp_path, epochs=8), final_weights(whole))
    assert records(tmp_path) == records(whole)
    assert json.loads((tmp_path / "config.json").read_text())["config"]["epochs"] == 8


def test_records_and_checkpoints_at_other_steps_are_the_same_run(whole, tmp_path):
    run_tiny(tmp_path, epochs=4)
    other = {"log_every": 5, "checkpoint_every": 10, "checkpoint_minutes": 1.0, "save_models": True}
    np.testing.assert_array_equal(run_tiny(tmp_path, epochs=8, **other), final_weights(whole))


@pytest.mark.parametrize(
    ("options", "changed", "message"),
    [
        ({"decay": "cosine"}, {"epochs": 8}, "has epochs=4, not 8: --decay=cosine spans the whole run"),
        ({"average": 2}, {"epochs": 8}, "has epochs=4, not 8: --average takes the last checkpoints"),
        ({"average": 2}, {"checkpoint_every": 2}, "has checkpoint_every=4, not 2: --average takes the mean"),
        ({}, {"epochs": 2}, "must not be below what a run has reached, step 20. Received: 10 updates"),
        ({}, {"precision": "mixed_float16"}, "has precision='float32', not 'mixed_float16'"),
        ({}, {"rows": 240}, "has rows=200, not 240"),
    ],
)
def test_what_would_change_the_result_is_refused_with_the_reason(options, changed, message, tmp_path):
    run_tiny(tmp_path, **options)
    before = (tmp_path / "metrics.jsonl").read_text()
    with pytest.raises(ConfigError, match=message):
        run_tiny(tmp_path, **{**options, **changed})
    assert (tmp_path / "metrics.jsonl").read_text() == before


def test_other_data_are_refused_wherever_they_are(tmp_path):
    run_tiny(tmp_path)
    document = json.loads((tmp_path / "config.json").read_text())
    document["data"] = "0" * 32
    (tmp_path / "config.json").write_text(json.dumps(document))
    with pytest.raises(ConfigError, match="whose run used other data"):
        run_tiny(tmp_path)


def test_other_devices_are_said_to_change_the_last_bits(tmp_path, caplog):
    run_tiny(tmp_path)
    document = json.loads((tmp_path / "config.json").read_text())
    document["resolved"]["devices"]["intra_op_threads"] += 6
    (tmp_path / "config.json").write_text(json.dumps(document))
    run_tiny(tmp_path)
    assert "its last bits may differ" in caplog.text
    assert "intra_op_threads" in caplog.text
