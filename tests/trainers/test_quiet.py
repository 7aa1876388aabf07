"""What C++ libraries write when they are loaded is not seen; what goes wrong is. Real processes, real descriptors."""

import os
import signal
import subprocess
import sys

import pytest

from tests.trainers.helpers import ROOT, finish, program, tiny_flags, wait_for

MAIN = """
from trainers.engine.program import imported_late, run_program
from trainers.figures.config import SimulationConfig
run_program(SimulationConfig, imported_late("library", "work"))
"""
# Stands for TensorFlow: it writes past Python while it is imported.
LIBRARY = """
import os, pathlib, sys, time
os.write(2, b"noise of C++\\n")
print("words of Python", file=sys.stderr)
pathlib.Path(__file__).with_name("imported").touch()
{more}
def work(config):
    os.write(2, b"C++ at work\\n")
    return "done"
"""

OWN_TASK = """
import os
from tests.trainers.tiny import Tiny, run_task
os.write(2, b"imported\\n")
run_task(Tiny())
"""


def start(folder, more="", level="2"):
    """A program whose import of a library does more."""
    (folder / "main.py").write_text(MAIN)
    (folder / "library.py").write_text(LIBRARY.format(more=more))
    paths = os.pathsep.join([str(ROOT), str(folder)])
    return program("main", f"--output_dir={folder}/run", PYTHONPATH=paths, TF_CPP_MIN_LOG_LEVEL=level)


def test_what_cpp_writes_during_an_import_is_not_seen_and_all_else_is(tmp_path):
    assert finish(start(tmp_path)) == ("done\n", "words of Python\nC++ at work\n")


@pytest.mark.parametrize("level", ["0", "1"])
def test_a_lower_log_level_shows_everything(level, tmp_path):
    assert finish(start(tmp_path, level=level))[1] == "noise of C++\nwords of Python\nC++ at work\n"


def test_an_import_that_fails_shows_its_error_and_what_was_kept_back(tmp_path):
    _, errors = finish(start(tmp_path, 'raise ImportError("no such symbol")'), code=1)
    assert errors.splitlines()[:2] == ["words of Python", "noise of C++"]
    assert "ImportError: no such symbol" in errors


def test_a_crash_during_an_import_says_where(tmp_path):
    _, errors = finish(start(tmp_path, "os.abort()"), code=-signal.SIGABRT)
    assert "Fatal Python error: Aborted" in errors
    assert "library.py" in errors


def test_a_signal_during_an_import_is_heard_at_once_and_obeyed_after_it(tmp_path):
    process = start(tmp_path, "time.sleep(1)")
    wait_for((tmp_path / "imported").exists)
    process.terminate()
    _, errors = finish(process, code=143)
    said, heard, stopped = [line for line in errors.splitlines() if line]
    assert said == "words of Python"
    assert heard.startswith("stopping: ")
    assert stopped.startswith("stopped by SIGTERM")


@pytest.mark.slow
def test_a_program_that_trains_writes_nothing_to_standard_error(tmp_path):
    flags = ("--flagfile=configs/embedded/digits.flags", "--steps=2", "--noprogress", f"--output_dir={tmp_path}/run")
    _, errors = finish(program("trainers.image_classification", *flags, fresh=True, TF_CPP_MIN_LOG_LEVEL="2"))
    assert errors == ""


@pytest.mark.slow
def test_a_task_of_ones_own_writes_only_what_its_own_import_of_tensorflow_does(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    command = [sys.executable, "-c", OWN_TASK, *tiny_flags(tmp_path / "run", steps=2)]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=True)
    assert run.stderr.partition("imported\n")[2] == ""
    assert "imported\n" in run.stderr


@pytest.mark.slow
def test_a_sweep_with_two_workers_writes_nothing_to_standard_error(tmp_path):
    grid = ("--learning_rates=1e-3", "--beta_2s=0.99", "--seeds=1,2", "--steps=2", "--workers=2", "--noprogress")
    flags = ("--flagfile=configs/embedded/sweep_digits.flags", *grid, f"--output_dir={tmp_path}/run")
    _, errors = finish(program("trainers.sweep", *flags, TF_CPP_MIN_LOG_LEVEL="2"))
    assert errors == ""
