"""Sweeps that grow, axes of any kind, and runs that fail: nothing passes for done that is not."""

import json
import os
import pathlib
import re
import shutil
import signal
import time

import numpy as np
import pytest

from tests.trainers.helpers import final_weights, finish, status, stopped_at_a_checkpoint
from tests.trainers.sweeps import csv_rows
from tests.trainers.tiny_sweep import TASK, settings, start, values_of
from trainers.engine.program import parse_arguments
from trainers.engine.run import train
from trainers.evidence.summary import Tables
from trainers.results.results_csv import read_results
from trainers.sweep import sweep
from trainers.sweeps import trial
from trainers.sweeps.space import grid, trial_config
from trainers.sweeps.sweep import SweepRun
from trainers.system.access import locked
from trainers.system.errors import ConfigError, DataError, IncompleteError

ONE = {"learning_rates": (1e-2,), "warmups": ("none",), "seeds": (1,)}


def rows(folder):
    return csv_rows((folder / "results.csv").read_text())


def count_runs(monkeypatch):
    """The names of the trials that are run from here on."""
    ran, run_cell = [], trial.run_cell

    def counting(task, config, *arguments):
        ran.append(pathlib.Path(config.output_dir).name)
        return run_cell(task, config, *arguments)

    monkeypatch.setattr(trial, "run_cell", counting)
    return ran


@pytest.mark.slow
def test_rates_betas_warmups_periods_and_seeds_can_be_added_and_finished_runs_are_kept(tmp_path, monkeypatch):
    sweep(settings(tmp_path, **ONE))
    first = values_of(tmp_path)
    ran = count_runs(monkeypatch)
    for more, count in (
        ({"seeds": ("1-3",)}, 2),
        ({"learning_rates": (1e-2, 1e-3)}, 1),
        ({"beta_2s": (0.99, 0.9)}, 1),
        ({"warmups": ("none", "linear"), "warmup_periods": (3, 10)}, 2),
        ({"warmups": ("none", "linear"), "warmup_shares": (0.25, 1)}, 2),
        ({"sweep": ("weight_decay=0,0.1",)}, 1),
    ):
        before = len(ran)
        sweep(settings(tmp_path, **{**ONE, **more}))
        assert len(ran) - before == count, more
    assert len(set(ran)) == len(ran) == 9
    assert len(rows(tmp_path)) == 10
    assert values_of(tmp_path).items() >= first.items()
    assert status(tmp_path) == "done\n"


def test_seeds_are_ranges_and_numbers_on_the_command_line():
    config = parse_arguments(type(settings("-")), ["--output_dir=-", "--seeds=1-3,7", "--sweep=width=4,8"])
    assert config.seeds == (1, 2, 3, 7)
    assert config.axes == {"width": (4, 8)}


def test_seeds_change_slowest_and_further_axes_next():
    cells = grid(settings("-", sweep=("width=4,16",)))  # stopped early, tables are complete with fewer seeds
    order = [(cell.seed, dict(cell.others)["width"]) for cell in cells]
    assert order == sorted(order)
    assert len(set(order)) == 4


def test_any_flag_can_be_an_axis_and_its_runs_are_those_of_the_flag(tmp_path):
    axes = ("width=4,16", "weight_decay=0,0.1")  # four runs
    options = {"learning_rates": (1e-2,), "warmups": ("radam",), "seeds": (1,), "save_models": True, "sweep": axes}
    said = sweep(settings(tmp_path / "sweep", **options))
    assert said.splitlines()[2].split() == ["learning_rate", "beta_2", "width", "weight_decay", "radam"]
    assert len(rows(tmp_path / "sweep")) == 4
    cell = grid(settings(tmp_path / "sweep", **options))[-1]
    assert cell.name == "rate-0.01_beta-0.9_radam_seed-1_weight_decay-0.1"  # 16 is what the width is without the axis
    config = trial_config(settings("-", **options), cell.values, str(tmp_path / "alone"))
    assert (config.width, config.weight_decay) == (16, 0.1)
    results = train(TASK, config)
    stored = json.loads((tmp_path / "sweep/trials" / cell.name / "result.json").read_text())
    assert stored["metrics"] == {name: value for name, value in results.items() if isinstance(value, float)}


