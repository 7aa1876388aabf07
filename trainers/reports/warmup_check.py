"""What the records of a run say about its warmup: the report of a `tfwarmup.WarmupCheck`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfwarmup.analysis.warmup_report import WarmupReport
from tfwarmup.factors import untuned_linear_period
from trainers.reports.reading import Records

# Columns of a `WarmupReport`, and the names of the same values in records.
COLUMNS = {
    "t": "updates",
    "update_rms": "update_rms",
    "warmup_factor": "warmup_factor",
    "gradient_rms": "gradient_norm",
    "batch_loss": "loss",
}
LEAST = 4  # records, below which a run is too short to say anything


def warmup_lines(records: Records, config: Mapping[str, Any]) -> list[str]:
    """Three lines on the warmup of a run; none if its records lack the size of the updates."""
    report = warmup_report(records, config)
    return report.lines() if report else []


def warmup_report(records: Records, config: Mapping[str, Any]) -> WarmupReport | None:
    """The report on a run; it has a verdict if the run was made with `--log_every=1`."""
    measured = [record for record in records if record.get("updates") and "update_rms" in record]
    # A size that is not finite is null: that of a lost run, or of a momentum step of RAdam, whose factor is 0.
    if sum(map(_has_size, measured)) < LEAST:
        return None
    values = {name: [record.get(key) for record in measured] for name, key in COLUMNS.items()}
    history = {
        name: np.array([np.nan if x is None else x for x in column], "float64") for name, column in values.items()
    }
    beta_1, beta_2 = config.get("beta_1"), config.get("beta_2")
    return WarmupReport.of(
        history,
        str(config.get("warmup") or "default"),
        rule_period=untuned_linear_period(beta_2) if isinstance(beta_2, float) else None,
        dynamic_end=None,
        beta_1=beta_1 if isinstance(beta_1, float) else 0.9,
        beginning=0,
    )


def _has_size(record: Mapping[str, Any]) -> bool:
    # A momentum step of RAdam has the factor 0, and no size that could be compared.
    return record.get("update_rms") is not None or record.get("warmup_factor") == 0
