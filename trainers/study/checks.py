"""What the records of a run say about its warmup: the report of a `tfwarmup.WarmupCheck`."""

import collections
import csv
import dataclasses
import io
import itertools
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from pandas import DataFrame

from tfwarmup.analysis.warmup_report import TOO_SHORT, WarmupReport, is_too_short
from tfwarmup.factors import untuned_linear_period
from trainers.results.folders import read_records
from trainers.results.layout import CHECKS, TRIALS
from trainers.results.results_csv import TRIAL, csv_text
from trainers.results.runs import Records, Sweep
from trainers.study.failures import Trained
from trainers.study.periods import OPEN, Judgement, judge, periods_of
from trainers.system.errors import ConfigError
from trainers.system.files import read_text

# Columns of a `WarmupReport`, and the names of the same values in records.
REPORT_COLUMNS = {
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
    if sum(each["update_rms"] is not None or each.get("warmup_factor") == 0 for each in measured) < LEAST:
        return None
    history = {name: np.array([each.get(key) for each in measured], "float64") for name, key in REPORT_COLUMNS.items()}
    beta_1, beta_2 = config.get("beta_1"), config.get("beta_2")
    return WarmupReport.of(
        history,
        str(config.get("warmup") or "default"),
        rule_period=untuned_linear_period(beta_2) if isinstance(beta_2, float) else None,
        dynamic_end=None,
        beta_1=beta_1 if isinstance(beta_1, float) else 0.9,
        beginning=0,
    )


SMALLEST = "smallest_rms"
WORDS = {True: "yes", False: "no"}
# By whether a warmup is too short, and whether the check says so.
Counts = Mapping[tuple[bool, bool], int]


def read_checks(sweep: Sweep) -> dict[str, float]:
    """`WarmupReport.smallest_rms` by the names of runs, from the records of the runs and from a file that was kept."""
    kept = sweep.folder.path / CHECKS
    known = _parsed(kept) if kept.exists() else {}
    if sweep.folder.config.get("log_every") != 1:  # no verdicts: do not read all records in vain
        return known
    for run in sweep.runs[~sweep.runs[TRIAL].isin(list(known))].to_dict("records"):
        records = read_records(sweep.folder.path / TRIALS / run[TRIAL])
        report = warmup_report(records, {**sweep.folder.config, **run})
        if report and report.smallest_rms is not None:
            known[run[TRIAL]] = report.smallest_rms
    return known


def _parsed(path: pathlib.Path) -> dict[str, float]:
    try:
        return {row[TRIAL]: float(row[SMALLEST]) for row in csv.DictReader(io.StringIO(read_text(path)))}
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{CHECKS} must have a number for each {TRIAL}. Received: {path} ({error})") from error


def checks_csv(sweep: Sweep) -> str:
    return csv_text(DataFrame(sorted(read_checks(sweep).items()), columns=[TRIAL, SMALLEST]))


@dataclasses.dataclass(frozen=True)
class Score:
    """How many runs have which verdict."""

    every: Counts  # all runs
    decided: Counts  # those at places where the interval of the difference excludes the margin

    def table(self) -> list[list[str]]:
        """Headings, then a row for the runs whose warmup is too short, and one for the others."""
        rows = ([word, *(str(self.every[true, said]) for said in (True, False))] for true, word in WORDS.items())
        return [["a longer warmup is better", f"verdict: {TOO_SHORT}", "no verdict"], *rows]

    def text(self) -> str:
        found = self.every[True, True]
        said, short = found + self.every[False, True], found + self.every[True, False]
        return (
            f'"{TOO_SHORT}" is right in {_share(found, said)}, and is said of {_share(found, short)} whose warmup is '
            f"too short. If no verdict counts as long enough, {_right(self.every)} are right, and "
            f"{_right(self.decided)} at the rates and beta_2 where the interval of the difference excludes the margin."
        )


def score(trained: Trained) -> Score | None:
    """Compares the verdicts with longer warmups; None if a sweep has no verdicts or no longer warmups."""
    if len(periods_of(trained)) < 2 or trained.sweep.terms.margin is None:
        return None
    checks = read_checks(trained.sweep)
    if not checks:
        return None
    every, decided = collections.Counter[tuple[bool, bool]](), collections.Counter[tuple[bool, bool]]()
    for judgement, trials in _judged(trained):
        said = collections.Counter((judgement.gains, is_too_short(checks[each])) for each in trials if each in checks)
        every += said
        if judgement.verdict != OPEN:
            decided += said
    return Score(every, decided)


def _judged(trained: Trained) -> Iterable[tuple[Judgement, Sequence[str]]]:
    """Every warmup at every place, except the longest, with the names of its runs."""
    *shorter, _ = periods_of(trained).items()
    trials = trained.runs.groupby(["method", "place"]).trial.agg(list).to_dict()
    for (period, label), place in itertools.product(shorter, trained.places):
        if found := trials.get((label, place)):
            yield judge(trained, place, label, period), found


def _right(counts: Counts) -> str:
    return _share(counts[True, True] + counts[False, False], sum(counts.values()))


def _share(count: int, total: int) -> str:
    return f"{count} of {total} runs ({100 * count / total:.0f} %)" if total else "0 of 0 runs"
