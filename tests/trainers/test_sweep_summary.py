import csv
import dataclasses
import math
import statistics
import types

import pytest

from tests.trainers import reports
from tests.trainers.sweeps import GRID, csv_rows, summary_of, sweep
from trainers.evidence.summary import COLUMNS, Tables, cell_text, summary_csv
from trainers.reports.tables import sweep_table
from trainers.results.results_csv import read_results
from trainers.results.runs import read_runs
from trainers.results.table import Cell
from trainers.results.tasks import OBJECTIVES, Terms, margin_of
from trainers.results.trials import Result

MARKDOWN = """\
# Digits: loss, lower is better

| learning_rate | beta_2 | untuned_linear | radam |
| --- | --- | --- | --- |
| 3e-4 | 0.99 | 1.20 ± 0.20 | 1.30 ± 0.22 |
| 3e-4 | 0.999 | 1.20 ± 0.28 (2 of 3; 1 failed) | 1.30 ± 0.22 |
| 1e-3 | 0.99 | 2.20 ± 0.20 | diverged (3 of 3) |
| 1e-3 | 0.999 | 2.20 ± 0.20 | 2.41 ± 0.16 (2 of 3; 1 diverged) |

Mean ± standard deviation over 3 seeds. untuned_linear: 12 runs planned, 1 failed. radam: 12 runs planned, 4 diverged.

Best: 1.20 ± 0.20 with untuned_linear, learning_rate 3e-4, beta_2 0.99.

## The methods compared

Verdict on untuned_linear and radam: inconclusive, as 1 run failed (untuned_linear, learning_rate 3e-4, beta_2 0.999, \
seed 2) (margin ±0.5 points).

- radam - untuned_linear: +0.10 points, 90 % interval +0.07 to +0.14, 95 % interval +0.05 to +0.15 (3 seeds, 3 cells): \
inside the margin.
- Runs that diverged: 0 of 11 of untuned_linear and 4 of 12 of radam, p = 0.093 (Fisher's exact test, Holm).

Differences are taken within each cell and seed and averaged over the cells; intervals are t intervals over seeds. \
Verdict: equivalent if the 90 % interval of every difference lies inside the margin, different if one lies wholly \
outside, otherwise inconclusive.

In each cell, with 90 % intervals:

| learning_rate | beta_2 | radam - untuned_linear |
| --- | --- | --- |
| 3e-4 | 0.99 | +0.10 [+0.07, +0.13] |
| 3e-4 | 0.999 | +0.10 [-0.03, +0.23] |
| 1e-3 | 0.99 | \N{EN DASH} |
| 1e-3 | 0.999 | +0.11 [+0.05, +0.17] |
"""

TEXT = """\
Sweep: loss, lower is better

learning_rate  beta_2  untuned_linear                  radam
3e-4           0.99    1.20 ± 0.20                     1.30 ± 0.22
3e-4           0.999   1.20 ± 0.28 (2 of 3; 1 failed)  1.30 ± 0.22
1e-3           0.99    2.20 ± 0.20                     diverged (3 of 3)
1e-3           0.999   2.20 ± 0.20                     2.41 ± 0.16 (2 of 3; 1 diverged)

"""


def objective(learning_rate, beta_2, warmup, seed):
    """Seeds are 0.2 apart and radam is 0.08, 0.10, 0.12 above; some runs diverge, one fails."""
    if (learning_rate, beta_2, warmup) == (1e-3, 0.99, "radam"):
        return math.nan
    if (learning_rate, beta_2, warmup, seed) == (3e-4, 0.999, "untuned_linear", 2):
        return None
    if (learning_rate, beta_2, warmup, seed) == (1e-3, 0.999, "radam", 1):
        return math.inf
    base = {3e-4: 1.0, 1e-3: 2.0}[learning_rate] + 0.2 * (seed - 1)
    return base + (0.1 + 0.02 * (seed - 2) if warmup == "radam" else 0.0)


