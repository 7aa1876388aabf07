"""Several machines, as processes on loopback."""

import json
import os
import signal

import numpy as np
import pytest

from tests.commands import free_port
from tests.trainers.helpers import final_weights, finish, program, records, run_tiny, status, tiny_flags, wait_for
from tests.trainers.tiny import TinyConfig
from trainers.engine.workers import TrainingWorker, worker_of
from trainers.system.errors import ConfigError


def start_workers(folder, jobs=("worker", "worker"), each=({}, {}), **options):
    """A process for each job; `folder` may be one for each, too, and each may have options of its own."""
    folders = folder if isinstance(folder, list) else [folder] * len(jobs)
    cluster = {job: [f"127.0.0.1:{free_port()}" for _ in range(jobs.count(job))] for job in dict.fromkeys(jobs)}
    tasks = [{"type": job, "index": jobs[:place].count(job)} for place, job in enumerate(jobs)]
    return [
        program(
            "tests.trainers.tiny",
            *tiny_flags(folder, strategy="multiworker", **options, **own),
            TF_CONFIG=json.dumps({"cluster": cluster, "task": task}),
        )
        for folder, task, own in zip(folders, tasks, each, strict=True)
    ]


def finish_workers(*arguments, code=0, **options):
    return [finish(worker, code) for worker in start_workers(*arguments, **options)]


def assert_same_run(ours, theirs, *names):
    for name in names:
        np.testing.assert_array_equal(final_weights(ours, name), final_weights(theirs, name))
    assert records(ours) == records(theirs)


@pytest.mark.slow
def test_two_workers_equal_one_process(tmp_path):
    options = {"normalise": True, "global_clipnorm": 0.1}
    (first, _), (second, _) = finish_workers(tmp_path / "two", **options)
    assert first.endswith(second)  # the first worker says what the run is before that
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
    for name in ("two", "undisturbed"):
        finish_workers(tmp_path / name, **options)
    assert_same_run(tmp_path / "two", tmp_path / "undisturbed", "last")


WORKERS = ["a:1", "b:1"]
FIRST = {"type": "worker", "index": 0}
SLURM_STEP = {"PROCID": 2, "STEP_NUM_TASKS": 3, "STEP_NODELIST": "n[1-2]", "STEP_TASKS_PER_NODE": "2,1", "JOB_ID": 7}


def worker_told(told, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", told if isinstance(told, str) else json.dumps(told))
    return worker_of(TinyConfig(strategy="multiworker"))


@pytest.mark.parametrize(("job", "index", "place"), [("chief", 0, 0), ("worker", 0, 1), ("worker", 1, 2)])
def test_a_chief_comes_before_the_workers_and_is_the_one_that_writes(job, index, place, monkeypatch):
    told = {"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"]}, "task": {"type": job, "index": index}}
    assert worker_told(told, monkeypatch) == TrainingWorker(3, place)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ("{", "TF_CONFIG must be like"),
        ({"cluster": {"worker": WORKERS}}, "TF_CONFIG must be like"),
        ({"cluster": WORKERS, "task": FIRST}, "TF_CONFIG must be like"),
        ({"cluster": {"worker": WORKERS[0]}, "task": FIRST}, "TF_CONFIG must be like"),
        ({"cluster": {"worker": WORKERS}, "task": {"type": "worker", "index": 0.5}}, "TF_CONFIG must be like"),
        ({"cluster": {"worker": WORKERS}, "task": {"type": "boss", "index": 0}}, "must be a chief or a worker of its"),
        ({"cluster": {"worker": WORKERS}, "task": {"type": "worker", "index": 2}}, "must be a chief or a worker of"),
        ({"cluster": {"worker": WORKERS}, "task": {"type": "worker", "index": -1}}, "must be a chief or a worker of"),
        ({"cluster": {"chief": WORKERS}, "task": FIRST}, "must have workers, and one chief at most"),
        ({"cluster": {"worker": WORKERS, "ps": ["c:3"]}, "task": FIRST}, "must have workers, and one chief at most"),
        ({"cluster": {"worker": ["a:http"]}, "task": FIRST}, "must be host:port, port 1 to 65535. Received: 'a:http'"),
        ({"cluster": {"worker": ["a:99999"]}, "task": FIRST}, "must be host:port, port 1 to 65535. Received: 'a:9999"),
        ({"cluster": {"worker": [1, 2]}, "task": FIRST}, "must be host:port, port 1 to 65535. Received: 1"),
        ({"cluster": {"worker": ["a:1", "a:1"]}, "task": FIRST}, "The addresses in TF_CONFIG must differ"),
    ],
)
def test_a_cluster_of_the_wrong_shape_is_refused(told, message, monkeypatch):
    with pytest.raises(ConfigError, match=message):
        worker_told(told, monkeypatch)


@pytest.fixture
def slurm(monkeypatch):
    """Returns the worker that SLURM's variables describe, with some changed."""

    def worker(**changed):
        monkeypatch.setenv("TF_CONFIG", "")
        monkeypatch.delenv("TF_CONFIG")  # at the end, what SLURM's variables make of it goes too
        for name, value in {**SLURM_STEP, **changed}.items():
            monkeypatch.setenv(f"SLURM_{name}", str(value))
        return worker_of(TinyConfig(strategy="multiworker"))

    return worker


def test_slurm_tells_the_cluster_where_tf_config_does_not(slurm):
    assert slurm() == TrainingWorker(3, 2)
    assert json.loads(os.environ["TF_CONFIG"])["cluster"] == {"worker": ["n1:12007", "n1:12008", "n2:12007"]}


@pytest.mark.parametrize("name", ["PROCID", "STEP_TASKS_PER_NODE", "JOB_ID"])
def test_slurm_variables_of_the_wrong_shape_are_refused(name, slurm):
    message = "SLURM's variables must be those of a step that srun started. Received: SLURM_PROCID="
    with pytest.raises(ConfigError, match=message):
        slurm(**{name: "x"})


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
    for name in ("two", "undisturbed"):
        finish_workers(tmp_path / name, ("chief", "worker"), **options)
    assert_same_run(tmp_path / "two", tmp_path / "undisturbed", "last", "average")


@pytest.mark.slow
def test_workers_with_other_flags_are_refused_on_all_and_nothing_is_written(tmp_path):
    """Each would update its copy of the weights in its own way, and nobody would notice."""
    first, second = ({"learning_rate": rate} for rate in (1e-2, 1e-3))
    for _, errors in finish_workers(tmp_path / "two", each=(first, second), code=2):
        assert "All workers must have the same data and the same flags" in errors
        assert "Received: others than those of worker 0, on worker 1" in errors
    assert not (tmp_path / "two").exists()


@pytest.mark.slow
def test_workers_that_would_resume_at_different_steps_are_refused_on_all(tmp_path):
    folders = [tmp_path / "first", tmp_path / "second"]
    finish_workers(folders)
    assert not folders[1].exists()  # only the first writes, so a folder of one's own has nothing to resume from
    before = (folders[0] / "metrics.jsonl").read_text()
    for _, errors in finish_workers(folders, epochs=8, code=2):
        assert "All workers must resume at the same step" in errors
        assert "Received: steps 20, 0" in errors
    assert (folders[0] / "metrics.jsonl").read_text() == before
