"""A run that learns nothing any more says so, whatever its precision and however often it records."""

import re

import pytest

from tests.trainers.helpers import finish, program, records, run_tiny, status, tiny_flags
from trainers.system.errors import DivergedError

HALF = {"precision": "mixed_float16"}


@pytest.mark.parametrize("log_every", [1, 50])
def test_half_precision_that_diverges_ends_whatever_the_records_are(log_every, tmp_path):
    options = {**HALF, "learning_rate": 1e6, "warmup": "none", "checkpoint_every": 0, "epochs": 20}
    with pytest.raises(DivergedError, match="no update since step [0-9]+ of") as error:
        run_tiny(tmp_path, log_every=log_every, **options)
    assert "at a loss scale of" in str(error.value)
    assert "--learning_rate" in str(error.value)
    assert status(tmp_path).startswith("diverged: no update since step")
    assert not re.search("NaN|Infinity", (tmp_path / "metrics.jsonl").read_text())
    assert not (tmp_path / "results.json").exists()


def test_the_count_of_bad_steps_survives_a_restart(tmp_path):
    options = {**HALF, "all_bad": True, "log_every": 1, "checkpoint_every": 5, "epochs": 20}
    with pytest.raises(DivergedError, match="no update since step 0 of 30"):
        run_tiny(tmp_path, **options)
    with pytest.raises(DivergedError, match="no update since step 0 of 30"):
        run_tiny(tmp_path, **options)  # from step 25


def test_a_run_without_an_update_is_not_done_however_short_it_is(tmp_path):
    _, errors = finish(program("tests.trainers.tiny", *tiny_flags(tmp_path, **HALF, all_bad=True)), code=3)
    assert "diverged: no update in the whole run: losses or gradients are not finite, at a loss scale of" in errors
    lines = records(tmp_path)
    assert [line["loss"] for line in lines] == [None] * len(lines)
    assert lines[-1]["skipped_updates"] == 20
    assert lines[-1]["gradient_norm"] is None
    assert lines[-1]["loss_scale"] == 2.0**15 / 2**20
