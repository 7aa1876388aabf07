"""README and docs are correct: Python blocks run, values are right, links, programs, flags and targets exist.

`tests/test_commands.py` runs the commands themselves.
"""

import ast
import dataclasses
import functools
import importlib.util
import re
import subprocess
import sys

import pytest

from tests.commands import config_class_of, forgetting_modules_of, programs, recorded
from tests.pages import FENCE, PAGES, ROOT, anchors, blocks, header_commands, prose, write_files
from tests.shim import check_requirement
from tests.tfwarmup.helpers import BACKEND

TEXTS = {name: path.read_text() for name, path in PAGES.items()}
CONFIGS = {str(path.relative_to(ROOT)): path for path in sorted((ROOT / "configs").rglob("*.flags"))}
TARGETS = sorted({target for text in TEXTS.values() for target in re.findall(r"(?:`|\n)make ([\w-]+)", text)})
VALUES = re.compile(r"# ((?:-?[\d.]+(?:e-?\d+)?(?:, )?)+)(?:: .*)?$")

every_page = pytest.mark.parametrize("name", PAGES)
once = pytest.mark.once


def run_blocks(text, name):
    """Runs the blocks of a page one after the other, as a reader would; a comment that gives a value must be right."""
    namespace = {}
    for block in blocks("python", text):
        for statement in ast.parse(block).body:
            source = ast.get_source_segment(block, statement)
            told = VALUES.search(block.splitlines()[statement.end_lineno - 1])
            if isinstance(statement, ast.Expr) and told:
                compare(eval(compile(source, name, "eval"), namespace), told[1], source)
            else:
                exec(compile(ast.Module([statement], []), name, "exec"), namespace)
    return namespace


def compare(values, told, source):
    """Checks every digit that a comment gives."""
    values = values if isinstance(values, tuple) else (values,)
    for value, text in zip(values, told.split(", "), strict=True):
        last_digit = 10.0 ** (
            int((re.findall(r"e(-?\d+)", text) or [0])[0]) - len(text.split("e")[0].partition(".")[2])
        )
        assert abs(float(value) - float(text)) <= 0.5001 * last_digit, f"{source}  # {value}, not {text}"