def told(results=None, direction="min", grid=GRID, **options):
    return summary_of(sweep(objective) if results is None else results, direction, grid, **options)


def small_table(*arguments, **options):
    return told(*arguments, **options).table


TERMS = Terms(margin_of("image_classification", "photographs"), "points")


def test_markdown_is_the_papers_table_and_its_comparison():
    assert told(title="Digits", terms=TERMS).markdown() == MARKDOWN


def test_text_is_the_same_in_aligned_columns():
    text = told(terms=TERMS).text()
    assert text.startswith(TEXT)
    assert text.count("\n\n") == 3
    for sentence in text.split("\n\n", 2)[2].splitlines():
        assert sentence in MARKDOWN


def test_methods_stand_in_the_order_of_the_grid_and_rows_ascend():
    table = small_table()
    assert table.methods == ("untuned_linear", "radam")
    assert table.rows == ((3e-4, 0.99), (3e-4, 0.999), (1e-3, 0.99), (1e-3, 0.999))


def test_csv_has_a_row_for_each_cell():
    rows = csv_rows(summary_csv(small_table()))
    assert len(rows) == 8
    assert list(rows[0]) == ["learning_rate", "beta_2", "warmup", *COLUMNS]
    assert float(rows[1]["mean"]) == pytest.approx(statistics.mean([1.08, 1.3, 1.52]), rel=1e-15)
    assert float(rows[1]["std"]) == pytest.approx(statistics.stdev([1.08, 1.3, 1.52]), rel=1e-14)
    counts = ["".join(row[name] for name in ("n", "diverged", "failed", "missing")) for row in rows]
    assert counts == ["3000", "3000", "2010", "3000", "3000", "0300", "3000", "2100"]
    assert (rows[5]["mean"], rows[5]["std"]) == ("", "")


def test_a_sweep_that_still_runs_shows_what_is_to_come():
    summary = told(sweep(objective)[:4])
    assert "| 3e-4 | 0.99 | \N{EN DASH} | \N{EN DASH} |" in summary.markdown()
    assert "radam: 12 runs planned, 1 diverged, 11 missing." in summary.markdown()
    assert csv_rows(summary_csv(summary.table))[0]["missing"] == "3"


@pytest.mark.parametrize("grid", [GRID, None])
def test_a_sweep_that_has_not_begun_has_a_table_too(grid):
    summary = told([], grid=grid)
    assert "Best: none, no run is done." in summary.markdown()
    assert "compared" not in summary.markdown()
    assert "Best: none" in summary.text()


def test_one_seed_has_a_mean_only_and_no_test():
    results = [result for result in sweep(objective) if result.values["seed"] == 1]
    text = told(results, grid=None).markdown()
    for said in (
        "| 3e-4 | 0.99 | 1.080 | 1.000 |",
        "| 1e-3 | 0.99 | diverged | 2.000 |",
        "One seed. radam: 4 runs planned, 2 diverged.",
        "- untuned_linear - radam: -0.080 (1 seed, 2 cells).",
    ):
        assert said in text


@pytest.mark.parametrize(
    ("methods", "verdicts"),
    [
        (
            ["none", "untuned_linear", "radam", "radam_nothing"],
            [
                "untuned_linear and radam: equivalent (margin ±0.5 points).",
                "radam and radam_nothing: equivalent",
                "none and untuned_linear: different",
                "none and radam: different",
            ],
        ),
        (["mine", "yours"], ["mine and yours: equivalent"]),  # all are compared if no question fits
    ],
)
def test_each_question_is_about_its_methods(methods, verdicts):
    grid = {**GRID, "warmup": methods, "seed": [1, 2, 3, 4]}
    results = sweep(lambda warmup, seed, **_: 1.0 + 0.01 * seed + 5 * (warmup == "none"), grid)
    text = told(results, grid=grid, terms=TERMS).text()
    assert [verdict for verdict in verdicts if f"Verdict on {verdict}" in text] == verdicts
    assert text.count("Verdict on") == len(verdicts)


