"""Reads what a run has written, also one that is still running or was killed; needs no TensorFlow."""

import json
import pathlib
from typing import Any


def read_records(folder: pathlib.Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl, up to one that is cut short."""
    path = folder / "metrics.jsonl"
    records = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            records.append(json.loads(line))
        except ValueError:
            break
    return records