def test_a_tuned_warmup_is_a_method_for_each_of_its_periods_and_shares_of_the_run(tmp_path):
    small = {"warmups": ("linear", "radam"), "learning_rates": (1e-2,), "seeds": (1,), "save_models": True}
    both = {**small, "warmup_periods": (1.5, 3), "warmup_shares": (0.25, 0.5)}  # of 6 updates
    said = sweep(settings(tmp_path, **both, warmup="linear", warmup_share=0.7))  # as the flag file of a single run
    headings = ["linear 1.5", "linear 3", "linear 25 %", "linear 50 %", "radam"]
    assert re.split("  +", said.splitlines()[2])[2:] == headings
    assert len(rows(tmp_path)) == len(headings)
    shares = {(row["warmup_period"], row["warmup_share"]): row["val_loss"] for row in rows(tmp_path)}
    assert shares["1.5", ""] == shares["", "0.25"] != shares["", "0.5"] == shares["3.0", ""]
    trials = [tmp_path / "trials" / f"rate-0.01_beta-0.9_linear_seed-1_{name}" for name in TWICE_THE_SAME]
    np.testing.assert_array_equal(*map(final_weights, trials))
    config = json.loads((trials[1] / "config.json").read_text())
    assert (config["config"]["warmup_share"], config["resolved"]["warmup_period"]) == (0.25, 1.5)


TWICE_THE_SAME = ("warmup_period-1.5", "warmup_share-0.25")


def test_a_share_is_one_of_the_length_of_its_run(tmp_path):
    options = {"warmups": ("linear",), "learning_rates": (1e-2,), "seeds": (1,), "warmup_shares": (0.5,)}
    sweep(settings(tmp_path, **options, sweep=("steps=4,6",)))
    configs = [json.loads(path.read_text()) for path in (tmp_path / "trials").glob("*/config.json")]
    assert sorted(config["resolved"]["warmup_period"] for config in configs) == [2.0, 3.0]


def test_a_trial_that_fails_makes_the_sweep_incomplete_and_is_tried_again(tmp_path, monkeypatch):
    options = {"learning_rates": (1e-2,), "warmups": ("none",), "sweep": ("all_bad=false,true",)}
    with pytest.raises(IncompleteError, match="^2 failed, 0 missing$") as caught:
        sweep(settings(tmp_path, **options, broken_seed=2))
    assert status(tmp_path) == "incomplete: 2 failed, 0 missing\n"
    assert "RuntimeError: no such luck" in caught.value.advice
    assert f"--config={tmp_path}/config.json" in caught.value.advice
    ended = {(row["all_bad"], row["seed"]): row["status"] for row in rows(tmp_path)}
    assert ended == {(bad, "2"): "failed" for bad in ("False", "True")} | {
        ("False", "1"): "done",
        ("True", "1"): "diverged",
    }
    shutil.rmtree(next((tmp_path / "trials").glob("*seed-2*")))  # the table knows that it has failed
    ran = count_runs(monkeypatch)
    said = sweep(settings(tmp_path, **options))
    assert len(ran) == 2
    assert status(tmp_path) == "done\n"
    assert "none: 4 runs planned, 2 diverged." in said


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"data": "/nowhere"}, DataError, "--data must be a folder. Received: /nowhere"),
        ({"batch_size": 1000}, ConfigError, "--batch_size must not exceed what there is to train on, 200 examples"),
        ({"sweep": ("batch_size=40,1000",)}, ConfigError, "--batch_size must not exceed"),
        ({"beta_2s": (0.9, 0.5)}, ConfigError, "beta_2"),
        ({"init_from": "/nowhere"}, ConfigError, "--init_from must be a .keras file .* Received: '/nowhere'"),
        ({"sweep": ("logical_devices=1,3",)}, ConfigError, "--logical_devices must be set before .* Received: 0 and 3"),
    ],
)
def test_what_no_trial_can_do_without_is_found_before_the_first(options, error, message, tmp_path):
    with pytest.raises(error, match=message):
        sweep(settings(tmp_path / "run", **options))
    assert not (tmp_path / "run").exists()


def test_a_result_that_cannot_be_written_is_missing_and_not_done(tmp_path, monkeypatch):
    link, failures = os.link, []

    def failing(source, target):
        if not failures:
            failures.append(target)
            raise OSError(28, "No space left on device")
        link(source, target)

    monkeypatch.setattr(trial.os, "link", failing)
    two = {**ONE, "seeds": (1, 2)}
    with pytest.raises(IncompleteError, match="^0 failed, 1 missing$") as caught:
        sweep(settings(tmp_path, **two))
    assert "No space left on device" in caught.value.advice
    assert len(rows(tmp_path)) == 1
    sweep(settings(tmp_path, **two))
    assert len(rows(tmp_path)) == 2


@pytest.fixture(scope="module")
def one_run(tmp_path_factory):
    """A sweep of one run, and the folder of its data."""
    folder, data = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("data")
    sweep(settings(folder, **ONE, data=str(data)))
    return folder, data


