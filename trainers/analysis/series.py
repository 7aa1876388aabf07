"""Reads the measurements of a gradient analysis."""

import pathlib

from trainers.analysis.findings import Series
from trainers.engine.reading import read_records


def read_series(folder: pathlib.Path) -> Series:
    """The measurements in the records of a gradient analysis; nothing if there are none yet."""
    measured = [record for record in read_records(folder) if "moment_correlation" in record]
    if not measured:
        return {}
    names = [name for name in measured[0] if name.startswith(("gradient_cv_", "moment_", "update_"))]
    return {"t": [record["updates"] for record in measured]} | {
        name: [float("nan") if record[name] is None else record[name] for record in measured] for name in names
    }
