"""Reads what a run has recorded, also one that is still running or was killed. Needs no TensorFlow."""

import csv
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from trainers.results.layout import ANALYSIS_TABLE, RECORDS
from trainers.system.files import read_bytes, read_text


def read_records(folder: pathlib.Path, problems: list[str] | None = None) -> list[dict[str, Any]]:
    """The records in metrics.jsonl, without a last line that is cut short.

    Damaged lines are left out too, and reported in `problems`.
    """
    path = folder / RECORDS
    lines = read_bytes(path).split(b"\n") if path.exists() else [b""]
    records = [_parsed_record(line) for line in lines]
    damaged = [number for number, record in enumerate(records[:-1], 1) if record is None]
    if damaged and problems is not None:
        problems.append(f"{path}: line {damaged[0]} is not a record ({len(damaged)} of {len(lines) - 1} lines)")
    return [record for record in records if record is not None]


def _parsed_record(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("step"), int) else None


# Columns of equal length: t, and the statistics at t.
Series = Mapping[str, Sequence[float]]


def read_series(folder: pathlib.Path, problems: list[str] | None = None) -> Series:
    """The measurements in the records of a gradient analysis; empty if there are none yet."""
    measured = [record for record in read_records(folder, problems) if "moment_correlation" in record]
    if not measured:
        kept = read_columns(folder / ANALYSIS_TABLE)  # to nine digits
        return {**kept, "t": [int(t) for t in kept["t"]]} if kept else {}
    names = [name for name in measured[0] if name in _measured_names()]
    return {"t": [record["updates"] for record in measured]} | {
        name: [float("nan") if record[name] is None else record[name] for record in measured] for name in names
    }


def _measured_names() -> list[str]:
    from tfwarmup.analysis.simulation import QUANTILES  # takes seconds, and is not needed to read other runs

    return [*(f"{name}_{place}" for name in ("gradient_cv", "update") for place in QUANTILES), "moment_correlation"]


def read_columns(path: pathlib.Path) -> Series:
    """The columns of a CSV of numbers; empty if the file is missing or has no rows."""
    rows = list(csv.DictReader(read_text(path).splitlines())) if path.exists() else []
    names = list(rows[0]) if rows else []
    return {name: [float(row[name] if row[name] != "" else "nan") for row in rows] for name in names}
