"""Sweeps: every cell once, whatever happens, with the result that a run of its own would have."""

import csv
import json
import random
import time

import numpy as np
import psutil
import pytest

from tests.trainers.helpers import ROOT, final_weights, finish, program, records, status, wait_for
from trainers.engine.config import ConfigError, make_config, parse_arguments
from trainers.engine.run import train
from trainers.sweep import named_task
from trainers.sweeps import tuner
from trainers.sweeps.cells import Cell
from trainers.sweeps.reuse import Benches
from trainers.sweeps.space import grid, sweep_config_class, trial_config
from trainers.sweeps.sweep import read_results, sweep
from trainers.tasks import TASKS

TASK = TASKS["image_classification"]
CONFIG = sweep_config_class(TASK)
SMALL = {
    "task": "image_classification",
    "learning_rates": (1e-3, 1e-2),
    "beta_2s": (0.9, 0.99),
    "warmups": ("untuned_linear", "radam"),
    "seeds": (1, 2),
    "steps": 8,
    "batch_size": 64,
    "decay": "cosine",
    "weight_decay": 0.01,
    "log_every": 4,
    "checkpoint_every": 4,
    "save_models": True,
    "progress": False,
}


def settings(folder, **options):
    return make_config(CONFIG, {**SMALL, "output_dir": str(folder), **options})


def command_line(folder, **options):
    values = {**SMALL, "output_dir": str(folder), **options}
    del values["progress"], values["save_models"]
    return ["--noprogress"] + [
        f"--{k}={','.join(map(str, v)) if isinstance(v, tuple) else v}" for k, v in values.items()
    ]


def values_of(folder):
    return {result.trial: (result.status, result.objective, dict(result.metrics)) for result in read_results(folder)}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "run"
    return folder, sweep(settings(folder))


def test_a_sweep_runs_every_cell_and_prints_the_papers_table(swept):
    folder, said = swept
    assert len(read_results(folder)) == 16
    rows = list(csv.DictReader((folder / "results.csv").read_text().splitlines()))
    assert {row["status"] for row in rows} == {"done"}
    assert {(row["learning_rate"], row["beta_2"], row["warmup"], row["seed"]) for row in rows} == {
        (str(cell.learning_rate), str(cell.beta_2), cell.warmup, str(cell.seed)) for cell in grid(settings(folder))
    }
    assert "learning_rate  beta_2  untuned_linear" in said
    assert "Mean ± standard deviation over 2 seeds." in (folder / "summary.md").read_text()
    assert len((folder / "summary.csv").read_text().splitlines()) == 1 + 8
    assert status(folder) == "done\n"
    assert list((folder / "trials").glob("*/tensorboard/*hparams*")) or list(
        (folder / "trials").glob("*/tensorboard/*")
    )


@pytest.mark.parametrize("cell", [Cell(1e-2, 0.99, "radam", 2), Cell(1e-3, 0.9, "untuned_linear", 1)])
def test_a_trial_ends_with_the_bits_of_a_run_of_its_own(cell, swept, tmp_path):
    """Neither the other trials nor the shared graph leave a trace: not in a record, not in a weight."""
    folder, _ = swept
    train(TASK, trial_config(settings(folder), cell, str(tmp_path / "alone")))
    shared = folder / "trials" / cell.name
    assert records(shared) == records(tmp_path / "alone")
    ours, theirs = (json.loads((path / "results.json").read_text()) for path in (shared, tmp_path / "alone"))
    assert ours == theirs
    np.testing.assert_array_equal(final_weights(shared), final_weights(tmp_path / "alone"))


@pytest.mark.parametrize(
    "options", [{"precision": "mixed_float16"}, {"model": "mlp", "accumulate": 2}, {"beta_1": 0.8}]
)
def test_a_reset_bench_is_a_new_one(options, tmp_path):
    benches = Benches()
    cells = [Cell(1e-2, 0.9, "none", 1), Cell(1e-3, 0.99, "radam", 3), Cell(1e-3, 0.99, "radam_constant_adam", 3)]
    for number, cell in enumerate(cells):
        for name, make in (("shared", {"make_bench": benches}), ("new", {})):
            config = trial_config(settings("-", steps=4, **options), cell, str(tmp_path / f"{name}{number}"))
            train(TASK, config, **make)
        assert records(tmp_path / f"shared{number}") == records(tmp_path / f"new{number}")
    assert benches._last.stepper.train.experimental_get_tracing_count() == 1


