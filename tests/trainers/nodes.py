"""A Ray cluster of several nodes on one machine, for programs that `isolated` starts.

Such a program has a network of its own, which consists of loopback only, and process numbers of its own: when it ends,
every process that it has started ends too, and nothing of it can be reached from outside.
"""

import itertools
import os
import pathlib
import shutil
import subprocess
import sys

import psutil
import pytest

from tests.trainers.helpers import ROOT, wait_for

ADDRESS = "127.0.0.1:6399"
TOKEN = "ab" * 32
NUMBERS = itertools.count()
ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": TOKEN,
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "KERAS_BACKEND": "tensorflow",
}
ISOLATION = ["unshare", "--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]
WITH_LOOPBACK = f'{shutil.which("ip")} link set lo up && exec "$@"'


def isolation():
    """What comes before a command that runs in isolation; skips the test where the machine does not permit it."""
    if subprocess.run([*ISOLATION, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to create namespaces")
    return [*(shutil.which(ISOLATION[0]), *ISOLATION[1:]), shutil.which("sh"), "-c", WITH_LOOPBACK, "sh"]


def isolated(*command, seconds=400, **environment):
    """Runs a command in isolation and returns its output."""
    return subprocess.run(
        [*isolation(), *command],
        cwd=ROOT,
        env={**os.environ, **ENVIRONMENT, **environment},
        stdout=subprocess.PIPE,
        text=True,
        timeout=seconds,
        check=True,
    ).stdout


class Node:
    """A node of the cluster; the first one is the head."""

    def __init__(self, logs, head=False, cpus=1, gpus=0, without=None, **environment):
        """With `without`, a folder that it does not see."""
        self.is_head = head
        place = ["--head", "--port=6399", "--include-dashboard=false"] if head else [f"--address={ADDRESS}"]
        more = ["--node-ip-address=127.0.0.1", f"--num-cpus={cpus}", f"--num-gpus={gpus}"]
        memory = ["--object-store-memory=100000000", "--disable-usage-stats", "--block"]
        hiding = (
            ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs tmpfs {without} && exec "$@"', "sh"] if without else []
        )
        ray = str(pathlib.Path(sys.executable).parent / "ray")
        self._log = logs / f"node-{next(NUMBERS)}.log"
        with self._log.open("w") as file:
            self._process = subprocess.Popen(
                [*hiding, ray, "start", *place, *more, *memory],
                env={**os.environ, **environment},
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    @property
    def is_alive(self):
        return self._process.poll() is None

    def wait(self, seconds=60):
        """Waits until it is a part of the cluster, and returns it."""
        wait_for(lambda: "Ray runtime started" in self._log.read_text() or not self.is_alive, seconds)
        return self

    def raylet(self):
        children = psutil.Process(self._process.pid).children(recursive=True)
        return next((child for child in children if child.name() == "raylet"), None)

    def kill(self):
        """Kills its raylet alone, as a crash would: its workers live on for a while."""
        found = self.raylet() if self.is_alive else None
        if found is not None:
            found.kill()

    def end(self):
        """Kills everything that belongs to it."""
        if self.is_alive:
            family = psutil.Process(self._process.pid)
            for child in [*family.children(recursive=True), family]:
                child.kill()
        self._process.wait()


def workers(doing=".run"):
    """The processes of this namespace that run trials."""
    found = []
    for each in psutil.process_iter(["cmdline"]):
        command = each.info["cmdline"] or [""]
        if command[0].startswith(f"ray::Worker{doing}"):
            found.append(each)
    return found
