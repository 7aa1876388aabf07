"""A dry run prints the plan of a run, measures a few of its updates, and writes nothing."""

import re
import types

import pytest
import tensorflow as tf

from tests.trainers.helpers import finish, program, tiny_config, tiny_flags
from tests.trainers.tiny import Tiny
from trainers.engine import measurement
from trainers.engine.description import describe_run, measure, memory_used
from trainers.engine.flags import make_config
from trainers.engine.program import train_task
from trainers.engine.setup import Setup
from trainers.sweep import sweep
from trainers.sweeps.space import sweep_config_class
from trainers.system.errors import ConfigError, DataError
from trainers.tasks import CONFIGS, load_task
from trainers.tasks.images.config import ImageConfig
from trainers.tasks.images.task import ImageClassification

UNITS = {"s": 1, "min": 60, "h": 3600, "days": 86400}
SMALL_TRANSLATOR = {"pairs": 200, "vocabulary_size": 330, "max_tokens": 512, "layers": 1, "width": 16, "heads": 2}
SMALL_LANGUAGE_MODEL = {"context": 32, "layers": 1, "width": 16, "inner": 16, "heads": 2, "cutoffs": (20, 100)}


@pytest.fixture(autouse=True)
def _short_calls(monkeypatch):
    monkeypatch.setattr(measurement, "SECONDS", 0.2)


def dry(folder, **options):
    return tiny_config(folder / "run", **{"dry_run": True, **options})


def seconds(text, before, after):
    """The duration between two texts."""
    [(number, unit)] = re.findall(rf"{before}([\d.e-]+) (s|min|h|days){after}", text)
    return float(number) * UNITS[unit]


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param(
            {"strategy": "mirrored", "logical_devices": 2, "precision": "mixed_float16", "accumulate": 2},
            marks=pytest.mark.slow,
        ),
        {"warmup": "dynamic", "evaluate_steps": 3},
    ],
)
def test_a_dry_run_prints_the_plan_of_the_run_and_writes_nothing(options, tmp_path, capsys):
    text = train_task(Tiny(), dry(tmp_path, **options))
    assert list(tmp_path.iterdir()) == []
    first, *plan, batches = capsys.readouterr().out.splitlines()
    assert first == "dry run: nothing is written"
    assert batches == "batches: 40 (batch_size) per update, 5 per epoch"
    validations = 7 if "evaluate_steps" in options else 4
    assert f"for 20 updates and {validations} validations; " in text
    train_task(Tiny(), dry(tmp_path, **{**options, "dry_run": False}))
    assert capsys.readouterr().out.splitlines() == plan
    assert len(re.findall("val_loss", (tmp_path / "run" / "metrics.jsonl").read_text())) == validations


@pytest.mark.parametrize(
    ("task", "options", "parameters"),
    [
        ("image_classification", {"batch_size": 1000}, 784 * 200 + 200 * 100 + 100 * 50 + 50 * 10 + 360),
        ("language_modeling", {"batch_size": 4, **SMALL_LANGUAGE_MODEL}, None),
        ("machine_translation", SMALL_TRANSLATOR, None),
    ],
)
def test_every_task_has_a_dry_run(task, options, parameters, tmp_path, capsys):
    flags = {"output_dir": str(tmp_path / "run"), "steps": 2, "dry_run": True, **options}
    config, task = make_config(CONFIGS[task], flags), load_task(task)
    text = train_task(task, config)
    parameters = parameters or task.build(config, task.load(config)).count_params()
    assert f"model: {parameters:,} parameters, " in capsys.readouterr().out
    assert "for 2 updates and 1 validation; " in text
    assert list(tmp_path.iterdir()) == []


def test_times_are_those_of_updates_with_all_their_micro_batches_and_of_whole_validations(tmp_path):
    """Validation has batches of the size of a micro-batch: 2 of 40 for its 50 examples, or 5 of 10."""
    for micro_batches, batches in ((1, 2), (4, 5)):
        config = dry(tmp_path, step_seconds=0.02, accumulate=micro_batches)
        times = measure(Setup(config, Tiny()))
        assert micro_batches * 0.02 <= times.update < 10 * micro_batches * 0.02
        assert batches * 0.02 <= times.validation < 10 * batches * 0.02


