"""The chief and its workers over the wire, on loopback."""

import itertools
import socket
import time

import pytest

from tests.trainers.coordination import CELLS, coordinator, ended, finish, in_thread, result_of
from tests.trainers.helpers import wait_for
from tests.trainers.tiny_sweep import settings
from trainers.engine.flags import ConfigError
from trainers.sweeps import search
from trainers.sweeps.cells import Cell
from trainers.sweeps.coordinator import REFUSED, RUN, STOP, Coordinator
from trainers.sweeps.service import ChiefClient, serve
from trainers.sweeps.sweep import sweep
from trainers.sweeps.trial import Trials
from trainers.sweeps.worker import work


@pytest.fixture
def address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def test_a_chief_that_finds_everything_done_needs_no_worker(address):
    thread, errors = in_thread(serve, coordinator(known=map(result_of, CELLS)), address)
    assert ended(thread)
    assert errors == []


def test_numbers_arrive_over_the_wire_to_the_last_digit(address):
    cell = Cell(1 / 3, 1 - 1e-9, "linear", 1, (("warmup_period", 0.1 + 0.2), ("flag", True), ("name", "a|b")))
    chief = coordinator(timeout=20, cells=[cell])
    thread, errors = in_thread(serve, chief, address)
    client = ChiefClient(address, "a", "same", 20)
    answer, job = client.ask()
    assert (answer.status, job["values"]) == (RUN, cell.values)
    client.finish(job["id"], {"result": result_of(cell).to_json()})
    assert client.ask()[0].status == STOP
    assert ended(thread)
    assert errors == []
    assert chief.fresh()[0].values == cell.values


@pytest.mark.slow
def test_a_worker_gives_signs_of_life_while_it_works(address):
    chief = coordinator(timeout=2, cells=CELLS[:1])
    thread, _ = in_thread(serve, chief, address)
    client = ChiefClient(address, "a", "same", 2)
    _, job = client.ask()
    with client.beating(job["id"]):
        time.sleep(4)
    assert list(chief._jobs) == [job["id"]]
    wait_for(lambda: not chief._jobs, seconds=20)
    assert client.ask()[1]["take_over"]
    client.finish(job["id"], {"result": result_of(CELLS[0]).to_json()})
    assert ended(thread)


def test_an_error_in_the_chief_ends_it(address, monkeypatch):
    def full(self, worker, fingerprint):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Coordinator, "ask", full)
    thread, errors = in_thread(serve, coordinator(), address)
    with pytest.raises(
        ConfigError, match="The chief must answer within --worker_timeout=20 seconds. Received: UNKNOWN"
    ):
        ChiefClient(address, "a", "same", 20).ask()
    assert ended(thread)
    assert [str(error) for error in errors] == ["[Errno 28] No space left on device"]


def test_an_oracle_of_keras_tuner_that_raises_an_error_can_be_called_again():
    """Its own lock would be held for ever."""
    source = search.SearchSource(settings("-", search="random", trials=2), "val_error", "min")
    draw, calls = source.oracle.populate_space, itertools.count()

    def failing(identifier):
        if next(calls) == 0:
            raise OSError("full")
        return draw(identifier)

    source.oracle.populate_space = failing
    with pytest.raises(OSError, match="full"):
        source.next()
    found = []
    thread, _ = in_thread(lambda: found.append(source.next()))
    assert ended(thread)
    assert found[0].seed == 1


def test_the_chief_does_not_wait_for_a_worker_that_left(address, monkeypatch):
    monkeypatch.setattr("trainers.sweeps.service.LINGER_SECONDS", 0.5)
    chief = coordinator(timeout=600)
    thread, _ = in_thread(serve, chief, address)
    here, gone = (ChiefClient(address, name, "same", 20) for name in ("here", "gone"))
    jobs = [client.ask()[1] for client in (here, gone)]
    for client, job, cell in zip((here, gone), jobs, CELLS, strict=True):
        client.finish(job["id"], {"result": result_of(cell).to_json()})
    assert here.ask()[0].status == STOP
    assert not chief.all_told
    assert ended(thread)


def test_a_worker_without_a_chief_ends(address):
    with pytest.raises(ConfigError, match=f"Received: DEADLINE_EXCEEDED from {address}"):
        ChiefClient(address, "a", "same", 0.5).ask()


def test_a_worker_with_other_flags_ends_with_an_error(address, tmp_path):
    chief = coordinator()
    in_thread(serve, chief, address)
    with pytest.raises(ConfigError, match="A worker must have the flags of its chief"):
        work(ChiefClient(address, "a", "other", 20), Trials(settings(tmp_path / "run")))
    assert not (tmp_path / "run").exists()


def test_a_worker_that_comes_too_late_finds_the_sweep_done(address, tmp_path, monkeypatch):
    sweep(settings(tmp_path, learning_rates=(1e-2,), seeds=(1,), warmups=("none",)))
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "late")
    monkeypatch.setenv("KERASTUNER_ORACLE_IP", address.partition(":")[0])
    monkeypatch.setenv("KERASTUNER_ORACLE_PORT", address.partition(":")[2])
    assert sweep(settings(tmp_path, worker_timeout=0.5)) == "late: no more trials"
    (tmp_path / "status").write_text("running\n")
    with pytest.raises(ConfigError, match="The chief must answer within --worker_timeout=0.5 seconds"):
        sweep(settings(tmp_path, worker_timeout=0.5))


def test_a_tuner_of_another_kind_does_not_disturb_the_chief(address):
    """One of keras-tuner's own that has the wrong port."""
    chief = coordinator(cells=CELLS[:1], timeout=20)
    thread, errors = in_thread(serve, chief, address)
    stub = ChiefClient(address, "a", "same", 20)
    stub._tuner_id = "tuner0"
    assert stub.ask()[0].status == REFUSED
    stub.finish("0001", {})
    with stub.beating("0001"):
        time.sleep(0.2)
    assert not chief.beat("0001")
    job = chief.ask("a", "same").job
    finish(chief, job)
    assert ended(thread)
    assert errors == []
