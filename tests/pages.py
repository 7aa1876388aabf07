"""Reads README and docs for the tests: blocks of code, files in them, headings and links."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
PAGES = {path.name: path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
FILE_NAME = re.compile(r"# (\w+\.py)\n")


def blocks(language, text):
    return [block for found, block in FENCE.findall(text) if found == language]


def prose(text):
    """A page without its blocks of code."""
    return FENCE.sub("", text)


def write_files(text, folder):
    """Saves the blocks that are files: those that begin with a file's name in a comment."""
    for block in blocks("python", text):
        if name := FILE_NAME.match(block):
            (folder / name[1]).write_text(block)


def anchors(text):
    """The anchors of the headings, which links have behind their `#`."""
    headings = re.findall(r"^#+ (.+)$", prose(text), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def header_commands(text):
    """The commands in the header of a config."""
    return "\n".join(re.findall(r"^#   (.+)$", text, flags=re.MULTILINE))
