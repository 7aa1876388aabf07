"""`python -m tests.trainers.gpu_shares COUNT DEVICES FOLDER`: every worker writes the GPUs it was given into FOLDER.

A program of its own, because the process of the tests cannot fork.
"""

import os
import pathlib
import sys
import time

from trainers.sweeps import workers

SECONDS = 60


def main(count, devices, folder):
    workers.DEVICES = devices

    def work(name, address):
        (folder / f"{name}.part").write_text(os.environ.get(workers.GPUS, ""))
        (folder / f"{name}.part").rename(folder / name)

    local = workers.LocalWorkers(count, work)
    deadline = time.monotonic() + SECONDS
    while not all((folder / f"worker{number}").exists() for number in range(count)) and time.monotonic() < deadline:
        time.sleep(0.01)
    local.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
