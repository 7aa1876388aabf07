"""Killed at any moment and started again, a run ends as if nothing had happened: to the bit."""

import os
import signal

import numpy as np
import pytest

from tests.trainers.helpers import (
    final_weights,
    finish,
    program,
    records,
    run_tiny,
    status,
    stopped_at_a_checkpoint,
    stored_checkpoint,
    tiny_flags,
)
from tests.trainers.kills import PHASES, stop_again_and_again

# What may differ by replica: unsynchronised statistics, masks, overflows.
TWO_REPLICAS = {"strategy": "mirrored", "logical_devices": 2, "normalise": True, "synchronised": False, "dropout": 0.3}
HALF = {"precision": "mixed_float16"}


def assert_same_run(ours, theirs):
    np.testing.assert_array_equal(final_weights(ours), final_weights(theirs))
    assert records(ours) == records(theirs)
    (our_header, ours), (their_header, theirs) = stored_checkpoint(ours), stored_checkpoint(theirs)
    assert our_header == their_header
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():  # weights, moments, counters, loss scale
        np.testing.assert_array_equal(array, theirs[name])


@pytest.mark.parametrize(
    ("options", "kills"),
    [
        ({"dropout": 0.3}, ["training", "checkpoint"]),
        pytest.param({"dropout": 0.3, **HALF, "bad_row": 3}, 5 * [*PHASES], marks=pytest.mark.slow),
        pytest.param(TWO_REPLICAS, PHASES, marks=pytest.mark.slow),
        pytest.param({**TWO_REPLICAS, **HALF, "accumulate": 2}, PHASES, marks=pytest.mark.slow),
    ],
    ids=["one, 2", "one, half, 20", "two replicas, 4", "two replicas, half, accumulated, 4"],
)
def test_a_run_killed_in_every_phase_ends_bit_identical(options, kills, tmp_path):
    options = {"epochs": min(30, 3 * len(kills)), "learning_rate": 1e-3, **options}
    stops = stop_again_and_again(tmp_path / "killed", kills, **options)
    assert {stop["hit"] for stop in stops} >= {*kills}
    assert all(stop["code"] == -signal.SIGKILL for stop in stops if stop["hit"])
    finish(program("tests.trainers.tiny", *tiny_flags(tmp_path / "whole", **options)))
    assert_same_run(tmp_path / "killed", tmp_path / "whole")
    assert status(tmp_path / "killed") == "done\n"
    assert not list((tmp_path / "killed").rglob(".*tmp*"))  # what killed writes have left is gone


@pytest.mark.slow
def test_sigterm_at_a_random_moment_loses_no_finished_step(tmp_path):
    # No checkpoint is planned before the end, so what is there is what the signal left.
    options = {"epochs": 300, "log_every": 1500, "checkpoint_every": 1500, "evaluate_every": 40, "dropout": 0.3}
    stops = stop_again_and_again(tmp_path / "stopped", ["anywhere"] * 20, signal.SIGTERM, seconds=0.1, **options)
    assert len([stop for stop in stops if stop["code"] == 128 + signal.SIGTERM]) >= 19
    for stop in stops:
        assert stop["checkpoint"] == stop["finished"] > 0
    finish(program("tests.trainers.tiny", *tiny_flags(tmp_path / "whole", **options)))
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")


TRAINERS = {
    "image_classification": {"model": "small_resnet", "batch_size": 64},
    "language_modeling": {"batch_size": 16, "context": 32, "width": 32, "inner": 64, "baselines": False},
    "machine_translation": {"pairs": 400, "max_tokens": 512, "width": 32, "inner": 64, "layers": 1},
}


# `make test-kills` asks for five runs with four kills each in every setting, which takes half an hour.
SEEDS = range(1, 1 + int(os.environ.get("KILLED_RUNS", "1")))
thorough = pytest.mark.skipif(len(SEEDS) == 1, reason="only `make test-kills` takes the time for it")
TWO = {"strategy": "mirrored", "logical_devices": 2}


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("task", TRAINERS)
@pytest.mark.parametrize(
    "options",
    [{}, {**HALF, **TWO}, pytest.param(HALF, marks=thorough), pytest.param(TWO, marks=thorough)],
    ids=["one", "half, two", "half", "two"],
)
def test_every_trainer_killed_in_every_phase_ends_bit_identical(task, options, seed, tmp_path):
    every = {"steps": 24, "log_every": 2, "checkpoint_every": 4, "progress": False, "beta_2": 0.9, "seed": seed}
    options = {**TRAINERS[task], **every, **options}
    # At once when a phase begins: of these short runs it may last milliseconds.
    phases = ["training", "checkpoint", "validation", "save"]
    stops = stop_again_and_again(tmp_path / "killed", phases, task=task, seconds=0.0, **options)
    assert {stop["hit"] for stop in stops} >= {*PHASES}
    assert len([stop for stop in stops if stop["code"] == -signal.SIGKILL]) == len(phases)
    stop_again_and_again(tmp_path / "whole", [], task=task, **options)
    assert_same_run(tmp_path / "killed", tmp_path / "whole")
    for name in ("results.json", "vocabulary.txt", "subwords.model", "test.translations.txt"):
        killed, whole = tmp_path / "killed" / name, tmp_path / "whole" / name
        assert killed.exists() == whole.exists()
        assert not whole.exists() or killed.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    "options", [{**HALF, "bad_row": 3}, {"ema": 0.9}, {"init_from": "{whole}"}], ids=["loss scale", "average", "begin"]
)
def test_a_resumed_run_has_again_what_is_no_weight(options, whole, tmp_path):
    """Every epoch halves the loss scale; the weights to begin with do not come again."""
    options = {name: value.format(whole=whole) if name == "init_from" else value for name, value in options.items()}
    run_tiny(tmp_path / "whole", **options)
    with stopped_at_a_checkpoint():
        run_tiny(tmp_path / "stopped", **options)
    run_tiny(tmp_path / "stopped", **options)
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")


def test_a_damaged_checkpoint_is_reported_and_the_one_before_it_used(whole, tmp_path, caplog):
    with stopped_at_a_checkpoint(3):
        run_tiny(tmp_path / "stopped")
    assert status(tmp_path / "stopped") == "stopped\n"
    newest = sorted((tmp_path / "stopped/checkpoints").glob("*.npz"))[-1]
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 255
    newest.write_bytes(data)
    run_tiny(tmp_path / "stopped")
    assert "is damaged" in caplog.text
    assert newest.name in caplog.text
    assert_same_run(tmp_path / "stopped", whole)


def test_half_a_checkpoint_under_its_temporary_name_is_never_loaded(whole, tmp_path):
    with stopped_at_a_checkpoint(2):
        run_tiny(tmp_path / "stopped")
    (tmp_path / "stopped/checkpoints/.step-000000009999.npz.1.tmp").write_bytes(b"PK half a file")
    with (tmp_path / "stopped/metrics.jsonl").open("a") as file:
        file.write('{"step": 13, "los')
    run_tiny(tmp_path / "stopped")
    assert_same_run(tmp_path / "stopped", whole)


def test_only_two_checkpoints_are_kept(whole):
    assert len(list((whole / "checkpoints").iterdir())) == 2


def test_a_finished_run_is_not_run_again(whole, trained):
    before = (trained / "metrics.jsonl").read_text()
    np.testing.assert_array_equal(run_tiny(trained), final_weights(whole))
    assert (trained / "metrics.jsonl").read_text() == before
