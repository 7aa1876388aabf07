"""A sweep from its first trial to its tables."""

import os
import pathlib
from typing import Any

import keras_tuner
from tqdm import tqdm

from trainers.engine.records import RunFolder
from trainers.engine.task import Task
from trainers.sweeps import workers
from trainers.sweeps.cells import FIELDS
from trainers.sweeps.oracles import make_oracle
from trainers.sweeps.results import Result, finished_trials, read_result, read_results, results_csv
from trainers.sweeps.space import grid, trial_config
from trainers.sweeps.summary import summary_csv, summary_markdown, summary_text
from trainers.sweeps.table import tabulate
from trainers.sweeps.tuner import SweepTuner
from trainers.tasks import TASKS


def sweep(settings: Any) -> str:
    """Runs what is not done yet, writes results.csv, summary.csv and summary.md, and returns the table."""
    task = TASKS[settings.task]
    for cell in grid(settings):
        trial_config(settings, cell, "-")  # a value that no run can start with is refused before the first
    name = workers.role()
    folder = RunFolder(settings, f"sweep of {task.name}", chief=name in (None, workers.CHIEF))
    with folder.working():
        _run_trials(settings, task, folder.path, name)
        if not folder.chief:
            return f"{name}: no more trials"
        return write_tables(folder, settings, task, read_results(folder.path))


def _run_trials(settings: Any, task: Task, path: pathlib.Path, name: str | None) -> None:
    oracle = make_oracle(settings, keras_tuner.Objective(f"val_{task.objective}", task.direction))
    with Progress(task, oracle.max_trials, settings.progress and name is None) as progress:
        if name == workers.CHIEF:
            workers.serve(SweepTuner(settings, oracle).oracle, _address())
        elif name is None and settings.workers > 1:
            _run_local_workers(settings, oracle, path, progress)
        else:
            SweepTuner(settings, oracle, progress.finished).search()


def _run_local_workers(settings: Any, oracle: keras_tuner.Oracle, path: pathlib.Path, progress: "Progress") -> None:
    """This process is the chief; its workers run the same sweep."""
    local = workers.LocalWorkers(settings.workers, lambda: sweep(settings), lambda: len(finished_trials(path)))

    def watch() -> None:
        local.check()
        progress.catch_up(finished_trials(path))

    try:
        workers.serve(SweepTuner(settings, oracle).oracle, local.address, watch)
        watch()
    finally:
        local.stop()


def _address() -> str:
    return f"{os.environ[workers.ADDRESS]}:{os.environ[workers.PORT]}"


def write_tables(folder: RunFolder, settings: Any, task: Task, results: list[Result]) -> str:
    """Writes the tables and returns the one for the terminal."""
    objective, title = f"val_{task.objective}", f"Sweep of {task.name}"
    values = {name: getattr(settings, f"{name}s") for name in FIELDS} if settings.search == "grid" else None
    table = tabulate(results, objective, task.direction, values)
    folder.write("results.csv", results_csv(results, objective, values))
    folder.write("summary.csv", summary_csv(table))
    folder.write("summary.md", summary_markdown(table, title))
    return summary_text(table, title)


class Progress:
    """A line that says how many trials are done, the best so far, and the time left."""

    def __init__(self, task: Task, total: int | None, shown: bool) -> None:
        self.task = task
        self.best: float | None = None
        self._seen: set[str] = set()
        self._bar = tqdm(total=total, unit="trial", desc="sweep", disable=not shown)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: Any) -> None:
        self._bar.close()

    def catch_up(self, trials: list[pathlib.Path]) -> None:
        """Shows trials that other processes may have finished."""
        for trial in trials:
            if trial.name not in self._seen:
                self.finished(read_result(trial))

    def finished(self, result: Result) -> None:
        self._seen.add(result.trial)
        choose = min if self.task.direction == "min" else max
        if result.objective is not None:
            self.best = result.objective if self.best is None else choose(self.best, result.objective)
        self._bar.set_postfix_str("" if self.best is None else f"best {self.task.objective} {self.best:.4g}")
        self._bar.update(1)
