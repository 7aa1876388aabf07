"""Runs every `sh` block of README and docs, as written and as real processes, in the order of the page.

Two modules adapt the commands. `tests/shim.py` replaces `python`, `make` and `pip`: programs get a few more flags, so
that they take seconds, and `make` only checks that the target exists (`make -n`: `make test` inside a test would never
end; `.ci/run` runs the targets). `tests/commands.py` uses small files instead of the data below /data, a scratch folder
instead of /shared, loopback instead of the hosts, and only the first iteration of a loop (`tests/test_readme.py` checks
the flags of all iterations). Commands for several machines run at the same time and talk to each other. A command or a
program that the shim does not know fails.

Commands inside a sentence or a table are not run, but tests check that their programs, flags and targets exist.
"""

import re

import pytest

from tests.commands import on_this_machine, run_page
from tests.pages import PAGES, blocks

pytestmark = pytest.mark.once
WITHOUT_STATUS = {"evidence", "report", "study"}  # programs that only read runs
WITH_COMMANDS = [name for name, path in PAGES.items() if blocks("sh", path.read_text())]


def page(*lines):
    return "\n".join(["```sh", *lines, "```", ""])


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    from tests.trainers.stand_ins import write_stand_ins

    return write_stand_ins(tmp_path_factory.mktemp("data"))


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_COMMANDS)
def test_every_command_of_a_page_runs(name, data, tmp_path):
    text = PAGES[name].read_text()
    run_page(text, tmp_path, data)
    programs = set(re.findall(r"-m trainers\.(\w+)", "".join(blocks("sh", text))))
    assert {path.read_text() for path in tmp_path.rglob("status")} == (
        {"done\n"} if programs - WITHOUT_STATUS else set()
    )


@pytest.mark.slow
def test_a_page_with_a_wrong_flag_fails(tmp_path):
    with pytest.raises(
        AssertionError, match=r"(?s)exit code 2 of\n.*\nerror: Flags must be among those of --help. Received: --wrong"
    ):
        run_page(page("python -m trainers.simulate --wrong=1 --output_dir=runs/simulation"), tmp_path)


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        (["curl http://localhost"], "exit code 127"),
        (["python -m benchmarks.simulation"], "must have a row for every program of a page. Received: benchmarks.sim"),
        (["make no-such-target"], "No rule to make target"),
        (["pip install 'tfwarmup[everything]'"], r"Received: tfwarmup\[everything\]"),
        (["pip install 'numpy'"], "Received: numpy"),
        (["pip uninstall tfwarmup"], "must install something"),
        (["make no-such-target", "make lint"], "No rule to make target"),
    ],
)
def test_a_command_that_nobody_knows_how_to_run_fails(commands, message, tmp_path):
    with pytest.raises(AssertionError, match=message):
        run_page(page(*commands), tmp_path)


def test_one_of_several_machines_that_fails_ends_the_others(tmp_path):
    waiting = page("export TF_CONFIG=0", "while :; do :; done")
    with pytest.raises(AssertionError, match=r"exit code 2 of\nexport TF_CONFIG=1"):
        run_page(waiting + page("export TF_CONFIG=1", "make no-such-target"), tmp_path)


def test_a_page_runs_on_this_machine(tmp_path):
    text = "for seed in 1 2 3; do for x in a b; do /data/x /shared/y host0:1 host1:1 host0:1; done; done # a/data/b"
    changed = on_this_machine(text, tmp_path, "/stand-ins")
    assert changed.startswith(f"for seed in 1; do for x in a; do /stand-ins/x {tmp_path}/shared/y 127.0.0.1:")
    first, second, third = changed.split("127.0.0.1:")[1:]
    assert first == third.split(";")[0] + " " != second
    assert changed.endswith("# a/data/b")
