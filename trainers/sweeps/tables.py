"""The files with the results of a sweep, written again after every trial."""

import dataclasses
import logging
import time
from typing import Any

from trainers.engine.records import RunFolder
from trainers.evidence.findings import Terms, sweep_command
from trainers.evidence.margins import data_name, margin_of
from trainers.evidence.objectives import Objective
from trainers.sweeps.results import Result, in_unit, results_csv
from trainers.sweeps.space import base_values, table_grid
from trainers.sweeps.summary import summary_csv, summary_markdown, summary_text
from trainers.sweeps.table import tabulate
from trainers.sweeps.tuned import duels, duels_csv

SHARE = 20  # writing the tables takes at most about one part in this many of the time


class Tables:
    """results.csv, summary.csv, summary.md and, where a warmup is tuned, tuned.csv of the results so far."""

    def __init__(self, folder: RunFolder, settings: Any, objective: Objective, results: dict[str, Result]) -> None:
        self._folder, self._base, self._objective = folder, base_values(settings), objective
        self.title = f"Sweep of {settings.task}"
        margin = margin_of(settings.task, data_name(settings.plain()))
        self._terms = Terms(margin, objective.unit, sweep_command(settings.task, str(folder.path / "config.json")))
        self._grid = table_grid(settings) if settings.search == "grid" else None
        self._results = dict(results)
        self._next = 0.0

    def add(self, result: Result) -> None:
        self._results[result.name] = result

    def write_soon(self) -> None:
        """Writes the files unless they were written a moment ago. A disk that is full for now does not end a sweep."""
        began = time.monotonic()
        if began < self._next:
            return
        try:
            self.write()
        except OSError as error:
            logging.warning("the tables cannot be written: %s", error)
        now = time.monotonic()
        self._next = now + SHARE * (now - began)

    def write(self) -> str:
        """Writes the files and returns the summary for the terminal."""
        results = [self._complete(self._results[name]) for name in sorted(self._results)]
        table = tabulate(
            [in_unit(result, self._objective.shown) for result in results],
            self._objective.label,
            self._objective.direction,
            self._grid,
        )
        self._folder.write("results.csv", results_csv(results, self._objective.metric, self._grid))
        self._folder.write("summary.csv", summary_csv(table))
        found = duels(table, results)
        if found:
            self._folder.write("tuned.csv", duels_csv(table, found))
        self._folder.write("summary.md", summary_markdown(table, self.title, results, self._terms))
        return summary_text(table, self.title, results, self._terms)

    def _complete(self, result: Result) -> Result:
        """Adds the values of axes that were added after the run."""
        return dataclasses.replace(result, values={**self._base, **result.values}) if self._base else result