def test_the_time_of_the_run_is_extrapolated_and_multiplied_by_the_runs_of_a_sweep(tmp_path):
    text = describe_run(Tiny(), dry(tmp_path, step_seconds=0.02), lambda _: None, runs=1000)
    update, validation = seconds(text, "machine: ", " per update"), seconds(text, "update, ", " per validation")
    run = seconds(text, "extrapolated: ", " for 20 updates and 4 validations")
    assert run == pytest.approx(20 * update + 4 * validation, rel=0.02)
    assert seconds(text, "validations; ", " for 1000 runs like it") == pytest.approx(1000 * run, rel=0.02)


@pytest.mark.slow
def test_peak_memory_includes_the_weights_and_the_state_of_the_optimizer(tmp_path):
    # A process of its own: the peak of this one may be above what the run needs.
    flags = tiny_flags(tmp_path / "run", dry_run=True, width=2_000_000, batch_size=1)
    output, _ = finish(program("tests.trainers.tiny", *flags))
    [(peak, of_run)] = re.findall(r"peak memory ([\d.]+) GB, ([\d.]+) GB of it for data, model and updates", output)
    weights = (8 + 1 + 2) * 2_000_000 * 4 / 1e9
    assert 3 * weights <= float(of_run) < 10 * weights
    assert float(peak) > float(of_run) + 0.1  # Python and TensorFlow
    assert list(tmp_path.iterdir()) == []


def test_on_gpus_the_peak_memory_is_that_of_the_fullest(monkeypatch):
    peaks = {"/device:GPU:0": 2e9, "/device:GPU:1": 3e9}
    monkeypatch.setattr(
        tf.config, "list_logical_devices", lambda _: [types.SimpleNamespace(name=name) for name in peaks]
    )
    monkeypatch.setattr(tf.config.experimental, "get_memory_info", lambda name: {"current": 0, "peak": peaks[name]})
    assert memory_used(0) == "peak memory 3 GB per GPU"


def sweep_text(folder, capsys, **options):
    flags = {"learning_rates": (1e-3, 1e-2), "beta_2s": (0.9,), "seeds": (1, 2, 3), "output_dir": str(folder / "x")}
    flags |= {"batch_size": 1000, "epochs": 1, "threads": 0, "dry_run": True, **options}
    text = sweep(make_config(sweep_config_class("image_classification"), flags))
    assert list(folder.iterdir()) == []
    return capsys.readouterr().out + text


@pytest.mark.parametrize(("options", "runs"), [({}, 18), ({"search": "random", "trials": 4}, 12)])
def test_a_dry_run_of_a_sweep_reckons_with_all_its_runs(options, runs, tmp_path, capsys):
    text = sweep_text(tmp_path, capsys, **options)
    assert f"dry run of the first of {runs} runs: nothing is written\n" in text
    assert f" for {runs} runs like it, one after the other; " in text


def test_the_length_of_a_hyperband_search_is_not_known(tmp_path, capsys):
    assert "dry run: nothing is written" in sweep_text(tmp_path, capsys, search="hyperband", epochs=10, steps=27)


def test_bad_flags_and_missing_data_are_found_before_the_plan_is_printed(tmp_path, capsys):
    with pytest.raises(ConfigError, match="--weight_decay must be a number >= 0"):
        sweep_text(tmp_path, capsys, sweep=("weight_decay=0,-1",))  # not in the first run
    with pytest.raises(ConfigError, match="--batch_size must not exceed"):
        train_task(Tiny(), dry(tmp_path, batch_size=1000))
    flags = {"dataset": "imagenet2012", "data_dir": str(tmp_path), "output_dir": "x", "dry_run": True}
    with pytest.raises(DataError, match="imagenet2012 must be on disk"):
        train_task(ImageClassification(), make_config(ImageConfig, flags))
    assert capsys.readouterr().out == ""
