"""The old world, TensorFlow 2.15 with Keras 2: our schedules drive the optimizers of tensorflow-addons."""

import keras
import numpy as np
import pytest

import tfwarmup

tfa = pytest.importorskip("tensorflow_addons")
tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning")  # Keras 2's own

OPTIMIZERS = {
    "RectifiedAdam": lambda rate, **k: tfa.optimizers.RectifiedAdam(rate, **k),
    "AdamW": lambda rate, **k: tfa.optimizers.AdamW(weight_decay=0.0, learning_rate=rate, **k),
    "LAMB": lambda rate, **k: tfa.optimizers.LAMB(rate, **k),
    "Adam of Keras 2": lambda rate, **k: tf.keras.optimizers.Adam(rate, **k),
}
SCHEDULES = {
    "linear": lambda rate: tfwarmup.LinearWarmup(rate, period=10.5),
    "exponential": lambda rate: tfwarmup.ExponentialWarmup(rate, period=10.5),
    "untuned_linear": lambda rate: tfwarmup.UntunedLinearWarmup(rate, beta_2=0.9),
    "untuned_exponential": lambda rate: tfwarmup.UntunedExponentialWarmup(rate, beta_2=0.9),
    "radam": lambda rate: tfwarmup.RAdamWarmup(rate, beta_2=0.9),
}
GRADIENTS = np.random.default_rng(0).normal(1.0, 0.5, (12, 4)).astype("float32")


def run(optimizer, rates=None):
    """The variable after every update; with `rates`, set by hand before each."""
    variable = tf.Variable(np.linspace(0.5, 2, 4), dtype=tf.float32)
    values = []
    for t, gradient in enumerate(GRADIENTS):
        if rates is not None:
            optimizer.learning_rate = rates[t]
        optimizer.apply_gradients([(tf.constant(gradient), variable)])
        values.append(variable.numpy())
    return np.stack(values)


def test_this_is_the_old_world():
    assert keras.__version__.startswith("2.15")
    assert tfa.__version__ == "0.23.0"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_schedules_drive_the_optimizer(optimizer, schedule):
    make = OPTIMIZERS[optimizer]
    warmup = SCHEDULES[schedule](0.1)
    by_hand = run(make(0.1), rates=[warmup(step) for step in range(len(GRADIENTS))])
    np.testing.assert_allclose(run(make(warmup)), by_hand, rtol=0, atol=3e-7)
    late = run(make(0.1), rates=[warmup(max(step - 1, 0)) for step in range(len(GRADIENTS))])
    assert np.abs(late - by_hand).max() > 1e-4


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_warm_up_reads_beta_2_from_the_optimizer(optimizer):
    make = OPTIMIZERS[optimizer]
    warmed = tfwarmup.warm_up(make(0.1, beta_2=0.9))
    np.testing.assert_allclose(
        run(warmed), run(make(tfwarmup.UntunedLinearWarmup(0.1, 0.9), beta_2=0.9)), rtol=0, atol=3e-7
    )
    with pytest.raises(ValueError, match="needs an optimizer that has not been used"):
        tfwarmup.warm_up(warmed)
    with pytest.raises(ValueError, match="two would multiply"):
        tfwarmup.warm_up(tfwarmup.warm_up(make(0.1)))


def test_warm_up_refuses_what_has_no_second_moment():
    with pytest.raises(ValueError, match="Received: optimizer=SGDW"):
        tfwarmup.warm_up(tfa.optimizers.SGDW(weight_decay=0.0))


def test_a_schedule_over_a_decay_trains_a_model_and_loads_again(tmp_path):
    decay = tf.keras.optimizers.schedules.CosineDecay(1e-2, 100)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(3,))])
    model.compile(
        tfa.optimizers.RectifiedAdam(tfwarmup.UntunedLinearWarmup(decay, 0.9, decay_after_warmup=True)), "mse"
    )
    x = np.random.default_rng(0).normal(size=(64, 3))
    losses = model.fit(x, x.sum(axis=1), epochs=20, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    schedule = model.optimizer.learning_rate
    copy = tf.keras.optimizers.schedules.deserialize(tf.keras.optimizers.schedules.serialize(schedule))
    assert copy.get_config() == schedule.get_config()
    assert float(copy(7)) == float(schedule(7))


@pytest.mark.parametrize("name", ["Adam", "RAdam"])
def test_our_optimizers_say_why_they_are_not_here(name):
    message = rf"`tfwarmup\.{name}` needs Keras 3\.3 or newer\. Received: Keras 2\.15"
    with pytest.raises(RuntimeError, match=message):
        getattr(tfwarmup, name)(1e-3)
