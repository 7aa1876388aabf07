"""Several machines, as processes on loopback."""

import json
import signal
import socket
import time

import numpy as np

from tests.trainers.helpers import final_weights, finish, program, records, run_tiny, status, tiny_flags


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def start_workers(folder, **options):
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(2)]}
    return [
        program(
            "tests.trainers.tiny",
            *tiny_flags(folder, strategy="multiworker", **options),
            TF_CONFIG=json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}}),
        )
        for index in range(2)
    ]


def test_two_workers_equal_one_process(tmp_path):
    options = {"normalise": True, "global_clipnorm": 0.1}
    outputs = [finish(worker)[0] for worker in start_workers(tmp_path / "two", **options)]
    assert outputs[0] == outputs[1]
    one = run_tiny(tmp_path / "one", strategy="one", **options)
    np.testing.assert_allclose(final_weights(tmp_path / "two"), one, rtol=0, atol=1e-6)


def test_a_killed_worker_ends_both_and_both_start_again(tmp_path):
    # An infinity reaches one worker at a time: both must skip that step, or one would wait for ever.
    options = {"precision": "mixed_float16", "bad_row": 11, "epochs": 30, "evaluate_every": 10}
    workers = start_workers(tmp_path / "two", **options)
    while not list((tmp_path / "two/checkpoints").glob("step-*.npz")):
        time.sleep(0.05)
    workers[1].send_signal(signal.SIGKILL)
    workers[1].communicate()
    workers[0].communicate(timeout=60)
    assert workers[0].returncode != 0
    assert not status(tmp_path / "two").startswith("done")
    for worker in start_workers(tmp_path / "two", **options):
        finish(worker)
    for worker in start_workers(tmp_path / "undisturbed", **options):
        finish(worker)
    np.testing.assert_array_equal(final_weights(tmp_path / "two"), final_weights(tmp_path / "undisturbed"))
    assert records(tmp_path / "two") == records(tmp_path / "undisturbed")
