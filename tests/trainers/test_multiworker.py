"""Several machines, as processes on loopback."""

import json
import os
import signal
import socket

import numpy as np
import pytest

from tests.trainers.helpers import final_weights, finish, program, records, run_tiny, status, tiny_flags, wait_for
from tests.trainers.tiny import TinyConfig
from trainers.engine.workers import TrainingWorker, worker_of


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def start_workers(folder, jobs=("worker", "worker"), each=({}, {}), **options):
    """A process for each job; `folder` may be one for each, too, and each may have options of its own."""
    folders = folder if isinstance(folder, list) else [folder] * len(jobs)
    ports = iter(free_ports(len(jobs)))
    cluster = {job: [f"127.0.0.1:{next(ports)}" for _ in range(jobs.count(job))] for job in dict.fromkeys(jobs)}
    tasks = [{"type": job, "index": jobs[:place].count(job)} for place, job in enumerate(jobs)]
    return [
        program(
            "tests.trainers.tiny",
            *tiny_flags(folder, strategy="multiworker", **options, **own),
            fresh=True,
            TF_CONFIG=json.dumps({"cluster": cluster, "task": task}),
        )
        for folder, task, own in zip(folders, tasks, each, strict=True)
    ]


@pytest.mark.slow
def test_two_workers_equal_one_process(tmp_path):
    options = {"normalise": True, "global_clipnorm": 0.1}
    outputs = [finish(worker)[0] for worker in start_workers(tmp_path / "two", **options)]
    assert outputs[0].endswith(outputs[1])  # the first worker says what the run is before that
    one = run_tiny(tmp_path / "one", strategy="one", **options)
    np.testing.assert_allclose(final_weights(tmp_path / "two"), one, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_a_killed_worker_ends_both_and_both_start_again(tmp_path):
    # An infinity reaches one worker at a time: both must skip that step, or one would wait for ever.
    options = {"precision": "mixed_float16", "bad_row": 11, "epochs": 30, "evaluate_every": 10}
    workers = start_workers(tmp_path / "two", **options)
    wait_for(lambda: list((tmp_path / "two/checkpoints").glob("step-*.npz")))
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


@pytest.fixture
def cluster(monkeypatch):
    def give(**told):
        monkeypatch.setenv("TF_CONFIG", json.dumps(told))
        return worker_of(TinyConfig(strategy="multiworker"))

    return give


def test_a_chief_comes_before_the_workers_and_is_the_one_that_writes(cluster):
    jobs = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}
    assert cluster(cluster=jobs, task={"type": "chief", "index": 0}) == TrainingWorker(3, 0)
    assert cluster(cluster=jobs, task={"type": "worker", "index": 0}) == TrainingWorker(3, 1)
    assert cluster(cluster=jobs, task={"type": "worker", "index": 1}) == TrainingWorker(3, 2)


def test_slurm_tells_the_cluster_where_tf_config_does_not(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    told = {"PROCID": 2, "STEP_NUM_TASKS": 3, "STEP_NODELIST": "n[1-2]", "STEP_TASKS_PER_NODE": "2,1", "JOB_ID": 7}
    for name, value in told.items():
        monkeypatch.setenv(f"SLURM_{name}", str(value))
    try:
        assert worker_of(TinyConfig(strategy="multiworker")) == TrainingWorker(3, 2)
        cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
        assert cluster == {"worker": ["n1:12007", "n1:12008", "n2:12007"]}
    finally:
        monkeypatch.delenv("TF_CONFIG")


@pytest.mark.slow
def test_a_chief_and_a_worker_with_dropout_parts_and_an_average_end_as_one_signal_asks(tmp_path):
    options = {"dropout": 0.3, "accumulate": 2, "average": 2, "steps": 300, "log_every": 100, "checkpoint_every": 100}
    options["evaluate_every"] = 30
    stopped = start_workers(tmp_path / "two", ("chief", "worker"), checkpoint_minutes=1e-4, **options)
    wait_for(lambda: list((tmp_path / "two/checkpoints").glob("interim-*.npz")))
    stopped[1].terminate()  # one of them; both must end
    for worker in stopped:
        finish(worker, code=143)
    assert status(tmp_path / "two") == "stopped\n"
    for worker in start_workers(tmp_path / "two", ("chief", "worker"), **options):
        finish(worker)
    for worker in start_workers(tmp_path / "undisturbed", ("chief", "worker"), **options):
        finish(worker)
    for name in ("last", "average"):
        np.testing.assert_array_equal(
            final_weights(tmp_path / "two", name), final_weights(tmp_path / "undisturbed", name)
        )
    assert records(tmp_path / "two") == records(tmp_path / "undisturbed")


@pytest.mark.slow
def test_workers_with_other_flags_are_refused_on_all_and_nothing_is_written(tmp_path):
    """Each would update its copy of the weights in its own way, and nobody would notice."""
    first, second = ({"learning_rate": rate} for rate in (1e-2, 1e-3))
    for worker in start_workers(tmp_path / "two", each=(first, second)):
        _, errors = finish(worker, code=2)
        assert "All workers must have the same data and the same flags" in errors
        assert "Received: others than those of worker 0, on worker 1" in errors
    assert not (tmp_path / "two").exists()


@pytest.mark.slow
def test_workers_that_would_resume_at_different_steps_are_refused_on_all(tmp_path):
    folders = [tmp_path / "first", tmp_path / "second"]
    for worker in start_workers(folders):
        finish(worker)
    assert not folders[1].exists()  # only the first writes, so a folder of one's own has nothing to resume from
    before = (folders[0] / "metrics.jsonl").read_text()
    for worker in start_workers(folders, epochs=8):
        _, errors = finish(worker, code=2)
        assert "All workers must resume at the same step" in errors
        assert "Received: steps 20, 0" in errors
    assert (folders[0] / "metrics.jsonl").read_text() == before