@pytest.mark.parametrize("content", [b"", b'{"trial": ', b"[]", b"{}", b'{"no": 1}', b"\xff", b"1", None])
def test_a_damaged_result_is_named_and_nothing_is_changed(content, one_run):
    folder, data = one_run
    [path] = (folder / "trials").glob("*/result.json")
    whole, table = path.read_bytes(), (folder / "results.csv").read_text()
    of_another_trial = whole.replace(path.parent.name.encode(), b"rate-9")
    path.write_bytes(of_another_trial if content is None else content)
    try:
        with pytest.raises(DataError, match=f"must be what a sweep has written: .* Received: {path} "):
            sweep(settings(folder, **ONE, data=str(data)))
    finally:
        path.write_bytes(whole)
    assert (folder / "results.csv").read_text() == table


def test_a_sweep_does_not_grow_with_other_data(one_run):
    folder, data = one_run
    (data / "rows").write_text("120")
    more = {**ONE, "seeds": (1, 2), "data": str(data)}
    try:
        with pytest.raises(ConfigError, match="must be new or hold runs with the same data. .* had other data than"):
            sweep(settings(folder, **more))
        sweep(settings(folder, **{**more, "seeds": (1,)}))  # nothing is left to run
    finally:
        (data / "rows").unlink()
    assert len(rows(folder)) == 1


def test_the_tables_are_there_after_the_first_trial(tmp_path, monkeypatch):
    run_cell, seen = trial.run_cell, []

    def looking(*arguments):
        seen.append(len(rows(tmp_path)) if (tmp_path / "results.csv").exists() else 0)
        return run_cell(*arguments)

    monkeypatch.setattr(trial, "run_cell", looking)
    sweep(settings(tmp_path, learning_rates=(1e-2,), warmups=("none",)))
    assert seen == [0, 1]


def test_the_tables_take_a_twentieth_of_the_time(tmp_path, monkeypatch):
    now, written = [0.0], []

    def write(self):
        written.append(now[0])
        now[0] += 1

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(Tables, "write", write)
    run = SweepRun(settings(tmp_path), Tables)
    tables = Tables(run.folder, run.settings, run.objective, {})
    while now[0] < 40:
        tables.write_soon()
        now[0] += 0.25
    assert written == [0, 21]


