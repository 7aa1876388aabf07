"""Programs that start in a hundredth of a second: forks of a process that has imported everything and started nothing.

`python -m tests.trainers.forks` is that process. The process of the tests itself cannot fork: TensorFlow and JAX have
threads there, whose locks a fork would inherit.
"""

import contextlib
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
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

    def close(self):
        self._server.stdin.close()
        self._server.wait(timeout=SECONDS)
        self._server.stdout.close()


def serve():
    for name in ("tests.trainers.tiny", "trainers.sweeps.space"):
        importlib.import_module(name)  # so that no child has to

    warnings.simplefilter("ignore")  # JAX, which Keras imports, warns of any fork
    for line in sys.stdin:
        print(_run(json.loads(line)), flush=True)


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


def _run_in_child(module, arguments, log, environment):
    code = 99
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        with open(log, "w") as file:
            for descriptor in (1, 2):
                os.dup2(file.fileno(), descriptor)
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
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
