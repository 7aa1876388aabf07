"""Every program of examples/ runs as its header says, on the backend it is for, and does what its last line claims."""

import os
import re
import subprocess
import sys

import pytest

from tests.pages import ROOT
from tests.tfwarmup.helpers import BACKEND

# The backend that an example is for, and the accuracy that it must reach, in %. Of ten digits, chance gets 10.
EXAMPLES = {
    "custom_loop_jax": ("jax", 85),
    "custom_loop_torch": ("torch", 85),
    "fine_tuning": ("tensorflow", 85),
    "fit": (BACKEND, 85),
    "keras_tuner_search": ("tensorflow", 80),
    "several_devices": ("tensorflow", 85),
}
QUICK = ("fit", "custom_loop_jax", "custom_loop_torch")
HERE = [name for name, (backend, _) in EXAMPLES.items() if backend == BACKEND]


def output_of(name, folder):
    """Runs an example in another folder: it must not need files of the checkout, or leave files behind."""
    # Two threads on two busy cores wait for each other longer than they compute.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error::UserWarning", str(ROOT / f"examples/{name}.py")]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in HERE]
)
def test_an_example_runs_and_learns(name, tmp_path):
    output = output_of(name, tmp_path)
    [accuracy] = re.findall(r"([\d.]+) %", output.splitlines()[-1])
    assert float(accuracy) >= EXAMPLES[name][1]
    assert not list(tmp_path.iterdir())
    if name == "fine_tuning":
        assert re.findall(r"factor is ([\d.]+)", output) == ["1.00", "0.01"]  # 1 of 100 updates again
    if name == "several_devices":
        assert output.startswith("2 devices")


def test_every_example_is_run_is_short_and_is_listed_in_the_readme():
    readme = (ROOT / "README.md").read_text()
    assert sorted(EXAMPLES) == sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
    for name in EXAMPLES:
        text = (ROOT / f"examples/{name}.py").read_text()
        assert f"\npython examples/{name}.py\n" in text
        assert 20 <= len(text.splitlines()) <= 55
        assert f"(examples/{name}.py)" in readme
