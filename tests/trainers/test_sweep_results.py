import dataclasses
import json
import math
import random

import numpy as np
import pytest

from tests.trainers.sweeps import csv_rows, results_csv
from trainers.results.results_csv import parse_results, read_frame, read_table
from trainers.results.trials import Result

GRID = {
    "learning_rate": [1e-2, 3e-4],
    "beta_2": [0.99, 0.999],
    "warmup": ["untuned_linear", "radam"],
    "seed": [1, 2, 10],
}


def values(learning_rate=3e-4, beta_2=0.999, warmup="radam", seed=1):
    return {"learning_rate": learning_rate, "beta_2": beta_2, "warmup": warmup, "seed": seed}


@pytest.mark.parametrize(
    "result",
    [
        Result.measured("0007", values(), 0.1 + 0.2, {"loss": 1 / 3, "tiny": 5e-324}, 12.5),
        Result.measured("0001", values(), np.float32(0.5), {"loss": np.float64(2.0)}, 3.0),
        Result("0001", values(), "failed", None, {}, 1.0, 'line 1\nline 2, "quoted"'),
    ],
    ids=["every bit", "numbers of numpy", "an error of several lines"],
)
def test_json_is_one_line_and_comes_back_the_same(result):
    line = result.to_json()
    assert "\n" not in line
    assert Result.from_json(line) == result
    assert list(Result.from_json(line).values) == ["learning_rate", "beta_2", "warmup", "seed"]
    assert {type(value) for value in (result.objective, *result.metrics.values())} <= {float, type(None)}


@pytest.mark.parametrize("objective", [math.nan, math.inf, -math.inf, np.float32("nan")])
def test_an_objective_that_is_not_finite_is_a_run_that_diverged(objective):
    result = Result.measured("0001", values(), objective, {"loss": math.nan, "accuracy": 0.1}, 3.0)
    assert (result.status, result.objective) == ("diverged", None)
    stored = json.loads(result.to_json())
    assert (stored["objective"], stored["metrics"]) == (None, {"loss": None, "accuracy": 0.1})
    assert Result.from_json(result.to_json()) == result


@pytest.mark.parametrize(
    ("status", "objective", "message"),
    [
        ("done", None, "`objective` must be .* Received: objective=None, status='done'"),
        ("done", math.nan, "`objective` must be .* Received: objective=nan, status='done'"),
        ("failed", 1.0, "`objective` must be .* Received: objective=1.0, status='failed'"),
        ("ok", 1.0, "`status` must be one of done, diverged, failed. Received: status='ok'"),
    ],
)
def test_a_status_that_is_unknown_or_contradicts_the_objective_is_refused(status, objective, message):
    with pytest.raises(ValueError, match=message):
        Result("0001", values(), status, objective, {}, 1.0)


def test_csv_has_a_row_for_each_run_in_the_order_of_the_grid():
    points = [values(*point) for point in [(1e-2, 0.99, "untuned_linear", s) for s in (1, 2, 10)]]
    points += [values(1e-2, 0.99, "radam", 1), values(1e-2, 0.999, "untuned_linear", 1), values(3e-4, 0.99)]
    results = [Result.measured(str(i), point, i / 3, {}, 1.0) for i, point in enumerate(points)]
    expected = results_csv(results, "loss", GRID)
    for seed in range(5):
        random.Random(seed).shuffle(results)
        assert results_csv(results, "loss", GRID) == expected
    assert [row["trial"] for row in csv_rows(expected)] == list("012345")
    assert [float(row["loss"]) for row in csv_rows(expected)] == [i / 3 for i in range(6)]


def test_csv_without_a_grid_sorts_numbers_by_size_and_names_by_the_alphabet():
    points = [values(1e-2), values(3e-4, warmup="untuned_linear"), values(3e-4, seed=10), values(3e-4, seed=2)]
    results = [Result.measured(str(i), point, 0.0, {}, 1.0) for i, point in enumerate(points)]
    assert [row["trial"] for row in csv_rows(results_csv(results, "loss"))] == ["3", "2", "1", "0"]


