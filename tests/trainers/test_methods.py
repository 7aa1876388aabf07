"""Methods of runs and sweeps that are no plain function of t: the dynamic warmup, GI-Adam, StableAdamW."""

import json

import pytest

from trainers import sweep
from trainers.engine.flags import make_config
from trainers.engine.reuse import is_reusable
from trainers.results.methods import RIVAL_STYLES, RIVALS, STYLES, style_of
from trainers.sweeps.space import sweep_config_class, trial_config
from trainers.system.errors import ConfigError
from trainers.tasks.images.config import ImageConfig

METHODS = ("dynamic", *RIVALS)


def run_config(**flags):
    return make_config(ImageConfig, {"output_dir": "unused", **flags})


@pytest.mark.parametrize("method", METHODS)
def test_a_method_of_a_sweep_is_flags_of_a_run_with_a_setup_of_its_own(method):
    settings = make_config(sweep_config_class("image_classification"), {"output_dir": "unused", "warmups": [method]})
    config = trial_config(settings, {"warmup": method, "learning_rate": 1e-3, "beta_2": 0.99, "seed": 1}, "unused")
    assert config.warmup == ("dynamic" if method == "dynamic" else "none")
    assert [name for name in RIVALS.values() if getattr(config, name)] == [
        RIVALS[name] for name in RIVALS if name == method
    ]
    assert not is_reusable(config)
    assert is_reusable(run_config(warmup="root"))


def test_every_rival_has_a_look():
    assert set(RIVAL_STYLES) == set(RIVALS)
    styles = [style_of(name) for name in (*STYLES, *RIVAL_STYLES)]
    assert len({(style.colour, style.dash) for style in styles}) == len(styles)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"optimizer": "keras_adam", "warmup": "dynamic"}, "--warmup=dynamic is for --optimizer=adam, not for keras_"),
        ({"optimizer": "keras_adam", "gradient_init": True}, "--gradient_init is for --optimizer=adam and radam"),
        ({"optimizer": "keras_sgd", "clip_update_rms": True}, "--clip_update_rms is for --optimizer=adam and radam"),
    ],
)
def test_optimizers_of_keras_take_none_of_them(flags, message):
    with pytest.raises(ConfigError, match=message):
        run_config(**flags)


def test_a_sweep_runs_them_and_its_records_tell_the_factor(tmp_path):
    table = sweep.run(
        "image_classification",
        output_dir=tmp_path,
        learning_rates=[1e-3],
        beta_2s=[0.99],
        warmups=["untuned_linear", *METHODS],
        seeds=[1],
        steps=70,
        log_every=35,
        checkpoint_every=0,
        threads=0,
    )
    assert table.status.tolist() == ["done"] * 4
    assert table.val_loss.nunique() == 4
    [records] = tmp_path.glob("trials/*dynamic*/metrics.jsonl")
    factors = [json.loads(line).get("warmup_factor") for line in records.read_text().splitlines()]
    assert [factor for factor in factors if factor is not None][-1] > 71 / 200  # sooner than the linear one
