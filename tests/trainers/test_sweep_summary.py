import csv
import io
import math
import statistics

import pytest

from tests.trainers.sweeps import GRID, sweep
from trainers.sweeps.results import Result
from trainers.sweeps.summary import cell_text, summary_csv, summary_markdown, summary_text
from trainers.sweeps.table import Cell, tabulate

MARKDOWN = """\
# Digits: loss, lower is better

| learning_rate | beta_2 | untuned_linear | radam |
| --- | --- | --- | --- |
| 3e-4 | 0.99 | 1.20 ± 0.20 | 1.30 ± 0.22 |
| 3e-4 | 0.999 | 1.20 ± 0.28 (2 of 3; 1 failed) | 1.30 ± 0.22 |
| 1e-3 | 0.99 | 2.20 ± 0.20 | diverged (3 of 3) |
| 1e-3 | 0.999 | 2.20 ± 0.20 | 2.41 ± 0.16 (2 of 3; 1 diverged) |

Mean ± standard deviation over 3 seeds. untuned_linear: 1 failed of 12 runs. radam: 4 diverged of 12 runs.

Best: 1.20 ± 0.20 with untuned_linear, learning_rate 3e-4, beta_2 0.99.

## The methods compared

Standard deviation between methods 0.07, between seeds 0.22 (over 3 rows): a ratio of 0.33, where equal methods in \
independent runs give about 0.68.

- radam - untuned_linear: +0.10 [+0.05, +0.15], p = 0.013 (3 seeds, 1 of 4 rows): radam is worse, by 0.05 to 0.15.

Differences are paired by seed and have 95 % t intervals. Runs that diverged or failed are in no mean and in no \
difference.

| learning_rate | beta_2 | between methods | between seeds | radam - untuned_linear |
| --- | --- | --- | --- | --- |
| 3e-4 | 0.99 | 0.07 | 0.21 | +0.10 [+0.05, +0.15], p = 0.013 |
| 3e-4 | 0.999 | 0.07 | 0.30 | +0.10 [-0.15, +0.35], p = 0.13 (2 seeds) |
| 1e-3 | 0.99 | \N{EN DASH} | \N{EN DASH} | \N{EN DASH} |
| 1e-3 | 0.999 | 0.08 | 0.15 | +0.11 [-0.02, +0.24], p = 0.058 (2 seeds) |

Below p = 0.05: 1 of the 3 tests in single rows, which are not corrected for their number; chance alone gives about 0.2.
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


def small_table(results=None, direction="min", grid=GRID):
    return tabulate(sweep(objective) if results is None else results, "loss", direction, grid)


def cell_rows(table):
    return list(csv.DictReader(io.StringIO(summary_csv(table))))


def test_markdown_is_the_papers_table_and_its_comparison():
    assert summary_markdown(small_table(), "Digits") == MARKDOWN


def test_text_is_the_same_in_aligned_columns():
    text = summary_text(small_table())
    assert text.startswith(TEXT)
    assert text.count("\n\n") == 3
    for sentence in text.split("\n\n", 2)[2].splitlines():
        assert sentence in MARKDOWN


def test_order_of_the_results_does_not_matter():
    assert summary_markdown(small_table(sweep(objective)[::-1]), "Digits") == MARKDOWN


def test_methods_stand_in_the_order_of_the_grid_and_rows_ascend():
    table = small_table()
    assert table.methods == ("untuned_linear", "radam")
    assert table.rows == ((3e-4, 0.99), (3e-4, 0.999), (1e-3, 0.99), (1e-3, 0.999))


def test_csv_has_a_row_for_each_cell():
    rows = cell_rows(small_table())
    assert len(rows) == 8
    assert list(rows[0]) == ["learning_rate", "beta_2", "warmup", "mean", "std", "n", "diverged", "failed", "missing"]
    assert float(rows[1]["mean"]) == pytest.approx(statistics.mean([1.08, 1.3, 1.52]), rel=1e-15)
    assert float(rows[1]["std"]) == pytest.approx(statistics.stdev([1.08, 1.3, 1.52]), rel=1e-14)
    counts = [[int(row[name]) for name in ("n", "diverged", "failed", "missing")] for row in rows]
    assert counts == [
        [3, 0, 0, 0],
        [3, 0, 0, 0],
        [2, 0, 1, 0],
        [3, 0, 0, 0],
        [3, 0, 0, 0],
        [0, 3, 0, 0],
        [3, 0, 0, 0],
        [2, 1, 0, 0],
    ]
    assert (rows[5]["mean"], rows[5]["std"]) == ("", "")


def test_a_sweep_that_still_runs_shows_what_is_to_come():
    table = small_table(sweep(objective)[:4])
    assert "| 3e-4 | 0.99 | \N{EN DASH} | \N{EN DASH} |" in summary_markdown(table)
    assert "radam: 1 diverged, 11 missing of 12 runs." in summary_markdown(table)
    assert cell_rows(table)[0]["missing"] == "3"


def test_a_sweep_that_has_not_begun_has_a_table_too():
    text = summary_markdown(small_table([]))
    assert "Best: none, no run is done." in text
    assert "radam - untuned_linear: nothing to compare, there is no row in which both have every seed." in text
    assert "Best: none" in summary_text(small_table([], grid=None))


def test_one_seed_has_a_mean_only_and_no_test():
    results = [result for result in sweep(objective) if result.values["seed"] == 1]
    text = summary_markdown(small_table(results, grid=None))
    assert "| 3e-4 | 0.99 | 1.080 | 1.000 |" in text
    assert "| 1e-3 | 0.99 | diverged | 2.000 |" in text
    assert "One seed. radam: 2 diverged of 4 runs." in text
    assert "- untuned_linear - radam: -0.080 (1 seed, 2 of 4 rows): too few seeds for a test." in text
    assert "No test in any row" in text


def test_one_method_is_compared_with_nothing():
    results = [result for result in sweep(objective) if result.values["warmup"] == "radam"]
    text = summary_markdown(small_table(results, grid=None))
    assert "compared" not in text
    assert text.rstrip().endswith("Best: 1.30 ± 0.22 with radam, learning_rate 3e-4, beta_2 0.99.")


def test_a_lucky_survivor_is_not_the_best():
    def lucky(learning_rate, beta_2, warmup, seed):
        if (learning_rate, beta_2, warmup) == (1e-3, 0.999, "radam"):
            return 0.1 if seed == 1 else math.nan
        return objective(learning_rate, beta_2, warmup, seed)

    assert small_table(sweep(lucky)).best() == ((3e-4, 0.99), "untuned_linear")


def test_direction_turns_the_best_and_the_verdict():
    table = small_table(direction="max")
    assert table.best() == ((1e-3, 0.99), "untuned_linear")
    assert "loss, higher is better" in summary_markdown(table)
    assert "radam is better, by 0.05 to 0.15." in summary_markdown(table)


def test_other_hyperparameters_become_columns_of_the_rows():
    results = [
        Result.measured(
            f"{seed}{rate}", {"learning_rate": 1e-3, "dropout": rate, "warmup": "radam", "seed": seed}, rate, {}, 1.0
        )
        for seed in (1, 2)
        for rate in (0.5, 0.05)
    ]
    table = tabulate(results, "loss", "min")
    assert table.row_names == ("learning_rate", "dropout")
    assert "| learning_rate | dropout | radam |" in summary_markdown(table)
    assert "| 1e-3 | 5e-2 | 0.0500 ± 0.0000 |" in summary_markdown(table)


@pytest.mark.parametrize(
    ("cell", "seeds", "text"),
    [
        (Cell({1: 19.4, 2: 19.5, 3: 19.6}), 3, "19.5 ± 0.1"),
        (Cell({1: 19.4, 2: 19.6}, diverged=1), 3, "19.5 ± 0.1 (2 of 3; 1 diverged)"),
        (Cell({1: 19.4}, diverged=1, failed=2), 4, "19.4 (1 of 4; 1 diverged, 2 failed)"),
        (Cell({1: 19.4, 2: 19.6}), 3, "19.5 ± 0.1 (2 of 3)"),
        (Cell({1: 19.44}), 1, "19.4"),
        (Cell(diverged=3), 3, "diverged (3 of 3)"),
        (Cell(failed=3), 3, "failed (3 of 3)"),
        (Cell(diverged=1, failed=1), 3, "diverged (1 of 3), failed (1 of 3)"),
        (Cell(failed=1), 1, "failed"),
        (Cell(), 3, "\N{EN DASH}"),
        (Cell({1: -0.01, 2: -0.02}), 2, "0.0 ± 0.0"),
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
    assert f"| {text} |" in summary_markdown(small_table(results, grid=grid))


def test_two_runs_of_one_point_are_refused():
    results = sweep(objective)
    with pytest.raises(
        ValueError, match="`results` must have one run for each point. Received: two of {'learning_rate"
    ):
        small_table([*results, results[0]])


def test_a_run_without_a_seed_is_refused():
    with pytest.raises(ValueError, match="`values` of a result must have 'seed'. Received: {'warmup': 'radam'}"):
        small_table([Result.measured("a", {"warmup": "radam"}, 1.0, {}, 1.0)])


def test_an_unknown_direction_is_refused():
    with pytest.raises(ValueError, match="`direction` must be one of min, max. Received: direction='lower'"):
        small_table(direction="lower")