def test_one_method_is_compared_with_nothing():
    results = [result for result in sweep(objective) if result.values["warmup"] == "radam"]
    text = told(results, grid=None).markdown()
    assert "compared" not in text
    assert text.rstrip().endswith("Best: 1.30 ± 0.22 with radam, learning_rate 3e-4, beta_2 0.99.")


def test_a_lucky_survivor_is_not_the_best():
    def lucky(learning_rate, beta_2, warmup, seed):
        if (learning_rate, beta_2, warmup) == (1e-3, 0.999, "radam"):
            return 0.1 if seed == 1 else math.nan
        return objective(learning_rate, beta_2, warmup, seed)

    assert small_table(sweep(lucky)).best() == ((3e-4, 0.99), "untuned_linear")


def test_the_best_of_cells_with_more_seeds_says_that_others_look_better():
    """One cell of a grown sweep has more seeds than all others: it is not the best for that alone."""
    point = {"learning_rate": 1e-3, "beta_2": 0.99, "warmup": "radam"}
    more = [Result.measured(f"more {seed}", {**point, "seed": seed}, 3.0, {}, 1.0) for seed in range(4, 8)]
    results = [each for each in sweep(objective) if each.values | point != each.values] + more
    said = told(results).text()
    assert "with radam, learning_rate 1e-3, beta_2 0.99, of the cells with the most seeds, 4; 5 cells have be" in said
    assert "of the cells with the most seeds" not in told().text()


def test_periods_that_differ_in_any_digit_are_columns_of_their_own():
    point = {"learning_rate": 1e-3, "beta_2": 0.99, "warmup": "linear", "seed": 1}
    periods = (1_000_000.0, 1_000_001.0)
    runs = [Result.measured(str(period), {**point, "warmup_period": period}, 1.0, {}, 1.0) for period in periods]
    assert small_table(runs, grid=None).methods == ("linear 1000000", "linear 1000001")


def test_direction_turns_the_best_and_the_verdict():
    table = small_table(direction="max")
    assert table.best() == ((1e-3, 0.99), "untuned_linear")
    assert "loss, higher is better" in told(direction="max").markdown()
    narrow = dataclasses.replace(TERMS, margin=dataclasses.replace(TERMS.margin, size=0.01))
    assert "outside the margin, radam is better." in told(direction="max", terms=narrow).markdown()
    assert "outside the margin, radam is worse." in told(terms=narrow).markdown()


def test_other_hyperparameters_become_columns_of_the_rows():
    point = {"learning_rate": 1e-3, "warmup": "radam"}
    results = [
        Result.measured(f"{seed}{rate}", {**point, "dropout": rate, "seed": seed}, rate, {}, 1.0)
        for seed in (1, 2)
        for rate in (0.5, 0.05)
    ]
    summary = told(results, grid=None)
    assert summary.table.row_names == ("learning_rate", "dropout")
    assert "| learning_rate | dropout | radam |" in summary.markdown()
    assert "| 1e-3 | 5e-2 | 0.0500 ± 0.0000 |" in summary.markdown()


@pytest.mark.parametrize(
    ("cell", "seeds", "text"),
    [
        (Cell.of([19.4, 19.5, 19.6]), 3, "19.5 ± 0.1"),
        (Cell.of([19.4, 19.6], ["diverged"]), 3, "19.5 ± 0.1 (2 of 3; 1 diverged)"),
        (Cell.of([19.4], ["diverged", "failed", "failed"]), 4, "19.4 (1 of 4; 1 diverged, 2 failed)"),
        (Cell.of([19.4, 19.6]), 3, "19.5 ± 0.1 (2 of 3)"),
        (Cell.of([19.44]), 1, "19.4"),
        (Cell.of([], ["diverged"] * 3), 3, "diverged (3 of 3)"),
        (Cell.of([], ["failed"] * 3), 3, "failed (3 of 3)"),
        (Cell.of([], ["diverged", "failed"]), 3, "diverged (1 of 3), failed (1 of 3)"),
        (Cell.of([], ["failed"]), 1, "failed"),
        (Cell(), 3, "\N{EN DASH}"),
        (Cell.of([-0.01, -0.02]), 2, "0.0 ± 0.0"),
    ],
)
def test_a_cell_says_how_many_seeds_it_stands_for(cell, seeds, text):
    assert cell_text(cell, seeds, places=1) == text


