"""Sweeps: every cell once, whatever happens, with the result that a run of its own would have."""

import json
import re

import numpy as np
import pytest

from tests.trainers.helpers import ROOT, final_weights, records, status
from tests.trainers.sweeps import csv_rows
from trainers.engine.flags import make_config
from trainers.engine.program import parse_arguments
from trainers.engine.reuse import Setups
from trainers.engine.run import train
from trainers.results.methods import Point
from trainers.results.results_csv import read_results
from trainers.sweep import named_task, sweep
from trainers.sweeps import trial
from trainers.sweeps.space import grid, sweep_config_class, trial_config
from trainers.system.errors import ConfigError
from trainers.tasks import load_task

TASK = load_task("image_classification")
CONFIG = sweep_config_class(TASK.name)
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
    "threads": 0,  # TensorFlow is at work in this process, with its own number
}


def settings(folder, **options):
    return make_config(CONFIG, {**SMALL, "output_dir": str(folder), **options})


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "run"
    return folder, sweep(settings(folder))


def test_a_sweep_runs_every_cell_and_prints_the_papers_table(swept):
    folder, said = swept
    assert len(read_results(folder)) == 16
    rows = csv_rows((folder / "results.csv").read_text())
    assert {row["status"] for row in rows} == {"done"}
    assert {(row["learning_rate"], row["beta_2"], row["warmup"], row["seed"]) for row in rows} == {
        (str(cell.learning_rate), str(cell.beta_2), cell.warmup, str(cell.seed)) for cell in grid(settings(folder))
    }
    assert "learning_rate  beta_2  untuned_linear" in said
    assert "Mean ± standard deviation over 2 seeds." in (folder / "summary.md").read_text()
    assert len((folder / "summary.csv").read_text().splitlines()) == 1 + 8
    assert status(folder) == "done\n"


@pytest.mark.parametrize("cell", [Point(1e-2, 0.99, "radam", 2), Point(1e-3, 0.9, "untuned_linear", 1)])
def test_a_trial_ends_with_the_bits_of_a_run_of_its_own(cell, swept, tmp_path):
    """Neither the other trials nor the shared graph leave a trace: not in a record, not in a weight."""
    folder, _ = swept
    train(TASK, trial_config(settings(folder), cell.values, str(tmp_path / "alone")))
    shared = folder / "trials" / cell.name
    assert records(shared) == records(tmp_path / "alone")
    ours, theirs = (json.loads((path / "results.json").read_text()) for path in (shared, tmp_path / "alone"))
    assert ours == theirs
    np.testing.assert_array_equal(final_weights(shared), final_weights(tmp_path / "alone"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"precision": "mixed_float16"}, {"model": "mlp", "accumulate": 2}, {"beta_1": 0.8}]
)
def test_a_reset_setup_is_a_new_one(options, tmp_path):
    setups = Setups()
    cells = [
        Point(1e-2, 0.9, "none", 1),
        Point(1e-3, 0.99, "radam", 3),
        Point(1e-3, 0.99, "radam_constant_adam", 3),
        Point(1e-3, 0.99, "linear", 3, (("warmup_period", 3.0),)),
    ]
    for number, cell in enumerate(cells):
        for name, make in (("shared", {"make_setup": setups}), ("new", {})):
            config = trial_config(settings("-", steps=4, **options), cell.values, str(tmp_path / f"{name}{number}"))
            train(TASK, config, **make)
        assert records(tmp_path / f"shared{number}") == records(tmp_path / f"new{number}")
    assert setups._last.stepper.train.experimental_get_tracing_count() == 1


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


def test_tensorboard_knows_the_hyperparameters_and_the_metric_and_groups_the_curves(swept):
    from tensorboard.plugins.hparams import plugin_data_pb2
    from tensorflow.python.summary.summary_iterator import summary_iterator

    folder, _ = swept
    cell = grid(settings(folder))[0]
    boards = (folder / "trials" / cell.name / "tensorboard").iterdir()
    values = [value for path in boards for event in summary_iterator(str(path)) for value in event.summary.value]
    contents = {value.tag: value.metadata.plugin_data.content for value in values}
    session = plugin_data_pb2.HParamsPluginData.FromString(contents["_hparams_/session_start_info"])
    assert session.session_start_info.hparams["warmup"].string_value == cell.warmup
    experiment = plugin_data_pb2.HParamsPluginData.FromString(contents["_hparams_/experiment"]).experiment
    [metric] = experiment.metric_infos
    assert metric.name.tag in contents  # a curve that is there
    assert {info.name for info in experiment.hparam_infos} >= {"learning_rate", "beta_2", "warmup", "seed"}
    assert {tag.partition("/")[0] for tag in contents} == {"_hparams_", "train", "val", "optimizer"}


