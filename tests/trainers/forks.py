"""Programs that start in a hundredth of a second: forks of a server that has imported everything and started nothing.

The process of the tests itself cannot fork: TensorFlow and JAX have threads there, whose locks a fork would inherit.
"""

import multiprocessing
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
SERVER = {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}  # JAX, which Keras imports, warns of any fork

forking = multiprocessing.get_context("forkserver")
forking.set_forkserver_preload(["tests.trainers.kills", "trainers.sweeps.space"])  # so that no child has to import them


class Forked:
    """`python -m module arguments` in a fork, with what the tests use of `subprocess.Popen`."""

    def __init__(self, module, arguments, environment, process_group=None):
        self.args = [module, *arguments]
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="forked"))
        told = (self.args, self._folder, {**os.environ, **QUIET, **environment}, process_group)
        self._process = forking.Process(target=_run, args=told, daemon=True)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**QUIET, **SERVER}.items():
                patch.setenv(name, value)  # the first fork starts the server
            self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self.returncode

    def communicate(self, timeout=None):
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return tuple((self._folder / name).read_text() for name in ("out", "err"))

    def send_signal(self, number):
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def _run(arguments, folder, environment, process_group):
    if process_group is not None:
        os.setpgid(0, process_group)
    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT), descriptor)
    sys.stdout, sys.stderr = (open(descriptor, "w", closefd=False) for descriptor in (1, 2))  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    sys.argv = arguments
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
