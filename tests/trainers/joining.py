"""Sweeps on a cluster whose nodes join, leave, and are not what they should be.

`python -m tests.trainers.joining FOLDER`, to be started by `nodes.isolated`, prints as JSON what it saw.
"""

import json
import os
import pathlib
import sys
import time

from tests.trainers.helpers import finish, wait_for
from tests.trainers.nodes import ADDRESS, Node, workers
from tests.trainers.tiny_sweep import start

RUNS = {"warmups": ("none",), "seeds": (1, 2, 3), "learning_rates": (1e-3, 1e-2), "ray_address": ADDRESS}
SLOW = {"step_seconds": 0.5, "steps": 8}


def refusal(folder, **more):
    """What a sweep says that does not begin."""
    _, errors = finish(start(folder / "shared/run", **RUNS, **more), code=2, seconds=120)
    return errors.splitlines()[-1]


def other_version(folder):
    """A folder that makes a node report another version of a package."""
    fake = folder / "other/keras_hub-0.0.1.dist-info"
    fake.mkdir(parents=True)
    (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: keras-hub\nVersion: 0.0.1\n")
    return str(fake.parent)


def refusals(folder):
    """What a sweep says at its start of nodes that cannot run its trials."""
    seen = {}
    lacking = Node(folder, gpus=1, without=folder / "shared").wait()
    seen["folder"] = refusal(folder)
    lacking.end()
    other = Node(folder, gpus=1, PYTHONPATH=other_version(folder)).wait()
    seen["version"] = refusal(folder)
    other.end()
    seen["room"] = refusal(folder, gpus_per_trial=8)
    seen["written"] = sorted(path.name for path in (folder / "shared").iterdir())
    return seen


def growth(folder):
    """How many trials run at once while nodes join and leave."""
    process = start(folder / "shared/run", **RUNS, **SLOW, gpus_per_trial=1)
    wait_for(lambda: len(workers()) == 1 or process.poll() is not None)
    if process.poll() is not None:
        raise AssertionError(process.communicate())
    time.sleep(2)
    counts = [len(workers(""))]
    node = Node(folder, gpus=1)
    wait_for(lambda: len(workers()) == 2)
    counts.append(len(workers("")))
    node.end()
    wait_for(lambda: len(workers("")) == 1)
    foreign = Node(folder, gpus=1, PYTHONPATH=str(folder / "other"))  # it is not used, and the sweep goes on
    _, errors = finish(process, seconds=240)
    foreign.end()
    return {"counts": counts, "warned": errors}


def gpus_of(run):
    """The GPUs that the trials of a sweep have seen."""
    return sorted({path.read_text() for path in (run / "trials").glob("*/gpus")})


def main(folder):
    (folder / "shared").mkdir()
    head = Node(folder, head=True, cpus=2, gpus=1).wait()
    seen = refusals(folder) | growth(folder)
    finish(start(folder / "shared/hidden", **{**RUNS, "seeds": (1,)}, gpus_per_trial=0))
    head.end()
    print(json.dumps({**seen, "gpus": [gpus_of(folder / "shared" / name) for name in ("run", "hidden")]}))


if __name__ == "__main__":
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    main(pathlib.Path(sys.argv[1]))
