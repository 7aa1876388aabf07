"""Reads the results.csv of a sweep whose trials are gone. Needs no TensorFlow."""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from trainers.engine.files import UnreadableError
from trainers.sweeps.cells import FIELDS, PERIOD
from trainers.sweeps.results import Result

BEFORE, AFTER = "trial", ("seconds", "status", "error")
TYPES = {"learning_rate": float, "beta_2": float, "seed": int, "warmup": str, PERIOD: float}


def parse_results(text: str) -> tuple[list[Result], str]:
    """The runs in a results.csv, and the name of their objective; raises an `UnreadableError` for anything else."""
    rows = list(csv.reader(text.splitlines()))
    headings = rows[0] if rows else []
    missing = [name for name in (BEFORE, *FIELDS, *AFTER) if name not in headings]
    if missing:
        raise UnreadableError(f"not the results.csv of a sweep: without {', '.join(missing)}")
    objective = next((name for name in headings if name.startswith("val_")), None)
    if objective is None:
        raise UnreadableError("not the results.csv of a sweep: without an objective, val_...")
    names = headings[1 : headings.index(objective)]
    metrics = headings[headings.index(objective) + 1 : headings.index(AFTER[0])]
    try:
        return [
            _result(dict(zip(headings, row, strict=True)), names, objective, metrics) for row in rows[1:]
        ], objective
    except ValueError as error:
        raise UnreadableError(f"not the results.csv of a sweep: {error}") from error


def _result(row: Mapping[str, str], names: Sequence[str], objective: str, metrics: Sequence[str]) -> Result:
    return Result(
        row[BEFORE],
        {name: _value(name, row[name]) for name in names if row[name] or name in FIELDS},
        row["status"],
        _number(row[objective]),
        {name: _number(row[name]) for name in metrics},
        float(row["seconds"] or math.nan),
        row["error"],
    )


def _value(name: str, text: str) -> Any:
    """
    >>> _value("seed", "3"), _value("learning_rate", "0.001"), _value("weight_decay", "1e-4"), _value("model", "mlp")
    (3, 0.001, 0.0001, 'mlp')
    """
    if name in TYPES:
        return TYPES[name](text)
    try:
        return json.loads(text.lower() if text in ("True", "False") else text)
    except ValueError:
        return text


def _number(text: str) -> float | None:
    """A metric that is not a number is None.

    >>> _number("0.5"), _number(""), _number("by hand")
    (0.5, None, None)
    """
    try:
        return float(text) if text else None
    except ValueError:
        return None
