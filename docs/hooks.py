"""What the site has besides docs/: README, examples, changelog and the notebook, which is executed while it is built.

mkdocs calls the functions whose names begin with `on_`. As a program, this executes the notebook in place.
"""

import ast
import base64
import pathlib
import re
import subprocess
import time
from typing import Any

import nbclient
import nbformat
from jupyter_client import AsyncKernelManager
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = pathlib.Path(__file__).parents[1]
NOTEBOOK = ROOT / "examples/warmup.ipynb"
# Scripts, styles, fonts and pictures of another address; links that a reader may follow are no harm.
EXTERNAL = re.compile(
    r"""<(?:script|img|iframe|source)[^>]+src=["']?(https?://[^"'>]+)|<link(?![^>]+canonical)[^>]+href=["']?(https?://[^"'>]+)"""
)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are made from files outside docs/."""
    pages: dict[str, str | bytes] = {
        "index.md": (ROOT / "README.md").read_text(),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(),
        "examples.md": examples_page(sorted((ROOT / "examples").glob("*.py"))),
        **notebook_pages(executed(NOTEBOOK)),
    }
    for name, content in pages.items():
        text = site_links(content, ROOT) if isinstance(content, str) else content
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links of docs/ that lead outside of it."""
    path = page.file.abs_src_path
    return site_links(markdown, pathlib.Path(path).parent) if path else markdown


def on_post_build(config: Any, **_: Any) -> None:
    """No page loads anything from another address."""
    for path in sorted(pathlib.Path(config.site_dir).rglob("*.html")):
        loaded = EXTERNAL.findall(path.read_text())
        if loaded:
            raise PluginError(f"The site must need no network. Received: {path.name} loads {loaded[0]}")


def site_links(markdown: str, folder: pathlib.Path) -> str:
    """Links from a folder of the checkout as the site has them; of what it does not have, the text alone.

    >>> site_links("[a](docs/library.md#measured) [b](examples/fit.py) [c](LICENSE)", ROOT)
    '[a](library.md#measured) [b](examples.md#fit) c'
    """

    def moved(match: re.Match[str]) -> str:
        path = (folder / match[1]).resolve()
        anchor = match[2] or ""
        if any(path.is_relative_to(ROOT / kept) for kept in ("docs/results", "docs/study")):
            return "](-)"  # kept files of runs, which are no pages
        if path.is_relative_to(ROOT / "docs"):
            return f"]({match[1] if folder != ROOT else path.relative_to(ROOT / 'docs')}{anchor})"
        if path.parent == ROOT / "examples" and path.suffix == ".py":
            return f"](examples.md#{path.stem})"
        named = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "warmup.ipynb": "notebook.md"}
        return f"]({named[path.name]}{anchor})" if path.name in named else "](-)"

    return re.sub(r"\[([^]]+)\]\(-\)", r"\1", LINK.sub(moved, markdown))


def examples_page(paths: list[pathlib.Path]) -> str:
    """A section for every example: its docstring's first line, and the program."""
    parts = ["# Examples", "Short complete programs. They need no download, only scikit-learn for its digits."]
    for path in paths:
        text = path.read_text()
        title = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        parts += [f"## {path.name} {{ #{path.stem} }}", title, f"```python\n{text.strip()}\n```"]
    return "\n\n".join(parts) + "\n"


def executed(path: pathlib.Path) -> Any:
    """A notebook with new outputs, without TensorFlow's notes on standard error; a cell that fails ends the build."""
    notebook = nbformat.read(path, as_version=4)
    began = time.monotonic()
    manager = AsyncKernelManager(kernel_name="python3", transport="ipc")
    place = {"metadata": {"path": str(ROOT)}}
    client = nbclient.NotebookClient(notebook, km=manager, timeout=300, resources=place, record_timing=False)
    client.execute(stderr=subprocess.DEVNULL)  # more of TensorFlow's notes; a cell that fails raises
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    print(f"{path.name} executed in {time.monotonic() - began:.0f} s")
    return notebook


def notebook_pages(notebook: Any) -> dict[str, str | bytes]:
    """A notebook as a page, and its pictures."""
    parts: list[str] = []
    pictures: dict[str, str | bytes] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                name = f"notebook/{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![{cell.metadata['alternative']}]({name})")
            elif text := output.get("text") or data.get("text/plain"):
                parts.append(f"```text\n{text.rstrip()}\n```")
    return {"notebook.md": "\n\n".join(parts) + "\n", **pictures}


if __name__ == "__main__":
    nbformat.write(executed(NOTEBOOK), NOTEBOOK)
