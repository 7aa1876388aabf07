"""SIGTERM and Ctrl-C end a program well, whatever it is doing; a lock keeps two of them apart."""

import json
import re
import signal
import time

import numpy as np
import psutil
import pytest

from tests.trainers.helpers import final_weights, finish, program, records, run_tiny, status, tiny_flags, wait_for
from trainers.system.access import LOCK, locked
from trainers.system.errors import ConfigError

# One epoch and one interval: nothing is recorded or checkpointed by plan before the end.
LONG = {"epochs": 1, "batch_size": 1, "step_seconds": 0.01, "log_every": 200, "checkpoint_every": 200, "dropout": 0.3}
SLOW_STEPS = {"step_seconds": 0.5, "epochs": 100, "log_every": 500, "checkpoint_every": 500}
SOON = 15  # seconds in which a program must have ended, on a machine that does other things too


def start_and_wait(folder, **options):
    """A run that has finished a step and has more to do: its timed checkpoint tells."""
    process = program("tests.trainers.tiny", *tiny_flags(folder, checkpoint_minutes=1e-4, **options))
    wait_for(lambda: list(folder.glob("checkpoints/interim-*.npz")) or process.poll() is not None)
    assert process.poll() is None, process.communicate()[1][-2000:]
    return process


def test_sigterm_within_an_interval_saves_the_run_and_the_same_command_resumes_it(finished, tmp_path):
    """`test_gradient_analysis.py` has the same of Ctrl-C."""
    process = start_and_wait(tmp_path / "stopped", **LONG)
    began = time.monotonic()
    process.terminate()
    _, errors = finish(process, code=143)
    assert time.monotonic() - began < SOON
    assert "stopped by SIGTERM: run the same command again to resume" in errors
    assert status(tmp_path / "stopped") == "stopped\n"
    output, _ = finish(program("tests.trainers.tiny", *tiny_flags(tmp_path / "stopped", **LONG)))
    assert 0 < int(re.search(r"resumed at step (\d+)", output)[1]) < 200
    whole = finished(**LONG)
    np.testing.assert_array_equal(final_weights(tmp_path / "stopped"), final_weights(whole))
    assert records(tmp_path / "stopped") == records(whole)


@pytest.mark.slow
def test_a_second_signal_ends_at_once_and_a_second_start_is_refused_meanwhile(tmp_path):
    options = {**SLOW_STEPS, "step_seconds": 20.0}
    flags = tiny_flags(tmp_path, **options)
    process = program("tests.trainers.tiny", *flags)
    wait_for(lambda: (tmp_path / "tensorboard").exists() or (tmp_path / "status").exists())
    _, errors = finish(program("tests.trainers.tiny", *flags), code=2)
    said = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert said == [
        f"error: --output_dir must not be in use by another process. Received: {tmp_path}, whose run is still active"
    ]
    process.send_signal(signal.SIGTERM)
    time.sleep(1)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=SOON)
    assert process.returncode == 143
    assert time.monotonic() - began < 5  # a step takes twenty


def test_a_signal_before_the_run_begins_ends_it_and_nothing_is_written(tmp_path):
    process = program("tests.trainers.tiny", *tiny_flags(tmp_path / "run"), fresh=True)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=SOON)
    assert process.returncode in (143, -signal.SIGTERM)  # while it imports, the kernel ends it
    assert not (tmp_path / "run").exists()


def test_a_checkpoint_is_written_when_it_is_time_to_and_the_lock_of_a_killed_run_is_gone(tmp_path):
    process = start_and_wait(tmp_path, **SLOW_STEPS)
    with pytest.raises(ConfigError, match="must not be in use by another process"):
        run_tiny(tmp_path, **SLOW_STEPS)
    first = {path.name for path in (tmp_path / "checkpoints").glob("*.npz")}
    wait_for(lambda: {path.name for path in (tmp_path / "checkpoints").glob("*.npz")} - first)
    process.kill()
    process.communicate()
    assert len(list((tmp_path / "checkpoints").glob("*.npz"))) <= 2  # the newest, and one it is about to replace
    with locked(tmp_path):
        assert (tmp_path / LOCK).exists()


def test_a_timed_checkpoint_is_in_no_average(tmp_path):
    options = {"average": 3, "epochs": 6}
    run_tiny(tmp_path / "timed", checkpoint_minutes=1e-9, **options)
    run_tiny(tmp_path / "plain", checkpoint_minutes=0.0, **options)
    averages = [final_weights(tmp_path / name, "average") for name in ("timed", "plain")]
    np.testing.assert_array_equal(*averages)


SWEEP = {
    "steps": 400,
    "batch_size": 64,
    "log_every": 200,
    "checkpoint_every": 400,
    "learning_rates": "1e-3,1e-2",
    "beta_2s": "0.99",
    "warmups": "untuned_linear",
    "seeds": "1,2",
}


def sweep_flags(folder, **options):
    values = {**SWEEP, "output_dir": folder, **options}
    return ["--noprogress", *(f"--{name}={value}" for name, value in values.items())]


def outcomes(folder):
    found = {}
    for path in sorted(folder.glob("trials/*/result.json")):
        result = json.loads(path.read_text())
        found[result["trial"]] = (result["status"], result["metrics"], records(path.parent))
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    finish(program("trainers.sweep", *sweep_flags(folder)))
    return outcomes(folder)


@pytest.mark.slow
@pytest.mark.xdist_group("sweep")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_sweep_ends_well_with_its_workers_and_goes_on_where_they_were(workers, undisturbed, tmp_path):
    process = program("trainers.sweep", *sweep_flags(tmp_path / "stopped", workers=workers))
    wait_for(lambda: list((tmp_path / "stopped").glob("trials/*/metrics.jsonl")))
    children = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    _, errors = finish(process, code=143)
    assert "stopped by SIGTERM" in errors
    assert not psutil.wait_procs(children, timeout=SOON)[1]
    assert status(tmp_path / "stopped") == "stopped\n"
    under_way = [path for path in (tmp_path / "stopped").glob("trials/*/status") if path.read_text() != "done\n"]
    assert all(path.read_text() == "stopped\n" for path in under_way)
    finish(program("trainers.sweep", *sweep_flags(tmp_path / "stopped", workers=workers)))
    assert outcomes(tmp_path / "stopped") == undisturbed


@pytest.mark.slow
def test_a_reproduction_ends_well_and_goes_on_where_it_was(tmp_path):
    flags = [f"--output_dir={tmp_path}", "--workers=2", "--only=digits"]
    process = program("tests.trainers.tiny_reproduction", *flags)
    wait_for(lambda: list(tmp_path.glob("digits/trials/*/config.json")))
    children = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    finish(process, code=143)
    assert not psutil.wait_procs(children, timeout=SOON)[1]
    assert status(tmp_path / "digits") == "stopped\n"
    finish(program("tests.trainers.tiny_reproduction", *flags))
    assert status(tmp_path / "digits") == "done\n"