def test_finished_trials_are_not_run_again(swept, monkeypatch):
    folder, said = swept
    monkeypatch.setattr(trial, "run_cell", None)
    assert sweep(settings(folder)) == said


@pytest.mark.parametrize("options", [{"steps": 9}, {"weight_decay": 0.0}, {"threads": 1}])
def test_another_configuration_is_refused(options, swept):
    folder, _ = swept
    before = (folder / "results.csv").read_text()
    name, value = next(iter(options.items()))
    with pytest.raises(ConfigError, match=f"whose run has {name}={SMALL[name]}, not {value}"):
        sweep(settings(folder, **options))
    assert (folder / "results.csv").read_text() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"warmups": ("linear",)}, "--warmups=linear needs --warmup_periods or --warmup_shares. Received"),
        ({"warmup_periods": (10,)}, "--warmup_periods is for linear and exponential among --warmups"),
        ({"warmups": ("linear",), "warmup_periods": (0,)}, "--warmup_periods must be a number > 0"),
        ({"warmup_shares": (0.1,)}, "--warmup_shares is for linear and exponential among --warmups"),
        (
            {"warmups": ("linear",), "warmup_shares": (5,)},
            r"--warmup_shares must be in \(0, 1\]. Received: 5.0",
        ),
        ({"sweep": ("warmup_share=0.1",)}, "--sweep must be another flag; use --warmup_shares for this one"),
        (
            {"warmups": ("linear",), "warmup_periods": (9,), "warmup_shares": (0.1,), "search": "random"},
            "--warmup_periods and --warmup_shares exclude each other in a search",
        ),
        ({"seeds": ("3-1",)}, "--seeds must have ranges whose first integer is not above the last. Received: '3-1'"),
        ({"seeds": ("0-4294967295",)}, "--seeds must have ranges of at most 10000 integers. Received: '0-4294967295'"),
        ({"evaluate_only": True}, "--evaluate_only is for a single run, not for a sweep. Received: True"),
        ({"sweep": ("weight_decay",)}, "--sweep must be a flag of the task and its values"),
        ({"sweep": ("weight=1",)}, "--sweep must be a flag of the task .* Received: 'weight'"),
        ({"sweep": ("batch_size=64,1e2",)}, "--sweep=batch_size must have values as --batch_size takes them"),
        ({"sweep": ("seed=1,2",)}, "--sweep must be another flag; use --seeds for this one. Received: 'seed'"),
        ({"sweep": ("log_every=1,2",)}, "--sweep must be a flag that changes the result of a run"),
        ({"sweep": ("beta_1=0.9,2",)}, r"--beta_1 must be in \[0, 1\). Received: 2.0"),
        ({"gpus_per_trial": 1.5}, r"--gpus_per_trial must be a number in \[0, 1\] or a whole number. Received: 1.5"),
        ({"gpus_per_trial": -1}, r"--gpus_per_trial must be .* Received: -1"),
        ({"beta_2s": (0.9, 1.0)}, r"--beta_2s must be in \(0, 1\). Received: 1.0"),
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
    arguments = [f"--flagfile=configs/{name}.flags", "--output_dir=-"]
    assert named_task(arguments) == task
    settings = parse_arguments(sweep_config_class(task), arguments)
    assert len(grid(settings)) == runs
    assert trial_config(settings, grid(settings)[-1].values, "-").warmup == "radam"


def test_private_names_of_keras_tuner_and_ray_are_in_one_module():
    private = re.compile(r"\bray\._|keras_tuner\.src|_save_trial|ray\.[a-z_]+\._[a-z]")
    found = [path.name for path in (ROOT / "trainers").rglob("*.py") if private.search(path.read_text())]
    assert found == ["private.py"]