@every_page
def test_every_python_block_of_a_page_runs_in_order_and_says_the_truth(name, tmp_path, monkeypatch):
    if BACKEND != "tensorflow" and "from trainers" in TEXTS[name]:
        pytest.skip("the trainers run on TensorFlow")
    write_files(TEXTS[name], tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with forgetting_modules_of(tmp_path):
        run_blocks(TEXTS[name], name)


def test_a_comment_with_a_wrong_value_fails():
    run_blocks("```python\n1 / 3  # 0.333\n2, 1 / 8  # 2, 0.125: both\n5e-7  # 5e-07\n```\n", "page")
    for wrong in ("1 / 3  # 0.334", "2, 3  # 2, 4", "5e-7  # 6e-07"):
        with pytest.raises(AssertionError):
            run_blocks(f"```python\n{wrong}\n```\n", "page")


@every_page
def test_every_block_is_one_that_a_test_runs(name):
    # tests/test_package.py compares the BibTeX entries with CITATION.cff.
    assert {language for language, _ in FENCE.findall(TEXTS[name])} <= {"python", "sh", "bibtex", "text"}
    assert TEXTS[name].count("```") == 2 * len(FENCE.findall(TEXTS[name]))


@pytest.mark.parametrize("target", TARGETS)
def test_every_make_target_exists(target):
    subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.slow
@once
def test_the_pictures_are_those_that_make_figures_draws(tmp_path):
    from tfwarmup.analysis.simulation import simulate_updates
    from trainers.evidence.__main__ import EvidenceConfig
    from trainers.evidence.program import judge_sweeps
    from trainers.figures.paper import draw_effective_periods, draw_factors, draw_magnitudes
    from trainers.study.__main__ import StudyConfig
    from trainers.study.program import sum_up

    draw_factors(tmp_path, beta_2=0.999, updates=5000)
    draw_effective_periods(tmp_path)
    draw_magnitudes(tmp_path, simulate_updates(seed=1), "none", "One simulation of 25,000 parameters, seed 1.")
    kept = ROOT / "docs/results"
    runs = (str(kept),) if any(kept.glob("*/config.json")) else ()
    judge_sweeps(EvidenceConfig(runs, output_dir=str(tmp_path)))
    sum_up(StudyConfig((*runs, str(ROOT / "docs/study")), output_dir=str(tmp_path)))
    drawn = {path.name: path.read_text() for path in tmp_path.glob("*.svg")}
    shown = {path.name: path.read_text() for path in (ROOT / "docs/figures").glob("*.svg")}
    assert shown.keys() <= drawn.keys()  # no page shows the failures of every sweep
    for name in shown:
        assert drawn[name] == shown[name], name


@every_page
def test_everything_that_a_page_names_exists(name):
    text = TEXTS[name]
    assert name == "README.md" or f"(docs/{name})" in TEXTS["README.md"]
    for link in re.findall(r"\]\((?!http)([^)]+)\)", text):
        file, _, anchor = link.partition("#")
        path = PAGES[name].parent / file if file else PAGES[name]
        assert path.exists(), link
        assert not anchor or anchor in anchors(path.read_text()), link
    for module in re.findall(r"python -m ([\w.]+)", text):
        assert importlib.util.find_spec(module), module
    for path in re.findall(r"(?:configs|tests|trainers|tfwarmup)/[\w/]+\.\w+", text):
        assert (ROOT / path).exists(), path
    for requirement in re.findall(r"pip install (?:-e )?'?([^\s'`]+)", text):
        check_requirement(requirement)


# Flags


@once
@every_page
def test_every_flag_that_a_page_names_outside_its_commands_is_one_of_some_program(name):
    named = re.findall(r"(?<![\w-])--(\w+)", prose(TEXTS[name]))
    assert set(named) <= all_flags()


@once
@every_page
def test_every_command_of_a_page_is_one_that_its_program_takes(name, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    write_files(TEXTS[name], tmp_path)
    for block in blocks("sh", TEXTS[name]):
        check_commands(block, tmp_path)


@once
@pytest.mark.parametrize("name", CONFIGS)
def test_every_command_in_the_header_of_a_config_is_one_that_its_program_takes(name, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    text = CONFIGS[name].read_text()
    assert f"--flagfile={name}" in header_commands(text)
    check_commands(header_commands(text), tmp_path)


@once
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("python -m trainers.simulate --output_dir=x --learning_rate=1", "Received: --learning_rate"),
        ("for w in none slow; do python -m trainers.simulate --output_dir=x --warmup=$w; done", "Received: 'slow'"),
        ("python -m trainers.sweep --output_dir=x --beam=2", "Received: --beam"),
        ("python -m trainers.simulate", "--output_dir must name a folder"),
    ],
)
def test_a_command_that_its_program_does_not_take_fails(command, message, tmp_path):
    from absl import flags

    from trainers.system.errors import ConfigError

    check_commands("python -m trainers.sweep --task=machine_translation --output_dir=x --beam=2", tmp_path)
    with pytest.raises((ConfigError, flags.Error), match=message):
        check_commands(command, tmp_path)


def check_commands(block, folder):
    """Parses the flags of every program that a block starts, in all iterations of its loops, as the program does."""
    from trainers.engine.program import parse_arguments

    for command, *arguments in recorded(block, folder):
        if command == "python":
            # The run that `--config` repeats comes from earlier commands, which are not run here.
            flags = [argument for argument in arguments if not re.match("--config=runs/", argument)]
            parse_arguments(config_class_of(flags, folder), flags[2 if flags[0] == "-m" else 1 :])


@functools.cache
def all_flags():
    """The flags of all programs, including those of a sweep for every task."""
    from trainers.tasks import CONFIGS

    lines = [[program] for program in programs()] + [["trainers.sweep", f"--task={task}"] for task in CONFIGS]
    fields = [dataclasses.fields(config_class_of(["-m", *line], ROOT)) for line in lines]
    return {field.name for group in fields for field in group} | {"config", "flagfile", "help"}
