"""A sweep by several processes: the same bits with any number of them, whoever dies."""

import json
import os
import random
import signal
import socket
import sys
import time

import psutil
import pytest

from tests.trainers.helpers import finish, program, records, wait_for
from tests.trainers.nodes import isolated
from tests.trainers.tiny_sweep import settings, start, values_of
from trainers.engine.checkpoint import Checkpoints
from trainers.results.layout import CHECKPOINTS, RECORDS
from trainers.results.results_csv import read_results
from trainers.sweep import sweep
from trainers.sweeps import cluster
from trainers.sweeps.cluster import differences, surroundings
from trainers.system.environment import versions
from trainers.system.errors import ConfigError

pytestmark = pytest.mark.xdist_group("ray")  # one at a time
LONGER = {"steps": 60, "step_seconds": 0.03}
WORKER = "ray::Worker"


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep by one process, and what it printed."""
    folder = tmp_path_factory.mktemp("sweep") / "run"
    return folder, finish(start(folder))[0]


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """The same with runs that take seconds."""
    folder = tmp_path_factory.mktemp("calm") / "run"
    return folder, finish(start(folder, **LONGER))[0]


def ends_like(undisturbed, run, process):
    """Waits for the end of the sweep in `run`, compares it with an undisturbed one, and returns its errors."""
    folder, said = undisturbed
    output, errors = finish(process)
    assert output == said
    assert values_of(run) == values_of(folder)
    return errors


def children_of(process):
    return psutil.Process(process.pid).children(recursive=True)


def told(ask):
    """What a process is asked for; nothing if it has ended in the meantime."""
    try:
        return ask()
    except psutil.NoSuchProcess:
        return []


def workers_of(process, doing=".run"):
    """The processes that run trials, not the other ones of Ray."""
    return [child for child in children_of(process) if "".join(told(child.cmdline)[:1]).startswith(WORKER + doing)]


def test_two_workers_share_the_trials_and_change_no_bit(swept, tmp_path):
    ends_like(swept, tmp_path / "run", start(tmp_path / "run", workers=2))
    ours, alone = (
        {result.trial: records(path / "trials" / result.trial) for result in read_results(path)}
        for path in (tmp_path / "run", swept[0])
    )
    assert ours == alone


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "config"),
    [
        ("image_classification", "reproduce/resnet.flags"),
        ("language_modeling", "reproduce/language.flags"),
        ("machine_translation", "reproduce/translation.flags"),
    ],
)
def test_a_trial_has_the_bits_of_a_run_of_its_own_with_any_number_of_workers(task, config, tmp_path):
    flags = [f"--flagfile=configs/{config}", "--steps=6", "--log_every=2", "--checkpoint_every=6", "--noprogress"]
    grid = ["--seeds=1", "--warmups=untuned_linear,radam"]
    for count in (1, 2):
        finish(program("trainers.sweep", *flags, *grid, f"--workers={count}", f"--output_dir={tmp_path / str(count)}"))
    name = "rate-0.003_beta-0.99_radam_seed-1"
    document = json.loads((tmp_path / "1/trials" / name / "config.json").read_text())
    assert document["resolved"]["devices"]["intra_op_threads"] == 1
    again = [f"--config={tmp_path / '1/trials' / name / 'config.json'}", f"--output_dir={tmp_path / 'alone'}"]
    finish(program(f"trainers.{task}", *again, "--noprogress"))
    curves = [
        records(path) for path in (tmp_path / "1/trials" / name, tmp_path / "2/trials" / name, tmp_path / "alone")
    ]
    assert curves[0] == curves[1] == curves[2]
    assert values_of(tmp_path / "1") == values_of(tmp_path / "2")
    assert len(values_of(tmp_path / "1")) == 2


@pytest.mark.slow
def test_a_dead_worker_is_replaced_and_a_silent_one_loses_its_trial(calm, tmp_path):
    process = start(tmp_path / "run", workers=2, worker_timeout=3, **LONGER)
    wait_for(lambda: len(read_results(tmp_path / "run")) >= 1 and workers_of(process))
    workers_of(process)[0].kill()
    wait_for(lambda: len(read_results(tmp_path / "run")) >= 3 and workers_of(process))
    workers_of(process)[-1].send_signal(signal.SIGSTOP)
    assert "(raylet)" not in ends_like(calm, tmp_path / "run", process)
    taken = [path for path in (tmp_path / "run/trials").iterdir() if "@2" in path.name]
    assert len(taken) >= 2  # those of the two workers, and of one that a busy machine has kept silent


@pytest.mark.slow
def test_a_lost_ray_does_not_stop_workers_from_writing_and_nothing_is_run_twice(calm, tmp_path):
    """Without its raylet, Ray calls workers dead that are alive."""
    process = start(tmp_path / "run", workers=2, **LONGER)
    wait_for(lambda: read_results(tmp_path / "run"))
    everyone = children_of(process)
    next(child for child in everyone if child.name() == "raylet").kill()
    _, errors = finish(process, code=4, seconds=120)
    assert "incomplete: Ray has ended. Run the same command again to resume" in errors
    ends_like(calm, tmp_path / "run", start(tmp_path / "run", workers=2, worker_timeout=20, **LONGER))
    assert len(list((tmp_path / "run/trials").glob("*/result.json"))) == 8


@pytest.mark.slow
def test_workers_end_when_the_driver_is_killed_and_the_next_start_resumes(calm, tmp_path):
    process = start(tmp_path / "run", workers=2, **LONGER)
    wait_for(lambda: read_results(tmp_path / "run"))
    workers = workers_of(process, "")
    assert len(workers) == 2
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert not alive
    ends_like(calm, tmp_path / "run", start(tmp_path / "run", workers=2, **LONGER))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_every_trial_and_leaves_no_process(number, calm, tmp_path):
    process = start(tmp_path / "run", workers=2, **{**LONGER, "checkpoint_every": 60}, process_group=0)

    def running():
        trials = (tmp_path / "run/trials").iterdir()
        return [path for path in trials if (path / RECORDS).exists() and not (path / "result.json").exists()]

    wait_for(lambda: read_results(tmp_path / "run") and len(running()) == 2)
    everyone = children_of(process)
    began = time.monotonic()
    os.killpg(process.pid, number)  # as Ctrl-C does, which reaches Ray's processes too
    _, errors = finish(process, code=128 + number)
    assert time.monotonic() - began < 10
    assert f"stopped by {number.name}: run the same command again to resume" in errors
    _, alive = psutil.wait_procs(everyone, timeout=5)
    assert not alive
    assert running()  # one of the two may have ended in the meantime
    assert all(Checkpoints(path / CHECKPOINTS).newest_header()["step"] > 0 for path in running())
    ends_like(calm, tmp_path / "run", start(tmp_path / "run", workers=2, **{**LONGER, "checkpoint_every": 60}))


@pytest.mark.slow
def test_ray_listens_on_loopback_only_and_wants_a_token(tmp_path):
    process = start(tmp_path / "run", workers=2, **{**LONGER, "steps": 10_000})
    try:
        wait_for(lambda: len(workers_of(process)) == 2)
        everyone = [psutil.Process(process.pid), *children_of(process)]
        sockets = [each for one in everyone for each in told(lambda one=one: one.net_connections("inet"))]
        listening = [each.laddr for each in sockets if each.status == "LISTEN"]
        assert {address.ip for address in listening} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
        assert {each.nice() for each in workers_of(process, "")} == {0}
        [raylet] = [each for each in everyone if told(each.name) == "raylet"]
        [address] = [part.partition("=")[2] for part in raylet.cmdline() if part.startswith("--gcs-address=")]
        home = tmp_path / "home"  # without the token that Ray may have kept there
        home.mkdir()
        for mode, token in (("token", "0" * 64), ("token", ""), ("", ""), ("disabled", "")):
            given = {"RAY_AUTH_MODE": mode, "RAY_AUTH_TOKEN": token}
            foreign = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "HOME": str(home), **given}
            _, errors = finish(start(tmp_path / "other", foreign, ray_address=address), code=2)
            assert f"Received: '{address}' (a wrong or no token:" in errors.splitlines()[-1]
        assert not (tmp_path / "other").exists()
    finally:
        process.terminate()
    finish(process, code=143)


@pytest.mark.slow
def test_a_killed_sweep_ends_like_an_undisturbed_one(swept, tmp_path):
    generator = random.Random(0)
    for _ in range(3):
        process = start(tmp_path / "run")
        wait_for(lambda process=process: (tmp_path / "run/trials").exists() or process.poll() is not None, 60)
        time.sleep(generator.uniform(0, 4))
        process.kill()
        process.communicate()
    ends_like(swept, tmp_path / "run", start(tmp_path / "run"))


@pytest.mark.slow
def test_a_cluster_is_used_as_it_grows_and_shrinks_and_nodes_that_differ_are_not(tmp_path):
    told = json.loads(isolated(sys.executable, "-m", "tests.trainers.joining", str(tmp_path)).splitlines()[-1])
    rule = "error: Every node must have this checkout, its packages, and --output_dir at the same paths. Received: "
    assert told["folder"].startswith(rule)
    assert told["folder"].endswith(f"no --output_dir={tmp_path}/shared/run")
    assert told["version"].startswith(rule)
    assert "keras-hub 0.0.1 instead of" in told["version"]
    assert told["room"].endswith("1 CPUs and 8 GPUs, and no node has more than 2 CPUs and 1 GPUs")
    assert told["written"] == []
    assert told["counts"] == [1, 2]
    assert "a worker is not used: " in told["warned"]
    assert told["gpus"] == [["0"], ["-1"]]
    assert {status for status, *_ in values_of(tmp_path / "shared/run").values()} == {"done"}


def test_ray_that_is_not_installed_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"need Ray: pip install -e '.\[ray\]'. Received: Ray is not installed"):
        sweep(settings(tmp_path / "run", workers=2))
    assert not (tmp_path / "run").exists()
    sweep(settings(tmp_path / "run"))  # one worker is this process
    assert len(read_results(tmp_path / "run")) == 8


def test_another_version_or_revision_of_a_node_is_named():
    assert differences(surroundings(), "run", os.sep) == ""
    others = surroundings() | {"keras": "2.0", "git revision": "0" * 40}
    said = differences(others, "run", os.sep)
    assert said.startswith(f"{socket.gethostname()} has keras {versions()['keras']} instead of 2.0, git revision ")
    assert said.endswith(f" instead of {'0' * 40}")


@pytest.mark.parametrize(
    ("address", "received"),
    [
        ("127.0.0.1:9", "'127.0.0.1:9', which does not answer"),
        ("127.0.0.1:99999", "'127.0.0.1:99999', which does not answer"),
        ("ray://127.0.0.1:10001", "'ray://127.0.0.1:10001'"),
        ("somewhere", "'somewhere'"),
    ],
)
@pytest.mark.parametrize("by_variable", [False, True])
def test_an_address_without_ray_is_refused_soon(address, received, by_variable, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", address if by_variable else "")
    flag = {} if by_variable else {"ray_address": address}
    began = time.monotonic()
    with pytest.raises(ConfigError, match=f"--ray_address must be the host:port of a Ray .* Received: {received}"):
        sweep(settings(tmp_path / "run", **flag))
    assert time.monotonic() - began < 10
    assert not (tmp_path / "run").exists()


def test_an_address_that_is_silent_is_refused_after_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ConfigError, match=rf"Received: '{address}' \(it does not answer within 1 s\)"):
            sweep(settings(tmp_path / "run", ray_address=address))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_more_gpus_than_there_are_and_bad_data_are_refused_before_anything_is_written(tmp_path):
    _, errors = finish(start(tmp_path / "run", workers=2, gpus_per_trial=3), code=2)
    assert "must not exceed what a node of the cluster has. Received: 1 CPUs and 3 GPUs" in errors.splitlines()[-1]
    _, errors = finish(start(tmp_path / "run", workers=2, data="/nowhere"), code=2)
    assert errors.splitlines()[-1] == "error: --data must be a folder. Received: /nowhere"
    assert not (tmp_path / "run").exists()
