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


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_every_python_block_runs_in_order():
    namespace = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), namespace)
    assert len(blocks("python")) >= 6
    value = namespace["tfwarmup"].effective_warmup_period("radam", beta_2=0.999)
    assert f"# {value:.4f}" in README
    factors = namespace["factors"]
    assert f"# {factors.rho(5, beta_2=0.999):.6f}" in README


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?:`|\n)make ([\w-]+)", README))))
def test_every_make_target_exists(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="runs once")
def test_the_picture_is_the_one_that_the_script_draws(tmp_path):
    from docs.plot_factors import draw

    draw(tmp_path)
    assert (tmp_path / "factors.svg").read_text() == (ROOT / "docs/factors.svg").read_text()


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
    from trainers.tasks.image_classification import ImageConfig

    flags = {field.name for field in dataclasses.fields(ImageConfig)} | {"config", "flagfile", "help"}
    named = re.findall(r"(?<![\w-])--(\w+)", PAGES[name].read_text())
    assert set(named) <= flags