MADE_WITH = (
    "tensorflow,keras,numpy,tensorflow-datasets,keras-hub,keras-tuner,cores,processor,python,git_revision,threads"
)


def test_csv_says_everything_about_every_run():
    made_with = {"keras": "3.15.1", "threads": 4}
    results = [
        Result.measured("a", values(seed=1), 0.5, {"perplexity": 2.0, "loss": 0.5, "seconds": 9.0}, 1.5, made_with),
        Result.measured("b", values(seed=2), math.nan, {"accuracy": 0.25}, 2.5),
        Result("c", values(seed=3) | {"dropout": 0.1}, "failed", None, {}, 3.5, 'out of memory,\n"quoted"'),
    ]
    text = results_csv(results, "loss")
    assert text.splitlines()[:3] == [
        "trial,learning_rate,beta_2,warmup,seed,dropout,loss,perplexity,metric_seconds,accuracy,seconds,status,error,"
        + MADE_WITH,
        "a,0.0003,0.999,radam,1,,0.5,2.0,9.0,,1.5,done,,,3.15.1,,,,,,,,,4",
        "b,0.0003,0.999,radam,2,,,,,0.25,2.5,diverged,,,,,,,,,,,,",
    ]
    failed = csv_rows(text)[2]
    assert failed["error"] == 'out of memory,\n"quoted"'
    assert (failed["dropout"], failed["loss"], failed["status"]) == ("0.1", "", "failed")


def test_csv_of_no_runs_has_the_columns_of_the_grid():
    assert results_csv([], "loss", GRID) == (
        f"trial,learning_rate,beta_2,warmup,seed,loss,seconds,status,error,{MADE_WITH}\n"
    )


ENVIRONMENT = {"keras": "3.15.1", "processor": "a, b", "git_revision": "0" * 40, "cores": 2, "threads": 1}


def test_csv_comes_back_to_the_last_bit(tmp_path):
    metrics = {"val_loss": 0.1 + 0.2, "val_top5": 1 / 3, "seconds": 5e-324, "threads": 7.0, "seed": None}
    results = [
        Result.measured(
            "a", values(0.1 + 0.2) | {"threads": 2, "model": "a/b"}, 0.1 + 0.2, metrics, 1 / 7, ENVIRONMENT
        ),
        Result("b@2", values(1.0) | {"threads": 1}, "failed", None, {}, 3.5, 'line 1\n\u2028, "quoted"\n'),
    ]
    (tmp_path / "results.csv").write_text(results_csv(results, "val_loss"))
    assert read_table(tmp_path / "results.csv")[0] == results[0]
    failed = read_table(tmp_path / "results.csv")[1]
    assert dataclasses.replace(failed, metrics={}) == results[1]
    assert results_csv(read_table(tmp_path / "results.csv"), "val_loss") == results_csv(results, "val_loss")


@pytest.mark.parametrize(("error", "shown"), [("a\rb", "ab"), ("\0", "\0"), ("x" * 200_000, "x" * 10_000)])
def test_no_message_makes_a_table_that_cannot_be_read(error, shown, tmp_path):
    text = results_csv([Result("a", values(), "failed", None, {}, 1.0, error)], "val_loss")
    assert [result.error for result in parse_results(text)[0]] == [shown]


def test_a_frame_has_numbers_as_numbers_and_revisions_as_text(tmp_path):
    done = Result.measured("a", values() | {"warmup_period": 3.0}, 0.5, {}, 1.0, ENVIRONMENT)
    failed = Result("b", values(seed=2), "failed", None, {}, 1.0, "7", ENVIRONMENT)
    (tmp_path / "results.csv").write_text(results_csv([done, failed], "val_loss"))
    frame = read_frame(tmp_path / "results.csv")
    assert (frame.seed.dtype, frame.threads.dtype, frame.val_loss.dtype) == (np.int64, np.int64, np.float64)
    assert frame.warmup_period.isna().tolist() == frame.val_loss.isna().tolist() == [False, True]
    assert frame.git_revision.tolist() == ["0" * 40] * 2
    assert frame.error.tolist() == ["", "7"]