@pytest.mark.parametrize(
    ("scale", "text"), [(1.0, "1.20 ± 0.20"), (1e-3, "0.00120 ± 0.00020"), (100.0, "120 ± 20"), (0.3, "0.36 ± 0.06")]
)
def test_decimals_follow_the_spread_of_seeds(scale, text):
    grid = GRID | {"warmup": ["untuned_linear"], "learning_rate": [3e-4]}
    results = sweep(lambda **point: scale * (1 + 0.2 * (point["seed"] - 1)), grid)
    assert f"| {text} |" in told(results, grid=grid).markdown()


def test_the_best_cell_is_told_for_each_value_of_a_further_axis():
    def value(learning_rate, beta_2, warmup, seed, dropout):
        """The larger rate needs dropout."""
        wrong = (learning_rate == 1e-3) != (dropout > 0)
        return 1 + wrong + 0.1 * (warmup == "radam") + 0.01 * (beta_2 == 0.999) + 0.001 * seed

    grid = {**GRID, "dropout": [0.0, 0.1]}
    said = told(sweep(value, grid), grid=grid).text().splitlines()
    assert [line for line in said if line.startswith("Best at")] == [
        "Best at dropout 0.0: 1.0020 ± 0.0010 with untuned_linear, learning_rate 3e-4, beta_2 0.99.",
        "Best at dropout 0.1: 1.0020 ± 0.0010 with untuned_linear, learning_rate 1e-3, beta_2 0.99.",
    ]


def test_two_runs_of_one_point_are_refused():
    results = sweep(objective)
    with pytest.raises(ValueError, match="A sweep must have one run for each point. Received: two of {'trial"):
        small_table([*results, results[0]])


def test_an_unknown_direction_is_refused():
    with pytest.raises(ValueError, match="`direction` must be one of min, max. Received: 'lower'"):
        small_table(direction="lower")


def test_an_error_is_told_in_per_cent_everywhere_with_the_same_digits(tmp_path):
    """In the terminal, in the files of a sweep, and on the page."""
    grid = {"learning_rate": [1e-3], "beta_2": [0.99], "warmup": ["untuned_linear", "radam"], "seed": [1, 2, 3]}
    path = reports.write_sweep(tmp_path / "sweep", lambda **point: 0.0555 + 0.0005 * point["seed"], grid)
    lists = {f"{name}s": values for name, values in grid.items()}
    lists |= {"task": "image_classification", "search": "grid", "axes": {}, "tuned_lists": {}}
    settings = types.SimpleNamespace(**lists, plain=lambda: {"dataset": "digits"})
    folder = types.SimpleNamespace(path=path, write=lambda name, text: (path / name).write_text(text))
    results = {result.name: result for result in read_results(path)}
    printed = Tables(folder, settings, OBJECTIVES[settings.task], results).write()
    [read] = read_runs([str(path)]).sweeps
    shown = sweep_table("sweep", "", read.table())
    assert shown.rows == [["1e-3", "0.99", "5.65 ± 0.05", "5.65 ± 0.05"]]
    assert "1e-3           0.99    5.65 ± 0.05     5.65 ± 0.05" in printed
    assert "| 1e-3 | 0.99 | 5.65 ± 0.05 | 5.65 ± 0.05 |" in (path / "summary.md").read_text()
    assert printed.startswith("Sweep of image_classification: validation error, %, lower is better\n")
    rows = list(csv.reader((path / "summary.csv").read_text().splitlines()))
    assert [[str(value) for value in record] for record in shown.records] == rows
    assert (float(rows[1][3]), rows[1][-1]) == (pytest.approx(5.65, rel=1e-14), "validation error, %")
