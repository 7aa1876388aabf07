"""What users of trainers expect: other weights to begin with, evaluation alone, early stopping, averages, callbacks."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.trainers.helpers import (
    ROOT,
    final_weights,
    records,
    run_tiny,
    snapshot,
    stopped_at_a_checkpoint,
    tiny_config,
)
from tests.trainers.tiny import Tiny
from trainers.engine.description import how_to_load
from trainers.engine.measurement import evaluate
from trainers.engine.run import train
from trainers.engine.task import RunCallback
from trainers.system.errors import ConfigError, DivergedError
from trainers.tasks.images.models import build_model
from trainers.tasks.language.config import LanguageSizes
from trainers.tasks.language.models import build_language_model
from trainers.tasks.translation.config import TranslatorSizes
from trainers.tasks.translation.models import build_translation_model


def results(folder):
    return json.loads((folder / "results.json").read_text())


def test_a_seed_decides_the_first_weights(finished):
    first, again = (final_weights(finished(learning_rate=0.0, epochs=1, seed=seed)) for seed in (1, 2))
    assert np.abs(first - again).max() > 0.1


def test_the_best_model_is_that_of_the_lowest_objective(longer):
    errors = {line["step"]: line["val_error"] for line in records(longer) if "val_error" in line}
    best = results(longer)["best_step"]
    assert best == min(errors, key=errors.get)  # the first of them
    assert errors[best] < max(errors.values())


@pytest.mark.parametrize("place", ["", "last.keras"])
def test_a_run_begins_with_the_weights_of_another(whole, tmp_path, place):
    run_tiny(tmp_path / "on", init_from=str(whole / place), learning_rate=0.0)
    name = "last" if place else "best"
    np.testing.assert_array_equal(final_weights(tmp_path / "on"), final_weights(whole, name))


@pytest.mark.parametrize(
    ("place", "options", "message"),
    [
        ("nowhere", {}, "must be a .keras file or the folder of a run that has one. Received: .*nowhere"),
        ("checkpoints", {}, "must be a .keras file or the folder of a run that has one"),
        ("config.json", {}, r"must be a model that Keras can load. Received: .*config.json \("),
        ("last.keras", {"width": 8}, r"must have weights of the model's shapes, .* of \(8, 8\). .* of \(8, 16\)"),
        ("last.keras", {"normalise": True}, "must have the model's 8 weights. Received: .* with 4"),
    ],
)
def test_weights_that_do_not_fit_are_refused(whole, tmp_path, place, options, message):
    with pytest.raises(ConfigError, match=f"--init_from {message}"):
        run_tiny(tmp_path / "run", init_from=str(whole / place), **options)
    assert not (tmp_path / "run" / "config.json").exists()


def test_evaluation_alone_gives_the_recorded_numbers_and_writes_nothing(whole):
    before = snapshot(whole)
    best = min(records(whole), key=lambda record: record.get("val_error", 2))
    found = evaluate(Tiny(), tiny_config(whole, evaluate_only=True))
    assert found == {"val_loss": best["val_loss"], "val_error": best["val_error"]}
    last = evaluate(Tiny(), tiny_config("anywhere", evaluate_only=True, init_from=str(whole / "last.keras")))
    assert last["val_loss"] == records(whole)[-1]["val_loss"]
    assert snapshot(whole) == before


def test_evaluation_alone_has_the_data_and_the_model_of_the_run(whole):
    """Otherwise the numbers would be wrong, and nobody would notice: other pixels have the same shape."""
    message = r"--evaluate_only must have the data and model flags of the run .* Received: rows=120, not 200"
    with pytest.raises(ConfigError, match=message):
        evaluate(Tiny(), tiny_config(whole, evaluate_only=True, rows=120))
    how_to_train = {"learning_rate": 0.5, "epochs": 1, "batch_size": 20, "seed": 3, "decay": "cosine"}
    found = evaluate(Tiny(), tiny_config(whole, evaluate_only=True, **how_to_train))
    assert found["val_error"] == min(record.get("val_error", 1.0) for record in records(whole))


def test_evaluation_alone_needs_a_model(tmp_path):
    with pytest.raises(ConfigError, match="--evaluate_only without --init_from needs a model in --output_dir"):
        evaluate(Tiny(), tiny_config(tmp_path, evaluate_only=True))


def test_validation_every_so_many_steps(tmp_path):
    run_tiny(tmp_path, evaluate_steps=7, log_every=50, checkpoint_every=0)
    validated = [record["step"] for record in records(tmp_path) if "val_error" in record]
    assert validated == [7, 14, 20]


def test_a_run_may_be_longer_than_a_list_of_its_validations(tmp_path):
    """A list of 10^15 steps would fill the memory before the first one."""
    with stopped_at_a_checkpoint():
        run_tiny(tmp_path, steps=10**15, evaluate_steps=1)
    assert [record["step"] for record in records(tmp_path) if "val_error" in record] == [1, 2, 3, 4]


def test_a_run_without_progress_ends_early_and_well(tmp_path):
    # A rate of 0 learns nothing: the first validation is the best.
    run_tiny(tmp_path / "early", learning_rate=0.0, patience=2, epochs=50)
    assert (results(tmp_path / "early")["best_step"], results(tmp_path / "early")["stopped_early_at"]) == (5, 15)
    assert (tmp_path / "early/status").read_text() == "done\n"
    assert records(tmp_path / "early")[-1]["step"] == 15
    before = (tmp_path / "early/metrics.jsonl").read_text()
    run_tiny(tmp_path / "early", learning_rate=0.0, patience=2, epochs=50)  # again: nothing is left to do
    assert (tmp_path / "early/metrics.jsonl").read_text() == before


def test_patience_is_counted_across_a_kill(tmp_path):
    options = {"learning_rate": 0.0, "patience": 3, "epochs": 50, "checkpoint_every": 0}
    with stopped_at_a_checkpoint(2):  # when one validation was no better than that of the first
        run_tiny(tmp_path, **options)
    run_tiny(tmp_path, **options)
    assert results(tmp_path)["stopped_early_at"] == 20


@pytest.mark.parametrize("options", [{}, {"logical_devices": 2, "strategy": "mirrored", "precision": "mixed_float16"}])
def test_the_moving_average_is_what_is_validated_and_saved(tmp_path, options):
    weights = []

    class Watched(Tiny):
        def build(self, config, data):
            self.model = super().build(config, data)
            return self.model

    class Keep(RunCallback):
        def record(self, *_):
            weights.append(np.concatenate([np.ravel(variable) for variable in task.model.get_weights()]))

        begin = record

    task = Watched()
    train(task, tiny_config(tmp_path, ema=0.5, log_every=1, **options), callbacks=[Keep()])
    average = weights[0]
    for values in weights[1:]:
        average = (average + values) / 2
    saved = final_weights(tmp_path)
    np.testing.assert_allclose(saved, average, rtol=1e-5, atol=1e-6)
    assert np.abs(saved - weights[-1]).max() > 1e-3  # which the plain weights are not
    if not options:
        found = evaluate(Tiny(), tiny_config("x", init_from=str(tmp_path / "last.keras")))
        assert found["val_loss"] == records(tmp_path)[-1]["val_loss"]


class Listener(RunCallback):
    def __init__(self):
        self.told = []

    def begin(self, config, facts, step):
        self.told.append(("begin", config["batch_size"], facts["total_updates"], step))

    def record(self, values):
        self.told.append(("record", values["step"]))

    def end(self, status, results):
        self.told.append(("end", status, sorted(results)))


def test_callbacks_hear_of_beginning_records_and_end(tmp_path):
    listener = Listener()
    train(Tiny(), tiny_config(tmp_path, log_every=10, checkpoint_every=10, epochs=4), callbacks=[listener])
    steps = [record["step"] for record in records(tmp_path)]
    assert listener.told[0] == ("begin", 40, 20, 0)
    assert listener.told[1:-1] == [("record", step) for step in steps]
    assert listener.told[-1] == ("end", "done", ["best_step", "val_error", "val_loss"])


def test_callbacks_hear_of_a_run_that_diverged(tmp_path):
    listener = Listener()
    with pytest.raises(DivergedError):
        train(Tiny(), tiny_config(tmp_path, bad_row=0), callbacks=[listener])
    kind, said, _ = listener.told[-1]
    assert kind == "end"
    assert said.startswith("diverged: the loss was not finite at step")
    assert (tmp_path / "status").read_text().startswith(said)


def test_a_profile_is_written_of_the_steps_asked_for(tmp_path):
    run_tiny(tmp_path, profile=(5, 10))
    assert list((tmp_path / "profile").rglob("*.xplane.pb"))


def test_the_progress_bar_shows_the_newest_record_while_it_validates(tmp_path, capsys):
    shown = []

    class Watched(Tiny):
        def extra_validation(self, config, data, model):
            def look():
                shown.append(re.findall(r"loss (\S+), rate", capsys.readouterr().err)[-1])
                return {}

            return look

    train(Watched(), tiny_config(tmp_path, progress=True, epochs=3))
    assert shown == [f"{line['loss']:.4g}" for line in records(tmp_path) if "val_loss" in line]


LOAD = """
import importlib, keras, sys
images, *others = sys.argv[1:]
keras.models.load_model(images)
assert not [name for name in sys.modules if name.startswith("trainers")]
for path, module in zip(others[::2], others[1::2]):
    try:
        keras.models.load_model(path)
    except TypeError as error:
        assert module in str(error)  # Keras says where the class is
    importlib.import_module(module)
    keras.models.load_model(path)
"""


@pytest.mark.slow
def test_saved_models_load_without_the_trainers_or_say_what_to_import(tmp_path):
    sizes = {"layers": 1, "width": 8, "heads": 2, "inner": 8}
    models = {
        "images": build_model("small_resnet", (28, 28, 1), 10),
        "language": build_language_model(20, LanguageSizes(**sizes)),
        "translation": build_translation_model(20, TranslatorSizes(**sizes)),
    }
    for name, model in models.items():
        model.save(tmp_path / f"{name}.keras")
    others = [
        (str(tmp_path / f"{name}.keras"), f"trainers.tasks.{name}.models") for name in ("language", "translation")
    ]
    arguments = [sys.executable, "-c", LOAD, str(tmp_path / "images.keras"), *others[0], *others[1]]
    loaded = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert loaded.returncode == 0, loaded.stderr[-2000:]
    assert how_to_load(models["images"]) == ""
    assert how_to_load(models["language"]) == "import trainers.tasks.language.models"
