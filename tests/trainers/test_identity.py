"""What changes a run's result is its identity; with anything else changed, the same folder goes on."""

import json
import shutil

import numpy as np
import pytest

from tests.trainers.helpers import final_weights, records, run_tiny, tiny_config
from trainers.engine.folder import RunFolder
from trainers.system.errors import ConfigError, DataError


def test_a_longer_run_extends_a_shorter_one_to_the_bit(trained, longer):
    np.testing.assert_array_equal(run_tiny(trained, epochs=8), final_weights(longer))
    assert records(trained) == records(longer)
    assert json.loads((trained / "config.json").read_text())["config"]["epochs"] == 8


def test_records_and_checkpoints_at_other_steps_are_the_same_run(trained, longer):
    other = {"log_every": 5, "checkpoint_every": 10, "checkpoint_minutes": 1.0, "save_models": True}
    np.testing.assert_array_equal(run_tiny(trained, epochs=8, **other), final_weights(longer))


@pytest.mark.parametrize(
    ("options", "changed", "message"),
    [
        ({"decay": "cosine"}, {"epochs": 8}, "has epochs=4, not 8: --decay=cosine spans the whole run"),
        ({"warmup": "linear", "warmup_share": 0.1}, {"epochs": 8}, "not 8: --warmup_share is a share of the whole run"),
        ({"average": 2}, {"epochs": 8}, "has epochs=4, not 8: --average takes the last checkpoints"),
        ({"average": 2}, {"checkpoint_every": 2}, "has checkpoint_every=4, not 2: --average takes the mean"),
        ({}, {"seed": 2}, "--output_dir must be new or hold this run. Received: .*, whose run has seed=1, not 2"),
        ({}, {"rows": 240}, "has rows=200, not 240"),
    ],
)
def test_what_would_change_the_result_is_refused_with_the_reason(options, changed, message, tmp_path):
    def folder(**more):
        return RunFolder(tiny_config(tmp_path, **options, **more), "tiny")

    with folder().working():
        pass
    before = (tmp_path / "config.json").read_text()
    with pytest.raises(ConfigError, match=message):
        folder(**changed)
    assert (tmp_path / "config.json").read_text() == before


def test_fewer_updates_than_a_run_has_made_are_refused(trained):
    before = (trained / "metrics.jsonl").read_text()
    with pytest.raises(ConfigError, match=r"must not be below what a run has reached, step 20\. Received: 10 updates"):
        run_tiny(trained, epochs=2)
    assert (trained / "metrics.jsonl").read_text() == before


def test_checkpoints_of_another_run_are_refused(trained, tmp_path):
    run_tiny(tmp_path / "other", seed=2)
    shutil.rmtree(trained / "checkpoints")
    shutil.copytree(tmp_path / "other/checkpoints", trained / "checkpoints")
    with pytest.raises(
        DataError, match="A checkpoint must be of the run in whose folder it is. Received: .* of another"
    ):
        run_tiny(trained, epochs=8)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [],
        lambda lines: lines[:-2],
        lambda lines: [lines[1], *lines[1:]],
        lambda lines: [lines[0][:9]],
    ],
    ids=["all", "the last", "foreign", "cut"],
)
def test_records_that_are_lost_or_foreign_are_named_and_the_run_goes_on(trained, longer, change, caplog):
    lines = (trained / "metrics.jsonl").read_text().splitlines(keepends=True)
    (trained / "metrics.jsonl").write_text("".join(change(lines)))
    np.testing.assert_array_equal(run_tiny(trained, epochs=8), final_weights(longer))
    assert f"metrics.jsonl must have the run's own {len(lines)} records up to step 20" in caplog.text
    assert records(trained)[-1] == records(longer)[-1]  # and every line can be read


def test_a_best_model_that_was_cut_is_refused(tmp_path):
    run_tiny(tmp_path, epochs=1, save_models=True)
    whole = (tmp_path / "best.keras").read_bytes()
    (tmp_path / "best.keras").write_bytes(whole[:-100])
    with pytest.raises(DataError, match="A run needs the best model that it has saved.*best.keras, which is damaged"):
        run_tiny(tmp_path, epochs=2, save_models=True)


def test_other_data_are_refused_wherever_they_are(trained):
    document = json.loads((trained / "config.json").read_text())
    document["data"] = "0" * 32
    (trained / "config.json").write_text(json.dumps(document))
    with pytest.raises(ConfigError, match="whose run used other data"):
        run_tiny(trained)


def test_other_devices_are_said_to_change_the_last_bits(trained, caplog):
    document = json.loads((trained / "config.json").read_text())
    document["resolved"]["devices"]["intra_op_threads"] += 6
    (trained / "config.json").write_text(json.dumps(document))
    run_tiny(trained)
    assert "its last bits may differ" in caplog.text
    assert "intra_op_threads" in caplog.text
