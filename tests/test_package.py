"""The project's metadata: setup.py, CITATION.cff, LICENSE, README and the files for contributors agree."""

import email
import hashlib
import re
import subprocess
import sys

import pytest
import readme_renderer.markdown
import yaml

import tfwarmup
from tests.pages import ROOT, blocks

# The text as the Apache Software Foundation publishes it.
APACHE_2_SHA256 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"

CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())


@pytest.fixture(scope="module")
def egg(tmp_path_factory):
    """The metadata that setuptools makes from setup.py."""
    folder = tmp_path_factory.mktemp("egg")
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    return folder / "tfwarmup.egg-info"


@pytest.fixture(scope="module")
def metadata(egg):
    """The metadata that a package index reads."""
    return email.message_from_string((egg / "PKG-INFO").read_text())


@pytest.fixture(scope="module")
def description(metadata):
    """The long description as a package index shows it: HTML, cleaned."""
    assert metadata["Description-Content-Type"] == "text/markdown"
    html = readme_renderer.markdown.render(metadata.get_payload())
    assert html, "the long description does not render"
    return html


def test_version_name_summary_keywords_authors_and_license_are_the_same_everywhere(metadata):
    assert metadata["Version"] == CITATION["version"] == tfwarmup.__version__
    [newest, *_] = re.findall(r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert newest == (tfwarmup.__version__, CITATION["date-released"].isoformat())
    assert metadata["Name"] == CITATION["title"]
    assert metadata["Summary"] == CITATION["abstract"]
    assert metadata["Keywords"].split(",") == CITATION["keywords"]
    assert [metadata["Author"]] == [author["name"] for author in CITATION["authors"]] == ["the tfwarmup authors"]
    assert metadata["License-Expression"] == CITATION["license"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"
    # A classifier beside the expression is an error on package indexes.
    assert not [name for name in metadata.get_all("Classifier") if name.startswith("License")]
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2_SHA256
    assert "[Apache-2.0](LICENSE)" in (ROOT / "README.md").read_text()


def test_every_public_name_is_listed_and_imported_by_a_star():
    names: dict[str, object] = {}
    exec("from tfwarmup import *", names)
    assert set(dir(tfwarmup)) == set(tfwarmup.__all__) == set(names) - {"__builtins__"}
    assert {"WarmupCheck", "factors", "probes", "simulation", "tuning"} <= set(dir(tfwarmup))


def test_the_wheel_holds_the_library_alone(egg):
    assert (egg / "top_level.txt").read_text().split() == ["tfwarmup"]


def test_the_long_description_is_the_whole_readme_and_none_of_its_links_leads_nowhere(description):
    targets = re.findall(r'(?:href|src)="([^"]+)"', description)
    assert any("arxiv.org" in target for target in targets)
    headings = "#user-content-"  # what the index adds to every heading
    assert [target for target in targets if not target.startswith(("https://", headings))] == []
    assert "](" not in description  # would be left by a link that is stripped only in part
    readme = (ROOT / "README.md").read_text()
    assert re.findall(r"<h2[^>]*>(.+?)<a ", description) == re.findall(r"^## (.+)$", readme, flags=re.MULTILINE)
    assert description.count("<table>") == len(re.findall(r"^\| --- ", readme, flags=re.MULTILINE))
    assert description.count("<pre") == len(re.findall("^```\\w", readme, flags=re.MULTILINE))


def test_make_reproduce_installs_no_other_backend_and_no_test_tool(metadata):
    required = {"reproduce": set(), "test": set()}
    for line in metadata.get_all("Requires-Dist"):
        for extra, names in required.items():
            if re.search(f"extra == ['\"]{extra}['\"]", line):
                names.add(re.match(r"[\w-]+", line)[0].lower())
    assert {"keras-tuner", "tensorflow-cpu"} <= required["reproduce"]
    assert required["reproduce"] & required["test"] <= {"tensorflow"}  # where there is no build without CUDA
    assert not required["reproduce"] & {"torch", "jax", "keras-hub", "plotly"}


def test_the_bibtex_entry_says_what_the_citation_file_says():
    [text] = blocks("bibtex", (ROOT / "README.md").read_text())
    [paper] = CITATION["references"]
    assert f"[{paper['title']}]({paper['url']})" in (ROOT / "README.md").read_text().replace("\n", " ")
    cited = dict(re.findall(r"^  (\w+) += \{(.+?)\},?$", text, flags=re.MULTILINE))
    authors = " and ".join(f"{each['family-names']}, {each['given-names']}" for each in paper["authors"])
    assert cited == {
        "title": paper["title"],
        "author": authors,
        "booktitle": paper["collection-title"],
        "volume": str(paper["volume"]),
        "number": str(paper["issue"]),
        "pages": f"{paper['start']}--{paper['end']}",
        "year": str(paper["year"]),
        "doi": paper["doi"],
    }


def test_the_first_page_for_contributors_has_the_commands_of_the_full_one_and_leads_to_it():
    short, full = ((ROOT / path).read_text() for path in ("CONTRIBUTING.md", "docs/contributing.md"))
    assert blocks("sh", short) == blocks("sh", full)
    assert all((ROOT / link).exists() for link in re.findall(r"\]\(([^)]+)\)", short))
    assert "(docs/contributing.md)" in short


def test_a_commit_is_checked_by_what_make_lint_runs():
    recipe = subprocess.run(["make", "-n", "lint"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    [repository] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    entries = [hook["entry"] for hook in repository["hooks"]]
    assert entries == [line for line in recipe.splitlines() if re.search("-m (ruff|mypy)|import-linter", line)]


def test_every_issue_template_has_a_name_and_a_purpose():
    for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.md"):
        _, header, body = path.read_text().split("---\n", maxsplit=2)
        assert {"name", "about"} <= set(yaml.safe_load(header)), path.name
        assert body.strip(), path.name


def test_the_workflows_run_the_parts_of_ci_run_and_nothing_else():
    [parts] = re.findall(r"set -- (.+)", (ROOT / ".ci/run").read_text())
    workflows = {path.name: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").glob("*.yml")}
    assert workflows.keys() == {"ci.yml", "docs.yml"}
    [ci], [docs] = (workflows[name]["jobs"].values() for name in ("ci.yml", "docs.yml"))
    assert ci["strategy"]["matrix"]["part"] == parts.split()
    commands = [[step["run"] for step in job["steps"] if "run" in step] for job in (ci, docs)]
    assert commands == [[".ci/run ${{ matrix.part }}"], ["make docs"]]
