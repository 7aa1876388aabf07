"""Reads what a run has written, also one that is still running or was killed; needs no TensorFlow."""

import json
import pathlib
from typing import Any

from trainers.engine.files import read_bytes


def read_records(folder: pathlib.Path, problems: list[str] | None = None) -> list[dict[str, Any]]:
    """The records in metrics.jsonl, without a last line that is cut short.

    Damaged lines are left out too, and reported in `problems`.
    """
    path = folder / "metrics.jsonl"
    lines = read_bytes(path).split(b"\n") if path.exists() else [b""]
    records = [_record(line) for line in lines]
    damaged = [number for number, record in enumerate(records[:-1], 1) if record is None]
    if damaged and problems is not None:
        problems.append(f"{path}: line {damaged[0]} is not a record ({len(damaged)} of {len(lines) - 1} lines)")
    return [record for record in records if record is not None]


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("step"), int) else None
