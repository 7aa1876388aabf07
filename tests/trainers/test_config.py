"""Flags become one frozen object, and bad ones end before anything is written."""

import dataclasses
import json
import math
import os
import re
import subprocess
import sys
import time

import keras
import pytest

import tfwarmup
from tests.commands import config_class_of, programs
from tests.trainers.helpers import BASE, ROOT, records, run_tiny, status, tiny_config, tiny_flags
from tests.trainers.tiny import TinyConfig
from tfwarmup.warmups import takes_period
from trainers.engine.config import ExamplesConfig
from trainers.engine.description import warmup_period
from trainers.engine.flags import make_config
from trainers.engine.optimizers import make_optimizer, make_rate
from trainers.engine.program import help_text, parse_arguments
from trainers.results.methods import FIRST_STEPS, TUNED_WARMUPS, WARMUPS
from trainers.system.errors import ConfigError
from trainers.tasks.images import models
from trainers.tasks.images.config import MODELS, ImageConfig


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decay": "cosine", "decay_start": 20}, "--decay_start must be below the run's 20 updates. Received: 20"),
        ({"optimizer": "keras_sgd", "warmup": "radam"}, "has no beta_2, must be none, linear or exponential. Received"),
        ({"batch_size": 50, "accumulate": 3}, "--batch_size must be a multiple of replicas x --accumulate = 1 x 3"),
        ({"batch_size": 500}, "--batch_size must not exceed what there is to train on, 200 examples. Received: 500"),
        ({"average": 6}, "--average must be at most the run's 5 checkpoints. Received: 6"),
        ({"ema": 0.9, "average": 2}, "--average and --ema exclude each other"),
        ({"checkpoint_every": 5}, "--checkpoint_every must be a multiple of --log_every=2. Received: 5"),
        ({"profile": (5,)}, "--profile must be two numbers of updates"),
        ({"profile": (5, 5)}, "--profile must be two numbers of updates"),
        ({"profile": (5, 21)}, r"--profile must end within the run's 20 updates. Received: \(5, 21\)"),
        ({"learning_rate": "1e-400"}, "must be 0 or a number that is not rounded to it. Received: '1e-400'"),
        ({"output_dir": "caf\udce9"}, r"--output_dir must have a name in UTF-8. Received: caf\\xe9"),
        ({"warmup": "linear"}, "--warmup=linear needs --warmup_period or --warmup_share. Received: None"),
        ({"warmup_share": 0.1}, r"not for untuned_linear \(--warmup_share= takes it back\). Received: 0.1"),
        (
            {"warmup": "linear", "warmup_period": 7.0, "warmup_share": 0.1},
            r"exclude each other \(--warmup_period= takes the period back\). Received: \(7.0, 0.1\)",
        ),
        ({"optimizer": "radam", "warmup": "linear", "warmup_period": 9.0}, "--optimizer=radam has its own warmup"),
        ({"warmup": "radam", "beta_2": 0.5}, "never leaves its momentum phase"),
        ({"output_dir": ""}, "--output_dir must name a folder. Received: ''"),
        ({"init_from": "nowhere"}, "--init_from must be a .keras file or the folder of a run that has one"),
    ],
)
def test_bad_values_are_refused_and_nothing_is_written(options, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        run_tiny(**{"folder": tmp_path / "run", **options})
    assert not (tmp_path / "run").exists()


FROM_NOWHERE = """
import os, runpy, sys
place = sys.argv.pop()
os.chdir(place)
os.rmdir(place)
runpy.run_module("trainers.simulate", run_name="__main__")
"""


def test_a_deleted_working_directory_is_refused(tmp_path):
    (tmp_path / "gone").mkdir()
    arguments = [sys.executable, "-c", FROM_NOWHERE, f"--output_dir={tmp_path}/run", tmp_path / "gone"]
    ended = subprocess.run(arguments, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert ended.returncode == 2
    assert ended.stderr == "error: The working directory must exist: change to one that does. Received: a deleted one\n"


def test_what_a_flagfile_says_can_be_taken_back(tmp_path):
    file = tmp_path / "tuned.flags"
    file.write_text("--warmup=linear\n--warmup_period=7\n--decay=step\n--decay_epochs=1,2\n")
    flags = [*tiny_flags(tmp_path / "run"), f"--flagfile={file}", "--warmup=untuned_linear", "--decay=constant"]
    with pytest.raises(ConfigError, match=r"\(--warmup_period= takes it back\)"):
        parse_arguments(TinyConfig, flags)
    with pytest.raises(ConfigError, match=r"\(--decay_epochs=30,60 takes it back\)"):
        parse_arguments(TinyConfig, [*flags, "--warmup_period="])
    config = parse_arguments(TinyConfig, [*flags, "--warmup_period=", "--decay_epochs=30,60"])
    assert config.warmup_period is None


def test_the_config_of_a_run_repeats_it(whole):
    again = parse_arguments(TinyConfig, [f"--config={whole}/config.json", "--output_dir=again", "--noprogress"])
    assert again.plain() == tiny_config("again").plain()


def test_every_bound_of_a_flag_is_the_one_of_its_option():
    for name, allowed, refused in (
        ("beta_2", 0.999, 1.0),
        ("warmup_share", 1.0, 1.5),
        ("decay_floor", 0.0, 1.0),
        ("patience", 1, 0),
        ("ema", 0.9, 1.0),
        ("evaluate_steps", 0, -1),
        ("logical_devices", 1024, 1025),
        ("threads", 1024, 10**6),
        ("warmup_period", 0.5, math.inf),
    ):
        options = {**BASE, "output_dir": "-", **({"warmup": "linear"} if name.startswith("warmup") else {})}
        options |= {"decay": "cosine"} if name == "decay_floor" else {}
        assert getattr(make_config(ExamplesConfig, {**options, name: allowed}), name) == allowed
        with pytest.raises(ConfigError, match=f"--{name} must be .* Received: {refused}"):
            make_config(ExamplesConfig, {**options, name: refused})


def test_the_folder_tells_all_about_the_run(whole):
    document = json.loads((whole / "config.json").read_text())
    assert document["config"]["learning_rate"] == BASE["learning_rate"]
    assert set(document["config"]) == {field.name for field in dataclasses.fields(TinyConfig)}
    assert document["config"]["warmup"] == "untuned_linear"
    resolved = document["resolved"]
    assert resolved["parameters"] == 8 * 16 + 16 + 16 * 2 + 2
    assert (resolved["total_updates"], resolved["steps_per_epoch"]) == (20, 5)
    assert resolved["warmup_period"] == pytest.approx(20)
    assert resolved["devices"]["replicas"] == 1
    assert resolved["devices"]["kind"] == "CPU"
    assert {"tensorflow", "keras"} <= set(document["versions"])
    assert document["machine"]["cores"] >= 1
    assert document["started"].startswith("20")
    assert status(whole) == "done\n"
    assert {"best.keras", "last.keras", "metrics.jsonl"} <= {path.name for path in whole.iterdir()}
    assert list((whole / "tensorboard").iterdir())
    lines = records(whole)
    assert [line["step"] for line in lines] == [2, 4, 5, 6, 8, 10, 12, 14, 15, 16, 18, 20]
    assert {"val_loss", "val_error"} <= set(lines[-1])
    assert lines[-1]["warmup_factor"] == pytest.approx(1)
    assert lines[0]["learning_rate"] == pytest.approx(1e-2 * 2 / 20, rel=1e-6)
    assert all(line["skipped_updates"] == 0 and line["gradient_norm"] > 0 for line in lines)
    seconds = [json.loads(line)["seconds"] for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert sorted(seconds) == seconds
    assert seconds[0] > 0


@pytest.mark.parametrize("warmup", TUNED_WARMUPS)
def test_a_share_is_a_period_of_so_many_updates_of_the_run_and_is_not_rounded(warmup):
    def run(updates, **length):
        config = make_config(ExamplesConfig, {**BASE, "output_dir": "-", "warmup": warmup, **length})
        return warmup_period(config, updates), make_optimizer(config, 5, updates).get_config() | {"name": ""}

    assert run(20, warmup_share=0.13) == run(20, warmup_period=0.13 * 20)
    assert run(20, warmup_share=0.13)[0] == 0.13 * 20
    assert run(30, warmup_share=0.13) == run(30, warmup_period=0.13 * 30)


def test_radam_records_the_rate_of_its_momentum_steps(tmp_path):
    run_tiny(tmp_path, warmup="radam", epochs=1)
    first, second, third = records(tmp_path)[:3]
    assert (first["learning_rate"], first["warmup_factor"]) == (pytest.approx(1e-2), 0)
    assert second["updates"] == 4
    assert third["learning_rate"] == pytest.approx(1e-2 * third["warmup_factor"], rel=1e-6)


@pytest.mark.parametrize("optimizer", ["radam", "keras_adam", "keras_nadam", "keras_lamb"])
def test_every_optimizer_trains(optimizer, tmp_path):
    run_tiny(tmp_path, optimizer=optimizer, epochs=2)
    assert records(tmp_path)[-1]["val_error"] < 0.5


@pytest.mark.parametrize(
    ("options", "rates"),
    [
        ({"decay": "step", "decay_epochs": [1, 2]}, {0: 1e-2, 4: 1e-2, 5: 1e-3, 9: 1e-3, 10: 1e-4}),
        ({"decay": "inverse_sqrt", "decay_period": 100.0}, {0: 1e-2, 99: 1e-2, 399: 5e-3}),
        ({"decay": "cosine", "decay_start": 10}, {0: 1e-2, 10: 1e-2, 15: 5e-3, 20: 0.0}),
    ],
)
def test_a_decay_is_what_it_says_and_can_be_stored(options, rates):
    rate = make_rate(make_config(ExamplesConfig, {**BASE, "output_dir": "-", **options}), 5, 20)
    for each in (rate, type(rate).from_config(rate.get_config())):
        assert [float(each(step)) for step in rates] == pytest.approx(list(rates.values()))


def made(**options):
    config = make_config(ExamplesConfig, {**BASE, "output_dir": "-", **options})
    return make_optimizer(config, 5, 20)


@pytest.mark.parametrize(("name", "nesterov"), [("keras_sgd", False), ("keras_nag", True)])
def test_gradient_descent_with_momentum_is_kerass(name, nesterov):
    optimizer = made(optimizer=name, momentum=0.99, weight_decay=1e-4, global_clipnorm=0.1)
    assert isinstance(optimizer, keras.optimizers.SGD)
    assert (optimizer.momentum, optimizer.nesterov, optimizer.weight_decay) == (0.99, nesterov, 1e-4)
    assert float(made(optimizer=name).learning_rate) == pytest.approx(1e-2)  # no warmup unless asked for one
    warmed = made(optimizer=name, warmup="linear", warmup_period=10)
    assert float(warmed.learning_rate) == pytest.approx(1e-3)


# Runs a program's main with --help, then looks at what it has imported.
SHOW_HELP = """
import runpy, sys
sys.argv = ["program", "--help"]
runpy.run_module({name!r}, run_name="__main__", alter_sys=True)
assert not {{"tensorflow", "keras"}} & set(sys.modules)
"""


@pytest.mark.parametrize("name", programs())
def test_help_lists_every_flag_in_two_seconds_without_tensorflow(name):
    began = time.perf_counter()
    arguments = [sys.executable, "-c", SHOW_HELP.format(name=name)]
    output = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert time.perf_counter() - began < 2
    assert f"python -m {name}" in output.split("\n\n")[1]  # the program's own description comes first
    listed = re.findall(r"^    (?:--(?:\[no\])?)?(\w+)", output, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) >= {field.name for field in dataclasses.fields(config_class_of(["-m", name], ROOT))}


def test_help_shows_defaults_and_choices():
    text = help_text(ImageConfig, "")
    assert "    --precision=float32\n        Precision of the layers. One of: float32, mixed_float16, mixed_" in text
    assert "    --[no]xla (default: no)\n" in text
    assert text.index("Images:") < text.index("Optimizer:") < text.index("Results:")


def test_flags_know_every_warmup_of_the_library_and_every_model():
    assert set(WARMUPS) == set(tfwarmup.WARMUPS)
    assert tuple(name for name in tfwarmup.WARMUPS if takes_period(name)) == TUNED_WARMUPS
    assert FIRST_STEPS == tfwarmup.FIRST_STEPS
    assert set(MODELS) == set(models.MODELS)


@pytest.mark.parametrize("path", sorted(ROOT.glob("configs/**/*.flags")), ids=lambda path: path.stem)
def test_every_config_opens_with_what_it_is_and_how_to_run_it(path):
    header = [line for line in path.read_text().splitlines() if line.startswith("#")]
    assert any(f"--flagfile={path.relative_to(ROOT)}" in line for line in header)
    assert any("Needs" in line for line in header)
    assert any("Expect" in line for line in header)
