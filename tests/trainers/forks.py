"""Programs that start in a hundredth of a second: forks of a process that has imported everything and started nothing.

`python -m tests.trainers.forks` is that process. The process of the tests itself cannot fork: TensorFlow and JAX have
threads there, whose locks a fork would inherit.
"""

import contextlib
import importlib
import json
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

SECONDS = 60  # after which a program counts as hanging
HUNG = -1000


class Launcher:
    """Starts programs in forks of one process."""

    def __init__(self, root):
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.trainers.forks"],
            cwd=root,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, module, arguments, log, environment=()):
        """Runs `python -m module arguments` with both outputs in the file `log`; returns exit code and lines."""
        request = {"module": module, "arguments": arguments, "log": str(log), "environment": dict(environment)}
        print(json.dumps(request), file=self._server.stdin, flush=True)
        code = int(self._server.stdout.readline())
        text = log.read_text()
        log.unlink()
        assert code != HUNG, f"{module} hangs: {arguments}\n{text}"
        return code, [line for line in text.splitlines() if "frozen runpy" not in line]

    def start(self, module, arguments, environment=(), process_group=None):
        """Starts `python -m module arguments`, and returns it; its outputs are read when it has ended."""
        place = pathlib.Path(tempfile.mkdtemp(prefix="forked"))
        request = {"module": module, "arguments": arguments, "place": str(place), "process_group": process_group}
        print(json.dumps({**request, "environment": dict(environment)}), file=self._server.stdin, flush=True)
        return Forked([module, *arguments], int(self._server.stdout.readline()), place)

    def close(self):
        self._server.stdin.close()
        self._server.wait(timeout=SECONDS)
        self._server.stdout.close()


class Forked:
    """A program in a fork, with what the tests use of `subprocess.Popen`."""

    def __init__(self, command, pid, place):
        self.args, self.pid, self.returncode, self._place = command, pid, None, place

    def poll(self):
        if self.returncode is None and (self._place / "code").exists():
            self.returncode = int((self._place / "code").read_text())
        return self.returncode

    def communicate(self, timeout=None):
        deadline = time.monotonic() + (timeout or float("inf"))
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(0.01)
        return tuple(
            "".join(line for line in (self._place / name).read_text().splitlines(True) if "frozen runpy" not in line)
            for name in ("out", "err")
        )

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def serve():
    for name in ("tests.trainers.tiny", "trainers.sweeps.space"):
        importlib.import_module(name)  # so that no child has to

    warnings.simplefilter("ignore")  # JAX, which Keras imports, warns of any fork
    watching = []
    for line in sys.stdin:
        request = json.loads(line)
        print(_start(watching, **request) if "place" in request else _run(request), flush=True)
        watching = [process for process in watching if not os.waitpid(process, os.WNOHANG)[0]]


def _start(watching, place, process_group, **request):
    """Forks a process that forks the program and records its exit code; returns the number of the program."""
    reading, writing = os.pipe()
    watching.append(os.fork())
    if not watching[-1]:
        program = os.fork()
        if not program:
            os.close(reading)
            os.close(writing)
            if process_group is not None:
                os.setpgid(0, process_group)
            _run_in_child(**request, log=f"{place}/out", errors=f"{place}/err")
        os.write(writing, b"%d" % program)
        ended = pathlib.Path(place, "ended")
        ended.write_text(str(os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])))
        ended.rename(ended.with_name("code"))
        os._exit(0)
    number = int(os.read(reading, 20))
    os.close(reading)
    os.close(writing)
    return number


def _run(request):
    process = os.fork()
    if not process:
        _run_in_child(**request)
    code = exit_code(process, SECONDS)
    return HUNG if code is None else code


def exit_code(process, seconds):
    """Waits for a child; returns its exit code, or minus the signal that ended it. Kills a slow one: None."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


def _run_in_child(module, arguments, log, environment, errors=None):
    code = 99
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        with open(log, "w") as file, open(errors or log, "a") as error_file:
            os.dup2(file.fileno(), 1)
            os.dup2(error_file.fileno() if errors else file.fileno(), 2)
        sys.stdout, sys.stderr = (open(descriptor, "w", closefd=False) for descriptor in (1, 2))  # noqa: SIM115
        os.environ.update(environment)
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
