"""RAdam against the real `tfa.optimizers.RectifiedAdam`, live, in its own environment; and the page's replacements."""

import json
import os
import pathlib
import subprocess

import keras
import numpy as np
import pytest

import tfwarmup
from tests.tfwarmup.helpers import drift, random_gradients, trajectory

ROOT = pathlib.Path(__file__).parents[2]
PYTHON = pathlib.Path(os.environ.get("ADDONS_PYTHON", ROOT / ".venv-addons/bin/python"))
pytestmark = [
    pytest.mark.addons,
    pytest.mark.skipif(not PYTHON.exists(), reason="no environment with tensorflow-addons: run `make test-addons`"),
]

GRADIENTS = random_gradients(400)
RUNS = {
    "default": {},
    "weight_decay": {"weight_decay": 0.1},
    "beta_2": {"beta_2": 0.98, "epsilon": 1e-3},
    "threshold": {"sma_threshold": 6.5},
    "warmup": {"total_steps": 300, "warmup_proportion": 0.1, "min_lr": 1e-5},
}


class WarmupThenDecay(keras.optimizers.schedules.LearningRateSchedule):
    """`total_steps`, `warmup_proportion` and `min_lr` as docs/library.md writes them."""

    def __call__(self, step):
        t = keras.ops.cast(step, "float32") + 1
        decayed = 1e-3 - (1e-3 - 1e-5) * (t - 30) / 270
        return keras.ops.where(t < 30, 1e-3 * t / 30, keras.ops.maximum(decayed, 1e-5))

    def get_config(self):
        return {}


OURS = {
    "default": lambda: tfwarmup.RAdam(rho_threshold=5.0),
    "weight_decay": lambda: tfwarmup.RAdam(rho_threshold=5.0, weight_decay=0.1),
    "beta_2": lambda: tfwarmup.RAdam(rho_threshold=5.0, beta_2=0.98, epsilon=1e-3),
    "threshold": lambda: tfwarmup.RAdam(rho_threshold=6.5),
    "warmup": lambda: tfwarmup.RAdam(WarmupThenDecay(), rho_threshold=5.0),
}
THETA = np.full(GRADIENTS.shape[1], 0.5)


@pytest.fixture(scope="module")
def rectified_adam():
    question = json.dumps({"gradients": GRADIENTS.tolist(), "runs": RUNS})
    answer = subprocess.run(
        [PYTHON, ROOT / "tests/addons/rectified_adam.py"], input=question, check=True, capture_output=True, text=True
    )
    return {name: np.array(values) for name, values in json.loads(answer.stdout).items()}


@pytest.mark.filterwarnings("ignore:A learning rate that gets a warmup should not rise")  # as that of addons does
@pytest.mark.parametrize("name", RUNS)
def test_radam_is_tensorflow_addons_rectified_adam(name, rectified_adam):
    assert drift(trajectory(OURS[name](), GRADIENTS, THETA), rectified_adam[name]) < 40


def test_the_papers_threshold_is_another_optimizer(rectified_adam):
    assert drift(trajectory(tfwarmup.RAdam(rho_threshold=4.0), GRADIENTS, THETA), rectified_adam["default"]) > 10000
