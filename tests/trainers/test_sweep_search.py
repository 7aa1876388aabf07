"""Searches: cells are drawn, seeds are replicates."""

import pytest

from tests.trainers.helpers import status
from tests.trainers.tiny_sweep import settings
from trainers.results.results_csv import read_results
from trainers.results.trials import Result
from trainers.sweep import sweep
from trainers.sweeps import trial
from trainers.sweeps.search import SearchSource

RANGES = {"learning_rates": (1e-4, 1e-1), "beta_2s": (0.9, 0.999), "warmups": ("radam", "linear")}
SPACE = {**RANGES, "warmup_periods": (2, 50), "seeds": (1, 2, 3)}


def source_of(search="random", direction="min", **options):
    length = {} if search == "hyperband" else {"trials": 8}
    return SearchSource(settings("-", **{**SPACE, "search": search, **length, **options}), "val_error", direction)


def drawn(source, objective):
    """Runs a search on an objective of a cell, None for a run that diverges; returns the cells in their order."""
    cells = []
    while (cell := source.next()) is not None:
        cells.append(cell)
        value = objective(cell)
        source.ended(cell, Result.measured(cell.name, cell.values, float("nan") if value is None else value, {}, 1.0))
    return cells


def scores(source):
    return [trial.score for trial in source.oracle.trials.values()]


@pytest.mark.parametrize("search", ["random", "bayesian"])
def test_a_cell_is_run_with_every_seed_and_counts_by_their_mean(search):
    source = source_of(search)
    cells = drawn(source, lambda cell: cell.learning_rate + 10 * cell.seed)
    assert [cell.seed for cell in cells] == [1, 2, 3] * 8
    assert len({cell.name for cell in cells}) == 24
    assert scores(source) == pytest.approx([cell.learning_rate + 20 for cell in cells[::3]], rel=1e-12)


def test_numbers_are_drawn_between_the_ends_and_evenly_by_their_logarithms():
    cells = drawn(source_of(trials=200, seeds=(1,)), lambda cell: 0.0)
    for values, low, high in (
        ([cell.learning_rate for cell in cells], 1e-4, 1e-1),
        ([1 - cell.beta_2 for cell in cells], 1e-3, 1e-1),
        ([cell.values["warmup_period"] for cell in cells if cell.warmup == "linear"], 2, 50),
    ):
        assert low * 0.999 <= min(values)
        assert max(values) <= high * 1.001
        below = sum(value < (low * high) ** 0.5 for value in values) / len(values)
        assert 0.35 < below < 0.65
    assert all("warmup_period" not in cell.values for cell in cells if cell.warmup == "radam")


def test_shares_are_drawn_in_place_of_periods():
    cells = drawn(source_of(trials=60, seeds=(1,), warmup_periods=(), warmup_shares=(0.01, 0.2)), lambda cell: 0.0)
    shares = [cell.values["warmup_share"] for cell in cells if cell.warmup == "linear"]
    assert 0.01 <= min(shares) < 0.03
    assert 0.1 < max(shares) <= 0.2
    assert not any("warmup_period" in cell.values for cell in cells)


@pytest.mark.parametrize(("direction", "expected"), [("min", 5.0), ("max", 1.0)])
def test_a_run_that_diverges_counts_as_the_worst(direction, expected):
    source = source_of(direction=direction, seeds=(1, 2), trials=2)
    values = iter([1.0, 5.0, 3.0, None])
    drawn(source, lambda cell: next(values))
    assert scores(source)[1] == (3.0 + expected) / 2


@pytest.mark.parametrize("seed", [0, 1])
def test_a_seed_draws_the_same_cells_again_also_0(seed):
    first, second = (drawn(source_of(seed=seed), lambda cell: 0.0) for _ in range(2))
    assert first == second
    assert first != drawn(source_of(seed=seed + 1), lambda cell: 0.0)


@pytest.mark.parametrize(("length", "name"), [({"steps": None, "epochs": 9}, "epochs"), ({"steps": 270}, "steps")])
def test_hyperband_gives_the_best_cells_more_epochs_or_steps(length, name):
    source = source_of("hyperband", **length)
    cells = drawn(source, lambda cell: cell.learning_rate)
    lengths = sorted({cell.values[name] for cell in cells})
    assert lengths == ([1, 3, 9] if name == "epochs" else [10, 30, 90, 270])
    shortest = {cell.learning_rate for cell in cells if cell.values[name] == lengths[0]}
    longer = {cell.learning_rate for cell in cells if cell.values[name] == lengths[1]} & shortest
    assert 0 < len(longer) < len(shortest) / 2
    assert sorted(longer)[:3] == sorted(shortest)[:3]
    assert all(sum(c.learning_rate == cell.learning_rate for c in cells) % 3 == 0 for cell in cells)  # three seeds


@pytest.mark.parametrize("search", ["random", pytest.param("hyperband", marks=pytest.mark.slow)])
def test_a_search_ends_with_the_best_cell_and_goes_on_after_a_stop(search, tmp_path, monkeypatch):
    length = {} if search == "hyperband" else {"trials": 3}
    options = {"search": search, "seeds": (0, 1), **length}
    said = sweep(settings(tmp_path, **options))
    assert "Best: " in said
    results = read_results(tmp_path)
    assert len(results) == 6 if search == "random" else len(results) > 6
    assert {result.values["seed"] for result in results} == {0, 1}
    assert status(tmp_path) == "done\n"
    monkeypatch.setattr(trial, "run_cell", None)
    assert sweep(settings(tmp_path, **options)) == said