def test_the_rules_for_radams_first_steps_are_methods(tmp_path):
    methods = ("radam", "radam_nothing", "radam_constant_adam", "radam_linear_adam")
    grid = {"learning_rates": (1e-2,), "beta_2s": (0.99,), "warmups": methods, "seeds": (1,)}
    said = sweep(settings(tmp_path, **grid, steps=4, save_models=False))
    assert said.splitlines()[2].split() == ["learning_rate", "beta_2", *methods]
    results = {result.values["warmup"]: result for result in read_results(tmp_path)}
    configs = {m: json.loads((tmp_path / "trials" / results[m].trial / "config.json").read_text()) for m in methods}
    assert [configs[method]["config"]["warmup"] for method in methods] == ["radam"] * 4
    rules = [configs[method]["config"]["first_steps"] for method in methods]
    assert rules == ["momentum", "nothing", "constant_adam", "linear_adam"]
    assert len({result.metrics["val_loss"] for result in results.values()}) == 4


def test_the_hyperparameters_are_there_for_tensorboard(swept):
    folder, _ = swept
    cell = grid(settings(folder))[0]
    boards = (folder / "trials" / cell.name / "tensorboard").iterdir()
    assert any(b"untuned_linear" in path.read_bytes() and b"_hparams_" in path.read_bytes() for path in boards)


