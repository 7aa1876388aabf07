"""Parts of a Markdown page that a program writes, each between two comments with its name."""

import pathlib
from collections.abc import Mapping

from trainers.engine.files import UnreadableError, atomic_file, read_text
from trainers.engine.flags import ConfigError, require


def begin(part: str) -> str:
    return f"<!-- {part} -->"


def end(part: str) -> str:
    return f"<!-- end of {part} -->"


def with_parts(page: pathlib.Path, parts: Mapping[str, str]) -> str:
    """The text of a page, with those of the given parts that it has made anew; it must have at least one."""
    try:
        text = read_text(page)
    except UnreadableError as error:
        raise ConfigError(f"--page must be a Markdown file. Received: {str(page)!r} ({error})") from error
    present = [part for part in parts if begin(part) in text]
    require(present, f"--page must have one of {', '.join(map(begin, parts))}", str(page))
    for part in present:
        before, _, rest = text.partition(begin(part))
        _, found, after = rest.partition(end(part))
        require(found, f"--page must have {end(part)} after {begin(part)}", str(page))
        text = f"{before}{begin(part)}\n\n{parts[part]}\n\n{end(part)}{after}"
    return text


def write_pages(pages: Mapping[pathlib.Path, str]) -> list[str]:
    """Writes texts to their pages, and returns a line for each."""
    for page, text in pages.items():
        try:
            with atomic_file(page) as file:
                file.write(text.encode())
        except OSError as error:
            rule = "--page must be a file that can be written to"
            raise ConfigError(f"{rule}. Received: {str(page)!r} ({error.strerror or error})") from error
    return [f"written: {page}" for page in pages]
