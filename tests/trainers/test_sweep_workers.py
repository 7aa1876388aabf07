"""A sweep by several processes: the same bits with any number of them, whoever dies."""

import json
import random
import signal
import time

import psutil
import pytest

from tests.commands import free_port
from tests.trainers.helpers import finish, program, records, status, wait_for
from tests.trainers.tiny_sweep import start, values_of
from trainers.engine.flags import make_config
from trainers.sweeps import workers
from trainers.sweeps.results import read_results
from trainers.sweeps.space import sweep_config_class
from trainers.sweeps.sweep import sweep

ROLE = {"KERASTUNER_ORACLE_IP": "127.0.0.1", "KERASTUNER_ORACLE_PORT": str(free_port())}
LONGER = {"steps": 60, "step_seconds": 0.03}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep by one process, and what it printed."""
    folder = tmp_path_factory.mktemp("sweep") / "run"
    return folder, finish(start(folder))[0]


def role(name):
    return {**ROLE, "KERASTUNER_TUNER_ID": name}


def workers_of(process):
    """The processes that run trials, not the one that forks them."""
    return [child for child in psutil.Process(process.pid).children(recursive=True) if not child.children()]


@pytest.mark.slow
def test_two_workers_share_the_trials_and_change_no_bit(swept, tmp_path):
    folder, said = swept
    output, _ = finish(start(tmp_path / "run", workers=2))
    assert output == said
    assert values_of(tmp_path / "run") == values_of(folder)
    ours, alone = (
        {result.trial: records(path / "trials" / result.trial) for result in read_results(path)}
        for path in (tmp_path / "run", folder)
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
def test_a_dead_worker_is_replaced_and_a_silent_one_loses_its_trial(tmp_path):
    options = {**LONGER, "worker_timeout": 3}
    calm, _ = finish(start(tmp_path / "calm", **options))
    process = start(tmp_path / "run", workers=2, **options)
    wait_for(lambda: read_results(tmp_path / "run"))
    workers_of(process)[0].kill()
    wait_for(lambda: len(read_results(tmp_path / "run")) >= 3)
    workers_of(process)[-1].send_signal(signal.SIGSTOP)
    output, _ = finish(process)
    assert output == calm
    assert values_of(tmp_path / "run") == values_of(tmp_path / "calm")


@pytest.mark.slow
def test_chief_and_workers_end_when_their_starter_is_killed(tmp_path):
    process = start(tmp_path / "run", workers=2, **LONGER)
    wait_for(lambda: read_results(tmp_path / "run"))
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) == 3  # two workers and the process that forks them
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive


@pytest.mark.slow
def test_a_killed_sweep_ends_like_an_undisturbed_one(swept, tmp_path):
    generator = random.Random(0)
    for _ in range(3):
        process = start(tmp_path / "run")
        wait_for(lambda process=process: (tmp_path / "run/trials").exists() or process.poll() is not None, 60)
        time.sleep(generator.uniform(0, 4))
        process.kill()
        process.communicate()
    output, _ = finish(start(tmp_path / "run"))
    folder, said = swept
    assert output == said
    assert values_of(tmp_path / "run") == values_of(folder)


@pytest.mark.slow
def test_workers_of_several_machines_join_leave_and_are_refused_if_they_are_foreign(swept, tmp_path):
    """A worker before its chief, one with another configuration, one that ends in the middle."""
    first = start(tmp_path / "run", role("worker0"))
    foreign = start(tmp_path / "run", role("foreign"), steps=7)
    chief = start(tmp_path / "run", role("chief"))
    _, errors = finish(foreign, code=2)
    assert "whose run has steps=6, not 7" in errors
    wait_for(lambda: read_results(tmp_path / "run"))
    second = start(tmp_path / "run", role("worker1"))
    first.send_signal(signal.SIGTERM)
    finish(first, code=143)
    output, _ = finish(chief)
    folder, said = swept
    assert output == said
    assert values_of(tmp_path / "run") == values_of(folder)
    assert status(tmp_path / "run") == "done\n"
    second.communicate(timeout=60)
    assert second.returncode == 0


@pytest.mark.slow
def test_a_second_start_of_the_program_is_refused(tmp_path):
    process = start(tmp_path / "run", **LONGER)
    wait_for(lambda: read_results(tmp_path / "run"))
    _, errors = finish(start(tmp_path / "run", **LONGER), code=2)
    assert "--output_dir must not be in use by another process" in errors
    finish(process)
    assert len(read_results(tmp_path / "run")) == 8


@pytest.mark.parametrize(
    ("named", "count", "shares"),
    [
        ("0,1,2,3", 2, ["0,2", "1,3"]),
        ("5", 3, ["5", "5", "5"]),
        ("GPU-a,GPU-b", 2, ["GPU-a", "GPU-b"]),
        ("", 2, ["", ""]),
        (None, 2, ["0", "1"]),  # as the folder of devices has them
    ],
)
def test_workers_share_the_gpus_out_among_themselves(named, count, shares, tmp_path, monkeypatch):
    devices, told = tmp_path / "devices", tmp_path / "told"
    for folder in (devices, told):
        folder.mkdir()
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (devices / name).touch()
    monkeypatch.delenv(workers.GPUS, raising=False)
    environment = {} if named is None else {workers.GPUS: named}
    finish(program("tests.trainers.gpu_shares", str(count), str(devices), str(told), **environment))
    assert [(told / f"worker{number}").read_text() for number in range(count)] == shares


def test_a_dry_run_of_a_sweep_reckons_with_all_its_runs_and_writes_nothing(tmp_path):
    flags = {"learning_rates": (1e-3, 1e-2), "beta_2s": (0.9,), "seeds": (1, 2, 3), "output_dir": str(tmp_path / "x")}
    text = sweep(
        make_config(sweep_config_class("image_classification"), {**flags, "dry_run": True, "epochs": 1, "threads": 0})
    )
    assert "for 18 runs" in text
    assert not (tmp_path / "x").exists()