def test_finished_trials_are_not_run_again(swept, monkeypatch):
    folder, said = swept
    monkeypatch.setattr(tuner, "run_cell", None)
    assert sweep(settings(folder)) == said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": (1, 2, 3)}, r"whose run has seeds=\[1, 2\], not \[1, 2, 3\]"),
        ({"steps": 9}, "whose run has steps=8, not 9"),
    ],
)
def test_another_grid_or_configuration_is_refused(options, message, swept):
    folder, _ = swept
    before = (folder / "results.csv").read_text()
    with pytest.raises(ConfigError, match=message):
        sweep(settings(folder, **options))
    assert (folder / "results.csv").read_text() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"warmups": ("linear",)}, "--warmups must be one of none, .* Received: 'linear'"),
        ({"beta_2s": (0.9, 1.0)}, r"--beta_2s must be in \(0, 1\). Received: \(0.9, 1.0\)"),
        ({"learning_rates": (0.1, 0.1)}, "--learning_rates must have no value twice"),
        ({"seeds": ()}, "--seeds must have at least one value"),
        ({"search": "luck"}, "--search must be one of grid, random, bayesian, hyperband. Received: 'luck'"),
        ({"task": "chess"}, "--task must be one of"),
        ({"checkpoint_every": 3}, "--checkpoint_every must be a multiple of --log_every=4. Received: 3"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(options, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        sweep(settings(tmp_path / "run", **options))
    assert not (tmp_path / "run").exists()


def test_a_trial_that_diverges_or_fails_is_a_result_and_the_sweep_goes_on(tmp_path, monkeypatch):
    build = TASK.build

    def breaking(self, config, data):
        if config.seed == 2:
            raise RuntimeError("no such luck")
        return build(config, data)

    monkeypatch.setattr(type(TASK), "build", breaking)
    options = {"learning_rates": (1e-3, 1e30), "beta_2s": (0.9,), "warmups": ("none",), "decay": "constant"}
    said = sweep(settings(tmp_path, **options))
    results = {(result.values["learning_rate"], result.values["seed"]): result for result in read_results(tmp_path)}
    assert results[1e-3, 1].status == "done"
    assert results[1e30, 1].status == "diverged"
    assert results[1e-3, 2].status == "failed"
    assert results[1e-3, 2].error == "RuntimeError: no such luck"
    assert "1 diverged" in said
    monkeypatch.undo()
    sweep(settings(tmp_path, **options, retry_failed=True))
    assert {result.status for result in read_results(tmp_path)} == {"done", "diverged"}


SLOW_SEARCHES = [pytest.param(name, marks=pytest.mark.slow) for name in ("bayesian", "hyperband")]


@pytest.mark.parametrize("search", ["random", *SLOW_SEARCHES])
def test_other_searches_look_for_the_best_cell_and_go_on_after_a_stop(search, tmp_path, monkeypatch):
    options = {"search": search, "trials": 4, "seeds": (1,), "steps": None, "epochs": 4, "batch_size": 1000}
    said = sweep(settings(tmp_path, **options))
    assert "Best: " in said
    assert len(read_results(tmp_path)) >= 4
    monkeypatch.setattr(tuner, "run_cell", None)
    assert sweep(settings(tmp_path, **options)) == said


def test_the_variables_of_keras_tuner_go_together(tmp_path, monkeypatch):
    monkeypatch.setenv("KERASTUNER_ORACLE_IP", "127.0.0.1")
    with pytest.raises(ConfigError, match="A chief and its workers need .* Received: only KERASTUNER_ORACLE_IP"):
        sweep(settings(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "task", "runs"),
    [
        ("paper/sweep_imagenet", "image_classification", 135),
        ("paper/sweep_wikitext103", "language_modeling", 81),
        ("paper/sweep_wmt16", "machine_translation", 108),
        ("embedded/sweep_digits", "image_classification", 81),
        ("embedded/sweep_language_modeling", "language_modeling", 81),
        ("embedded/sweep_machine_translation", "machine_translation", 108),
    ],
)
def test_the_grids_of_the_configs_are_the_papers(name, task, runs, monkeypatch):
    monkeypatch.chdir(ROOT)
    arguments = ["sweep", f"--flagfile=configs/{name}.flags", "--output_dir=-"]
    assert named_task(arguments) == task
    settings = parse_arguments(sweep_config_class(TASKS[task]), arguments[1:])
    assert len(grid(settings)) == runs
    assert trial_config(settings, grid(settings)[-1], "-").warmup == "radam"


@pytest.mark.slow
def test_workers_share_the_trials_and_a_dead_one_is_replaced(swept, tmp_path):
    process = program("trainers.sweep", *command_line(tmp_path / "run", workers=2))
    wait_for(lambda: len(read_results(tmp_path / "run")) >= 2)
    worker = psutil.Process(process.pid).children(recursive=True)[-1]
    worker.kill()
    output, _ = finish(process)
    folder, said = swept
    assert output.strip() == said.strip()
    ours, alone = values_of(tmp_path / "run"), values_of(folder)
    assert ours.keys() == alone.keys()
    for trial, (state, objective, metrics) in ours.items():
        assert (state, objective) == alone[trial][:2]
        # Two workers have fewer threads each, which add up a batch in another order: one ulp of its float32 loss.
        assert metrics == pytest.approx(alone[trial][2], rel=1.2e-7)


@pytest.mark.slow
def test_chief_and_workers_end_when_their_starter_is_killed(tmp_path):
    process = program("trainers.sweep", *command_line(tmp_path / "run", workers=2))
    wait_for(lambda: read_results(tmp_path / "run"))
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) == 3  # two workers and the process that forks them
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive


@pytest.mark.slow
def test_a_killed_sweep_ends_like_an_undisturbed_one(swept, tmp_path):
    generator = random.Random(0)
    for _ in range(3):
        process = program("trainers.sweep", *command_line(tmp_path / "run"))
        deadline = time.monotonic() + 60
        while not (tmp_path / "run/trials").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(generator.uniform(1, 6))
        process.kill()
        process.communicate()
    output, _ = finish(program("trainers.sweep", *command_line(tmp_path / "run")))
    folder, said = swept
    assert output.strip() == said.strip()
    assert values_of(tmp_path / "run") == values_of(folder)
