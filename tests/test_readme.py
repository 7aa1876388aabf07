"""Every block of Python in the README runs; every command, file and flag that it and docs/ name exists."""

import dataclasses
import importlib.util
import pathlib
import re

import pytest

from tests.tfwarmup.helpers import BACKEND

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = {path.name: path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
every_page = pytest.mark.parametrize("name", PAGES)


def blocks(language, text):
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def run_blocks(name):
    """Runs the blocks of a page one after the other, as a reader would."""
    namespace = {}
    for block in blocks("python", PAGES[name].read_text()):
        exec(compile(block, name, "exec"), namespace)
    return namespace


@pytest.mark.parametrize("name", [name for name in PAGES if name != "README.md"])
def test_every_python_block_of_a_page_runs_in_order(name):
    run_blocks(name)


def test_every_python_block_of_the_readme_runs_and_says_the_truth():
    assert len(blocks("python", README)) >= 6
    namespace = run_blocks("README.md")
    value = namespace["tfwarmup"].effective_warmup_period("radam", beta_2=0.999)
    assert f"# {value:.4f}" in README
    factors = namespace["factors"]
    assert f"# {factors.rho(5, beta_2=0.999):.6f}" in README


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?:`|\n)make ([\w-]+)", README))))
def test_every_make_target_exists(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="runs once")
def test_the_pictures_are_those_that_make_figures_draws(tmp_path):
    from tfwarmup.simulation import simulate_updates
    from trainers.figures.magnitudes import draw_magnitudes
    from trainers.figures.warmups import draw_effective_periods, draw_factors

    draw_factors(tmp_path, beta_2=0.999, updates=5000)
    draw_effective_periods(tmp_path)
    draw_magnitudes(tmp_path, simulate_updates(seed=1), "none")
    for path in tmp_path.glob("*.svg"):
        assert path.read_text() == (ROOT / "docs/figures" / path.name).read_text(), path.name


@every_page
def test_every_file_that_a_page_links_to_exists(name):
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", PAGES[name].read_text()):
        assert (PAGES[name].parent / link).exists(), link


@every_page
def test_every_program_and_config_that_a_page_names_exists(name):
    text = PAGES[name].read_text()
    for module in re.findall(r"python -m ([\w.]+)", text):
        assert importlib.util.find_spec(module), module
    for path in re.findall(r"configs/[\w/]+\.flags", text):
        assert (ROOT / path).exists(), path


@pytest.mark.skipif(BACKEND != "tensorflow", reason="runs once")
@every_page
def test_every_flag_that_a_page_names_exists(name):
    from trainers.analysis.measured_run import AnalysisConfig
    from trainers.effective_warmup import WarmupConfig
    from trainers.simulate import SimulationConfig
    from trainers.sweeps.space import sweep_config_class
    from trainers.tasks import TASKS

    sweeps = [sweep_config_class(task) for task in TASKS.values()]
    configs = [AnalysisConfig, SimulationConfig, WarmupConfig, *sweeps]
    flags = {field.name for config in configs for field in dataclasses.fields(config)} | {"config", "flagfile", "help"}
    named = re.findall(r"(?<![\w-])--(\w+)", PAGES[name].read_text())
    assert set(named) <= flags
