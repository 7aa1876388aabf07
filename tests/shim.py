"""Replaces `python`, `make`, `pip` and others in the commands of README and docs, as the only programs on their PATH.

python FLAGS   runs the program with more flags, so that it takes seconds; absl takes the last value of a flag
make TARGET    runs `make -n`: running the tests inside a test would never end
pip install    checks that setup.py has what is to be installed; tests/wheel/try installs it
ray, openssl   run as they are; `ray job submit`, which needs another cluster, only checks its program
srun           runs its command once, on this machine

With SHIM_RECORD in the environment, it only records the command.
"""

import ast
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
STEPS = ("--steps=2", "--noprogress")
GRID = (*STEPS, "--learning_rates=1e-3", "--beta_2s=0.99", "--seeds=1,2")
TRANSLATION = ("--pairs=200", "--vocabulary_size=330", "--max_tokens=512", "--beam=1", "--extra_length=1")
SMALLER = {  # must have a row for every program on a page
    "sweep_wine.py": GRID,
    "trainers.effective_warmup": (),
    "trainers.evidence": (),
    "trainers.gradient_analysis": (*STEPS, "--gradient_samples=2"),
    "trainers.image_classification": STEPS,
    "trainers.language_modeling": STEPS,
    "trainers.machine_translation": (*STEPS, *TRANSLATION),
    "trainers.report": (),
    "trainers.reproduce": ("--only=warmups",),
    "trainers.simulate": ("--iterations=50",),
    "trainers.sweep": GRID,
    "wine.py": STEPS,
}


def program(arguments):
    """The name of a program: a module, or a file."""
    return arguments[1] if arguments[:1] == ["-m"] else arguments[0]


def python(arguments):
    if program(arguments) not in SMALLER:
        sys.exit(f"tests/shim.py must have a row for every program of a page. Received: {program(arguments)}")
    return [sys.executable, *arguments, *SMALLER[program(arguments)]]


def make(arguments):
    return ["make", "-n", "-C", str(ROOT), *arguments]


def pip(arguments):
    if arguments[:1] != ["install"]:
        sys.exit(f"pip on a page must install something. Received: pip {' '.join(arguments)}")
    for requirement in arguments[1:]:
        if requirement != "-e":
            check_requirement(requirement)
    return ["true"]


def check_requirement(requirement):
    """Ends with an error unless this is the package or the checkout, with extras that setup.py has."""
    name, extras = re.fullmatch(r"([\w.-]+)(?:\[([\w,-]+)\])?", requirement).groups()
    unknown = set(extras.split(",") if extras else ()) - _extras()
    if name not in ("tfwarmup", ".") or unknown:
        sys.exit(f"A page can only install tfwarmup, with extras among {sorted(_extras())}. Received: {requirement}")


def _extras():
    nodes = ast.walk(ast.parse((ROOT / "setup.py").read_text()))
    [extras] = [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "extras_require"]
    return {ast.literal_eval(name) for name in extras.keys}


def ray(arguments):
    if arguments[:2] == ["job", "submit"]:
        python(arguments[arguments.index("--") + 2 :])
        return ["true"]
    if "--min-nodes=4" in arguments:  # there is one here
        arguments = [argument for argument in arguments if argument != "--min-nodes=4"]
    return [str(pathlib.Path(sys.executable).parent / "ray"), *arguments]


def srun(arguments):
    """The command without the options, and with the shim in place of `ray` and `python`."""
    command = arguments[next(number for number, word in enumerate(arguments) if not word.startswith("-")) :]
    words = ray(command[1:])
    after = words.index("--") + 1
    return [*words[:after], *python(words[after + 1 :])]


COMMANDS = {
    "python": python,
    "make": make,
    "pip": pip,
    "ray": ray,
    "srun": srun,
    "openssl": lambda words: ["openssl", *words],
}


def main(name, arguments):
    if "SHIM_RECORD" in os.environ:
        with open(os.environ["SHIM_RECORD"], "a") as file:
            file.write(json.dumps([name, *arguments]) + "\n")
        return 0
    command = COMMANDS[name](arguments)
    # The program must find the machine's own programs again, such as git, and those of this environment.
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["SHIM_PATH"]])
    return subprocess.run(command, env={**os.environ, "PATH": path}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
