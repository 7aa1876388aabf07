"""The examples in the docstrings of the trainers say the truth."""

import doctest
import importlib
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "trainers").rglob("*.py"))
    if ">>>" in path.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_every_example_is_true(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
