"""The documentation as a site: its pages, its links and its notebook. `make docs` builds it, strictly."""

import importlib.util
import json
import re

import pytest
import yaml

import tfwarmup
from tests.pages import PAGES, ROOT

NOTEBOOK = json.loads((ROOT / "examples/warmup.ipynb").read_text())
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def pages_of(nav):
    for value in (value for entry in nav for value in entry.values()):
        yield from pages_of(value) if isinstance(value, list) else [value]


@pytest.fixture(scope="module")
def hooks():
    pytest.importorskip("mkdocs")
    pytest.importorskip("nbclient")
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs/hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_of_docs_is_in_the_menu():
    pages = set(pages_of(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    made = {"index.md", "examples.md", "notebook.md", "changelog.md"}  # from files outside docs/
    reference = {f"reference/{path.name}" for path in (ROOT / "docs/reference").glob("*.md")}
    assert pages == made | reference | set(PAGES) - {"README.md"}


def test_the_reference_has_everything_that_the_package_exports():
    text = "".join(path.read_text() for path in (ROOT / "docs/reference").glob("*.md"))
    documented = set(re.findall(r"^::: tfwarmup\.(?:\w+\.)*(\w+)$", text, flags=re.MULTILINE))
    # Constants, the version and modules are described in the guide.
    exported = {name for name in tfwarmup.__all__ if callable(getattr(tfwarmup, name))}
    assert exported <= documented
    assert {rule.__name__ for rule in tfwarmup.WARMUPS.values()} <= documented
    assert "from_keras" in text


def test_links_that_leave_docs_lead_to_pages_of_the_site(hooks):
    assert hooks.site_links("[a](../README.md#examples) [b](../examples/fit.py)", ROOT / "docs") == (
        "[a](index.md#examples) [b](examples.md#fit)"
    )
    assert hooks.site_links("![c](docs/figures/factors.svg) [d](LICENSE) [e](https://x.y)", ROOT) == (
        "![c](figures/factors.svg) d [e](https://x.y)"
    )
    assert hooks.site_links("[f](library.md#measured) [g](results/README.md)", ROOT / "docs") == (
        "[f](library.md#measured) g"
    )


def test_anything_from_the_network_ends_the_build(hooks, tmp_path):
    class Config:
        site_dir = tmp_path

    (tmp_path / "a.html").write_text('<script src="a.js"></script><a href="https://arxiv.org">paper</a>')
    hooks.on_post_build(Config)
    (tmp_path / "b.html").write_text('<link rel="stylesheet" href="https://fonts.example/x.css">')
    with pytest.raises(Exception, match="must need no network. Received: b.html"):
        hooks.on_post_build(Config)


def test_the_notebook_was_executed_in_order_and_has_its_pictures():
    assert [cell["execution_count"] for cell in CODE] == list(range(1, len(CODE) + 1))
    outputs = [output for cell in CODE for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    pictures = [cell for cell in CODE if any("image/png" in output.get("data", {}) for output in cell["outputs"])]
    assert len(pictures) >= 3
    assert all(cell["metadata"]["alternative"] for cell in pictures)  # what a screen reader says
    assert "/home" not in json.dumps(NOTEBOOK)
    assert (ROOT / "examples/warmup.ipynb").stat().st_size < 300_000