def test_a_second_start_on_a_folder_is_refused(tmp_path):
    with locked(tmp_path), pytest.raises(ConfigError, match="must not be in use by another process"):
        sweep(settings(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_folder_of_an_older_version_is_read_and_continued(tmp_path, monkeypatch):
    """Its config lacks flags of today and has others, its results have no environment, and there is `tuner/`."""
    small = {"learning_rates": (1e-2,), "seeds": (1,)}
    sweep(settings(tmp_path, **small))
    document = json.loads((tmp_path / "config.json").read_text())
    for name in ("sweep", "warmup_periods", "worker_timeout"):
        del document["config"][name]
    document["config"]["retry_failed"] = False
    (tmp_path / "config.json").write_text(json.dumps(document))
    (tmp_path / "results.csv").unlink()
    for path in (tmp_path / "trials").glob("*/result.json"):
        result = json.loads(path.read_text())
        del result["environment"]
        path.write_text(json.dumps(result))
    (tmp_path / "tuner/chief").mkdir(parents=True)
    ran = count_runs(monkeypatch)
    said = sweep(settings(tmp_path, **{**small, "seeds": (1, 2)}))
    assert len(ran) == 2
    assert f"Runs differ in threads: {os.cpu_count()} (2 runs), not recorded (2 runs)." in said


def test_the_seconds_of_a_resumed_trial_are_those_of_all_its_processes(tmp_path, monkeypatch):
    with stopped_at_a_checkpoint():
        sweep(settings(tmp_path, **ONE))
    header = trial.Checkpoints.newest_header
    monkeypatch.setattr(trial.Checkpoints, "newest_header", lambda self: header(self) | {"seconds": 1000.0})
    sweep(settings(tmp_path, **ONE))
    assert 1000 < read_results(tmp_path)[0].seconds < 1100


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_trial_that_ends_its_process_is_recorded_as_failed_and_the_others_go_on(workers, tmp_path):
    options = {"learning_rates": (1e-2,), "warmups": ("none",), "seeds": (1, 2, 3)}
    options |= {"workers": workers} if workers > 1 else {}
    for _ in range(trial.ATTEMPTS_AT_MOST if workers == 1 else 0):  # the sweep ends with its only process
        finish(start(tmp_path, deadly_seed=2, **options), code=-signal.SIGKILL)
    said, errors = finish(start(tmp_path, deadly_seed=2, **options), code=4)
    assert status(tmp_path) == "incomplete: 1 failed, 0 missing\n"
    assert "incomplete: 1 failed, 0 missing. " in errors
    assert "ended its process 3 times. To try these again: python -m trainers.sweep" in errors
    assert "0.01" in said or "1e-2" in said
    assert {row["seed"]: row["status"] for row in rows(tmp_path)} == {"1": "done", "2": "failed", "3": "done"}
    finish(start(tmp_path, **options))
    assert {row["status"] for row in rows(tmp_path)} == {"done"}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """What is kept of a sweep with one seed; and the folder of one with two."""
    folder = tmp_path_factory.mktemp("kept")
    sweep(settings(folder / "whole"))
    sweep(settings(folder / "first", seeds=(1,)))
    (folder / "kept").mkdir()
    for name in ("config.json", "results.csv", "summary.md"):
        shutil.copy(folder / "first" / name, folder / "kept")
    return folder


def test_a_sweep_goes_on_in_a_copy_of_what_was_kept(kept, tmp_path, monkeypatch):
    ran, folder = count_runs(monkeypatch), tmp_path / "copy"
    shutil.copytree(kept / "kept", folder)
    sweep(settings(folder, seeds=(1,)))
    assert not ran  # even without its trials, it is done
    assert rows(folder) == rows(kept / "kept")
    sweep(settings(folder))
    assert len(ran) == 4
    assert all("seed-2" in name for name in ran)
    seconds = {"seconds": None}
    assert [row | seconds for row in rows(folder)] == [row | seconds for row in rows(kept / "whole")]
    assert values_of(folder) == values_of(kept / "whole")
    sweep(settings(folder))
    assert len(ran) == 4


def test_runs_of_the_table_count_by_name_whatever_their_text_looks_like(tmp_path, monkeypatch):
    options = {"learning_rates": (1e-2,), "warmups": ("none",), "seeds": (1,), "sweep": ("width=4,16", "all_bad=false")}
    said = sweep(settings(tmp_path, **options))
    shutil.rmtree(tmp_path / "trials")
    table, ran = (tmp_path / "results.csv").read_text(), count_runs(monkeypatch)
    assert sweep(settings(tmp_path, **options)) == said
    assert not ran
    assert (tmp_path / "results.csv").read_text() == table


def test_a_trial_counts_before_it_is_in_the_table_and_is_made_again_without_its_folder_and_row(
    kept, tmp_path, monkeypatch
):
    folder, ran = tmp_path / "killed", count_runs(monkeypatch)
    shutil.copytree(kept / "whole", folder)
    table = (folder / "results.csv").read_text()
    shortened = "".join(table.splitlines(keepends=True)[:3])
    (folder / "results.csv").write_text(shortened)
    sweep(settings(folder))
    assert not ran
    assert (folder / "results.csv").read_text() == table
    last = rows(folder)[-1]["trial"]
    (folder / "results.csv").write_text(shortened)
    shutil.rmtree(folder / "trials" / last)
    sweep(settings(folder))
    assert ran == [last]


@pytest.mark.parametrize("damage", ["", "a,b\n1,2\n", None])
def test_a_damaged_table_is_named_and_nothing_is_changed(damage, kept, tmp_path):
    path = tmp_path / "copy/results.csv"
    shutil.copytree(kept / "kept", tmp_path / "copy")
    path.write_text(path.read_text()[:-90] if damage is None else damage)
    before = path.read_text()
    with pytest.raises(DataError, match=rf"A results.csv must be what a sweep has written: .* Received: {path} \(not"):
        sweep(settings(tmp_path / "copy"))
    assert path.read_text() == before
    path.unlink()
    sweep(settings(tmp_path / "copy"))  # as the message says
    assert len(rows(tmp_path / "copy")) == 8


def test_places_of_data_that_a_kept_config_shortens_are_known_by_their_end(tmp_path):
    data = tmp_path / "there/data"
    data.mkdir(parents=True)
    sweep(settings(tmp_path / "run", **ONE, data=str(data)))
    path = tmp_path / "run/config.json"
    path.write_text(path.read_text().replace(str(data), ".../data"))
    more = {**ONE, "seeds": (1, 2)}
    other = tmp_path / "other_data"
    other.mkdir()
    with pytest.raises(ConfigError, match="--output_dir must be new or hold this run"):
        sweep(settings(tmp_path / "run", **more, data=str(other)))
    sweep(settings(tmp_path / "run", **more, data=f"{data}/"))
    assert len(rows(tmp_path / "run")) == 2
