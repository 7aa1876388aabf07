"""The same number reads the same in the terminal, in the files of a sweep, and on the page."""

import csv
import types

import pytest

from tests.trainers import reports
from trainers.evidence.summary import Tables
from trainers.reports.tables import sweep_table
from trainers.results.results_csv import read_results
from trainers.results.runs import read_runs
from trainers.results.tasks import OBJECTIVES, objective_named

GRID = {"learning_rate": [1e-3], "beta_2": [0.99], "warmup": ["untuned_linear", "radam"], "seed": [1, 2, 3]}


class Folder:
    """Where a sweep writes its tables."""

    def __init__(self, path):
        self.path = path

    def write(self, name, text):
        (self.path / name).write_text(text)


@pytest.fixture(name="sweep")
def written_sweep(tmp_path):
    """A sweep with an error of 0.0565, and what it prints."""
    folder = reports.write_sweep(tmp_path / "sweep", lambda **point: 0.0555 + 0.0005 * point["seed"], GRID)
    lists = {f"{name}s": values for name, values in GRID.items()}
    settings = types.SimpleNamespace(
        **lists,
        task="image_classification",
        search="grid",
        axes={},
        tuned_lists={},
        plain=lambda: {"dataset": "digits"},
    )
    results = {result.name: result for result in read_results(folder)}
    return folder, Tables(Folder(folder), settings, OBJECTIVES[settings.task], results).write()


def test_an_error_is_told_in_per_cent_everywhere_with_the_same_digits(sweep):
    folder, printed = sweep
    (table,) = read_runs([str(folder)]).sweeps
    shown = sweep_table("sweep", "", table.table())
    assert shown.rows == [["1e-3", "0.99", "5.65 ± 0.05", "5.65 ± 0.05"]]
    assert "1e-3           0.99    5.65 ± 0.05     5.65 ± 0.05" in printed
    assert "| 1e-3 | 0.99 | 5.65 ± 0.05 | 5.65 ± 0.05 |" in (folder / "summary.md").read_text()
    assert printed.startswith("Sweep of image_classification: validation error, %, lower is better\n")
    with (folder / "summary.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    page = [[str(value) for value in record] for record in shown.records]
    assert page == rows
    assert (float(rows[1][3]), rows[1][-1]) == (pytest.approx(5.65, rel=1e-14), "validation error, %")


def test_a_task_of_ones_own_is_told_as_it_is_recorded():
    assert objective_named("wine", "val_score", "max").label == "validation score"
    assert objective_named("image_classification", "val_error", "min") is OBJECTIVES["image_classification"]
