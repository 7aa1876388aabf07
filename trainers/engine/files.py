"""Files that appear whole or not at all, and JSON that every reader understands."""

import json
import math
import os
import pathlib
from typing import Any

# What a killed write leaves behind: `atomic_file`'s, a model's, and those of Keras for a model larger than the memory.
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


def remove_leftovers(folder: pathlib.Path) -> None:
    """Removes what killed writes have left in a folder that nobody else is writing to."""
    for pattern in LEFTOVERS:
        for path in folder.glob(pattern):
            if path.is_file():
                path.unlink()


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON as its standard has it, which knows neither NaN nor infinity: both become null.

    >>> json_text({"loss": float("nan"), "error": [0.5, float("inf")]})
    '{"loss": null, "error": [0.5, null]}'
    """
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
