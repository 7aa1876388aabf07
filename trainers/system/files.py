"""Files that are written whole or not at all, and JSON that every reader understands."""

import json
import math
import os
import pathlib
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# What a killed write leaves behind: files of `atomic_file`, of a model, and of Keras for a model larger than memory.
LEFTOVERS = (".*.tmp", ".*.tmp.keras", "tmp????????")


class atomic_file:  # noqa: N801 - used as a function
    """`with atomic_file(path) as file`: the path has the old content or the new, never a part of it."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path, self.temporary = path, path.with_name(f".{path.name}.{os.getpid()}.tmp")

    def __enter__(self) -> Any:
        self.file = self.temporary.open("wb")
        return self.file

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            with self.file:
                self.file.flush()
                os.fsync(self.file.fileno())
            if kind is None:
                os.replace(self.temporary, self.path)
        finally:
            self.temporary.unlink(missing_ok=True)


class UnreadableError(ValueError):
    """A file that is not what it should be. The message says what is wrong, but not the name of the file."""


def read_bytes(path: pathlib.Path | str) -> bytes:
    """The content of a file, or an `UnreadableError`. Never waits for a pipe."""
    try:
        if stat.S_ISREG(os.stat(path).st_mode):
            return pathlib.Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise UnreadableError(getattr(error, "strerror", None) or str(error)) from error
    raise UnreadableError("not a regular file")


def read_text(path: pathlib.Path | str) -> str:
    """The text of a file, or an `UnreadableError`."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise UnreadableError(f"not UTF-8: byte {error.object[error.start]:#04x} at {error.start}") from error


def read_json(path: pathlib.Path | str) -> Any:
    """The content of a JSON file, or an `UnreadableError`."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"not JSON: {error}") from error


def read_object(path: pathlib.Path | str) -> dict[str, Any]:
    """The content of a JSON file that must be an object, or an `UnreadableError`."""
    found = read_json(path)
    if not isinstance(found, dict):
        raise UnreadableError(f"not a JSON object, but {type(found).__name__}")
    return found


def remove_leftovers(folder: pathlib.Path, patterns: Iterable[str] = LEFTOVERS) -> None:
    """Removes what killed writes have left in a folder that nobody else is writing to."""
    for pattern in patterns:
        for path in folder.glob(pattern):
            if path.is_file():
                path.unlink()


def json_text(value: Any, indent: int | None = None) -> str:
    """Standard JSON, which has neither NaN nor infinity: both become null.

    >>> json_text({"loss": float("nan"), "error": [0.5, (-float("inf"),)], "last": {"best": float("inf")}})
    '{"loss": null, "error": [0.5, [null]], "last": {"best": null}}'
    """
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def shown(path: str | Path) -> str:
    """A path as one line of plain text, whatever bytes its name has.

    >>> shown("two\\nlines.jpg"), shown(os.fsdecode(b"caf\\xe9.jpg"))
    ('two\\\\nlines.jpg', 'caf\\\\xe9.jpg')
    """
    text = os.fsencode(path).decode(errors="backslashreplace")
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
