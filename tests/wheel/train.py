"""What a new user does after `pip install .`: run by tests/wheel/try in an environment with nothing else."""

import importlib.metadata
import importlib.util
import pathlib
import sys

import keras
import numpy as np

import tfwarmup


def check_installation():
    assert pathlib.Path(tfwarmup.__file__).is_relative_to(sys.prefix), tfwarmup.__file__
    assert (pathlib.Path(tfwarmup.__file__).parent / "py.typed").exists()
    assert importlib.util.find_spec("trainers") is None  # a user may have a package of that name
    assert tfwarmup.__version__ == importlib.metadata.version("tfwarmup")
    required = [line for line in importlib.metadata.requires("tfwarmup") if "extra ==" not in line]
    assert sorted(required) == ["keras!=3.0.*,!=3.1.*,!=3.2.*,<4,>=2.15", "numpy"], required


def train():
    x = np.random.default_rng(0).normal(size=(256, 4)).astype("float32")
    y = x.sum(axis=1, keepdims=True)
    for optimizer in (
        tfwarmup.RAdam(1e-2, beta_2=0.9),
        tfwarmup.warm_up(keras.optimizers.Adam(1e-2, beta_2=0.9)),
    ):
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
        model.compile(optimizer, loss="mse")
        losses = model.fit(x, y, epochs=20, verbose=0).history["loss"]
        assert losses[-1] < 0.5 * losses[0], losses
        model.save("model.keras")
        keras.models.load_model("model.keras")
    print(f"tfwarmup {tfwarmup.__version__} from its wheel trains on {keras.backend.backend()}")


if __name__ == "__main__":
    check_installation()
    train()
