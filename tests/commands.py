"""The commands of a page, run in a scratch folder with `tests/shim.py` in place of every program, and their flags."""

import contextlib
import importlib.util
import itertools
import json
import os
import pathlib
import re
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import time

import keras
import pytest

from tests.pages import ROOT, blocks, write_files
from tests.shim import COMMANDS

BASH = shutil.which("bash")
ROLE = re.compile(r"export (TF_CONFIG)=")
CLUSTER = re.compile(r"\bray (start|symmetric-run)\b")  # in a network of its own, which ends with it
SECONDS = 300  # for one block, or for those that belong together


def recorded(block, folder):
    """The commands that a block would start, in order, including all iterations of its loops."""
    record = folder / "record"
    record.touch()
    command = [BASH, "-euo", "pipefail", "-c", block.replace("> /shared/", f"> {folder}/")]
    subprocess.run(command, cwd=folder, env=environment(folder, SHIM_RECORD=str(record)), check=True, timeout=60)
    calls = [json.loads(line) for line in record.read_text().splitlines()]
    record.unlink()
    return calls


def programs():
    """The modules that have a main."""
    folder = ROOT / "trainers"
    mains = [*folder.glob("[!_]*.py"), *(path.parent for path in folder.glob("*/__main__.py"))]
    return sorted(f"trainers.{path.stem}" for path in mains)


@contextlib.contextmanager
def forgetting_modules_of(folder):
    """Forgets the modules that were imported from a scratch folder."""
    yield
    for name, module in list(sys.modules.items()):
        if folder != ROOT and folder in pathlib.Path(getattr(module, "__file__", None) or "/").parents:
            del sys.modules[name]


def config_class_of(arguments, folder):
    """The config class of a program and its flags: what its main hands to `run_program`."""
    from trainers.engine import program
    from trainers.tasks import CONFIGS

    path = pathlib.Path(
        importlib.util.find_spec(arguments[1]).origin if arguments[0] == "-m" else folder / arguments[0]
    )
    path = path.with_name("__main__.py") if path.name == "__init__.py" else path
    # Any other main would do its work here.
    assert re.search(r"\brun_(program|task)\(", path.read_text()), f"{path} must start by `run_program`"
    found = []
    with pytest.MonkeyPatch.context() as patch, forgetting_modules_of(folder):
        patch.setattr(program, "run_program", lambda config_class, *_: found.append(config_class))
        patch.setattr(sys, "argv", arguments)
        patch.setenv("KERAS_BACKEND", keras.backend.backend())  # reset afterwards: a main may choose another
        patch.setattr(sys, "path", [str(folder), *sys.path])
        tasks = dict(CONFIGS)
        runpy.run_path(str(path), run_name="__main__")
        CONFIGS.clear()
        CONFIGS.update(tasks)
    [config_class] = found
    return config_class


def run_page(text, folder, data=None):
    """Runs every block, one after the other; `data` is the folder that replaces /data."""
    write_files(text, folder)
    (folder / "configs").symlink_to(ROOT / "configs")
    text = on_this_machine(text, folder, data)
    for _, group in itertools.groupby(enumerate(blocks("sh", text)), key=_belongs_together):
        run_together([block for _, block in group], folder)


def _belongs_together(numbered):
    """Blocks that assign roles are for several machines, which wait for each other; all others run alone."""
    number, block = numbered
    role = ROLE.match(block)
    return role[1] if role else number


def on_this_machine(text, folder, data):
    """A page's commands with folders and addresses of this machine, and only the first iteration of every loop."""
    ports = {}
    text = re.sub(r"(?<![\w/])/data/", f"{data}/", text)
    text = re.sub(r"(?<![\w/])/shared/", f"{folder}/shared/", text)
    text = re.sub(r"\bhost\d+:6379\b", "127.0.0.1:6379", text)  # Ray's, which has a network of its own
    text = re.sub(r"\bhost\d+:\d+", lambda match: f"127.0.0.1:{ports.setdefault(match[0], free_port())}", text)
    text = re.sub(r"(?<==)host\d+\b", "127.0.0.1", text)
    return re.sub(r"\bfor (\w+) in (\S+) [^;\n]*;", r"for \1 in \2;", text)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_together(group, folder):
    """Starts a shell for each block and waits for all; the first that fails ends the others too."""
    outputs, shells = [folder / f"output-{number}" for number in range(len(group))], []
    for block, output in zip(group, outputs, strict=True):
        with output.open("w") as file:
            how = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": subprocess.STDOUT, "start_new_session": True}
            shells.append(subprocess.Popen(bash(block), cwd=folder, env=environment(folder), **how))
    try:
        _wait(shells)
    finally:
        for shell in shells:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
                shell.wait()
    ends = zip(group, shells, outputs, strict=True)
    failed = [
        f"exit code {shell.returncode} of\n{block}\n{output.read_text()[-3000:]}"
        for block, shell, output in ends
        if shell.returncode
    ]
    assert not failed, "\n\n".join(failed)


def bash(block):
    """The command that runs a block."""
    command = [BASH, "-euo", "pipefail", "-c", block]
    if not CLUSTER.search(block):
        return command
    from tests.trainers.nodes import isolation

    return [*isolation(), *command]


def _wait(shells):
    deadline = time.monotonic() + SECONDS
    while any(shell.poll() is None for shell in shells) and time.monotonic() < deadline:
        if any(shell.poll() for shell in shells):
            time.sleep(1)  # the others may have errors to report, too
            return
        time.sleep(0.05)


def environment(folder, **others):
    """An environment with only the shim on the PATH: a command that it does not know fails."""
    path = folder / "bin"
    if not path.exists():
        path.mkdir()
        for name in COMMANDS:
            script = path / name
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/tests/shim.py" {name} "$@"\n')
            script.chmod(0o755)
    own = {"PATH": str(path), "SHIM_PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
    return {**os.environ, **own, **quiet, **others}
