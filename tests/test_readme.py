"""Every block of code in the README runs; every command in it exists."""

import pathlib
import re

import pytest

from tests.tfwarmup.helpers import BACKEND

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


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


def test_every_linked_file_exists():
    for path in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / path).exists(), path
