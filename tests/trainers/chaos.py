"""Disturbs a sweep on a cluster of two nodes at random moments: real signals to real processes, and a full disk.

`python -m tests.trainers.chaos FOLDER SEED`, to be started by `nodes.isolated`, prints as JSON what it did. The
undisturbed sweep, by one process, is in FOLDER/calm, the other in FOLDER/disk/sweep.
"""

import contextlib
import json
import pathlib
import random
import signal
import subprocess
import sys
import time

import psutil

from tests.trainers.nodes import ADDRESS, Node, workers
from tests.trainers.tiny_sweep import start

GRID = {"learning_rates": (1e-3, 1e-2), "beta_2s": (0.9,), "warmups": ("none", "radam", "untuned_linear")}
LENGTH = {"steps": 24, "log_every": 4, "checkpoint_every": 4}
STEP_SECONDS = 0.2  # so that there is time for everything to happen
FEW, ALL = (1, 2), (1, 2, 3, 4)  # seeds
TIMEOUT = 5.0  # seconds that a worker may be silent
LIMIT = 300  # seconds in all
EVENTS = ("kill worker", "kill raylet", "kill driver", "kill all", "fill", "stop worker", "node leaves", "add seeds")
DISK = "size=12m"


class Cluster:
    """Two nodes and the driver: those that are alive, and how the driver ended."""

    def __init__(self, folder, logs):
        self.folder, self.logs, self.seeds = folder, logs, FEW
        self.nodes, self.driver, self.codes, self.done = [], None, [], False

    def keep_up(self):
        """Starts every node that is missing, and the driver."""
        self.nodes = [node for node in self.nodes if node.is_alive]
        if not any(node.is_head for node in self.nodes):
            self.end_nodes()
            self.nodes = [Node(self.logs, head=True).wait()]
        if len(self.nodes) < 2:
            self.nodes.append(Node(self.logs))
        if self.driver is None:
            flags = {**GRID, **LENGTH, "seeds": self.seeds, "worker_timeout": TIMEOUT, "ray_address": ADDRESS}
            self.driver = start(self.folder, **flags, step_seconds=STEP_SECONDS)

    def collect(self):
        """Records whether the driver has ended."""
        if self.driver is not None and self.driver.poll() is not None:
            output = self.driver.communicate()
            with (self.logs / "driver.log").open("a") as file:
                file.write("\n".join([*output, f"exit code {self.driver.returncode}", ""]))
            self.codes.append(self.driver.returncode)
            self.done = self.driver.returncode == 0 and self.seeds == ALL
            self.driver = None

    def end_driver(self, number):
        if self.driver is not None:
            self.driver.send_signal(number)

    def end_nodes(self):
        for node in self.nodes:
            node.end()

    def end(self):
        self.end_driver(signal.SIGKILL)
        self.end_nodes()


def fill(disk):
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while file.write(b"0" * 4096):
            pass


def happen(event, cluster, disk, generator):
    """Returns whether there was anything to do it to."""
    running = workers()
    if event == "kill raylet":
        generator.choice(cluster.nodes).kill()
    elif event == "kill driver":
        cluster.end_driver(signal.SIGKILL)
    elif event == "kill all":
        for worker in workers(""):
            worker.kill()
        cluster.end()
    elif event == "node leaves":
        cluster.nodes[-1].end()
    elif event == "add seeds":
        cluster.seeds = ALL
        cluster.end_driver(signal.SIGTERM)
    elif event == "fill":
        fill(disk)
        time.sleep(generator.uniform(1, 3))
        (disk / "filler").unlink()
    elif not running:
        return False
    elif event == "kill worker":
        generator.choice(running).kill()
    elif event == "stop worker":
        worker = generator.choice(running)
        with contextlib.suppress(psutil.NoSuchProcess):
            worker.suspend()
            time.sleep(2 * TIMEOUT)
            worker.resume()
    return True


def disturb(cluster, disk, generator, fillable):
    """Triggers every event once, after random pauses, while trials are running, and waits for the end."""
    events = [event for event in EVENTS if fillable or event != "fill"]
    generator.shuffle(events)
    happened, deadline, upcoming = [], time.monotonic() + LIMIT, 0.0
    while not cluster.done and time.monotonic() < deadline:
        cluster.collect()
        if cluster.done:
            break
        cluster.keep_up()
        if not workers():
            upcoming = time.monotonic() + generator.uniform(0.2, 2)  # trials first
        elif events and time.monotonic() > upcoming and happen(events[-1], cluster, disk, generator):
            happened.append(events.pop())
            upcoming = time.monotonic() + generator.uniform(0.2, 2)
        time.sleep(0.1)
    return happened


def main(folder, seed):
    logs, disk = folder / "logs", folder / "disk"
    logs.mkdir()
    disk.mkdir()
    calm = start(folder / "calm", {"RAY_ADDRESS": ""}, **GRID, **LENGTH, seeds=ALL)
    calm.communicate()
    mount = ["mount", "-t", "tmpfs", "-o", DISK, "tmpfs", str(disk)]
    fillable = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    began, cluster = time.monotonic(), Cluster(disk / "sweep", logs)
    try:
        happened = disturb(cluster, disk, random.Random(seed), fillable)
    finally:
        cluster.end()
    left = [worker.pid for worker in workers("")]
    subprocess.run(["cp", "-r", str(disk / "sweep"), str(folder / "disturbed")], check=True)  # the disk goes with us
    said = {"calm": calm.returncode, "done": cluster.done, "happened": happened, "driver": cluster.codes, "left": left}
    print(json.dumps({**said, "fillable": fillable, "seconds": round(time.monotonic() - began)}))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
