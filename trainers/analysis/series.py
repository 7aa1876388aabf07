"""Reads the measurements of a gradient analysis."""

import csv
import pathlib

from tfwarmup.analysis.simulation import QUANTILES
from trainers.analysis.findings import Series
from trainers.engine.files import read_text
from trainers.engine.reading import read_records

MEASURED = (*(f"{name}_{place}" for name in ("gradient_cv", "update") for place in QUANTILES), "moment_correlation")
KEPT = "gradient_analysis.csv"  # the same numbers to nine digits, for a run that was kept without its records


def read_series(folder: pathlib.Path, problems: list[str] | None = None) -> Series:
    """The measurements in the records of a gradient analysis; empty if there are none yet."""
    measured = [record for record in read_records(folder, problems) if "moment_correlation" in record]
    if not measured:
        return _kept(folder / KEPT)
    names = [name for name in measured[0] if name in MEASURED]
    return {"t": [record["updates"] for record in measured]} | {
        name: [float("nan") if record[name] is None else record[name] for record in measured] for name in names
    }


def _kept(path: pathlib.Path) -> Series:
    rows = list(csv.DictReader(read_text(path).splitlines())) if path.exists() else []
    if not rows:
        return {}
    numbers = {name: [float(row[name] or "nan") for row in rows] for name in rows[0]}
    return numbers | {"t": [int(t) for t in numbers["t"]]}
