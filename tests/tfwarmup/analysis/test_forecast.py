"""What is said about a warmup before the run is made: by `describe`, and by `WarmupCheck` when `fit` starts."""

import keras
import numpy as np
import pytest

import tfwarmup
from tests.tfwarmup.helpers import Batches, number, of_keras, small_data, small_model
from tfwarmup import warmups
from tfwarmup.compat import updates_made

COSINE = keras.optimizers.schedules.CosineDecay(1e-3, 470)
LINEAR = tfwarmup.LinearWarmup(1e-3, 2000)
TEXTS = {
    "too long": (
        lambda: tfwarmup.Adam(1e-3, warmup="untuned_linear"),
        "untuned linear warmup over 2,000 of 470 updates: never reaches 0.001 (ends at 0.000235)",
    ),
    "a schedule": (
        lambda: keras.optimizers.SGD(LINEAR),
        "linear warmup over 2,000 of 470 updates: never reaches 0.001 (ends at 0.000235)",
    ),
    "warm_up": (
        lambda: tfwarmup.warm_up(keras.optimizers.Adam(1e-3, beta_2=0.98, gradient_accumulation_steps=4)),
        "untuned linear warmup over 100 of 470 updates: at 0.001 from update 99 on",
    ),
    "over a decay": (
        lambda: tfwarmup.Adam(COSINE, warmup=warmups.Exponential(500)),
        "exponential warmup over 1,000 of 470 updates: never reaches the full rate (ends at 60.9% of it)",
    ),
    "loss scale": (
        lambda: keras.optimizers.LossScaleOptimizer(tfwarmup.RAdam(1e-3, beta_2=0.98)),
        "radam warmup over 100 of 470 updates: at 0.001 from update 284 on",
    ),
    "a function": (
        lambda: tfwarmup.Adam(1e-3, warmup=lambda t: keras.ops.minimum(1.0, t / 940)),
        "custom warmup in 470 updates: never reaches 0.001 (ends at 0.0005)",
    ),
    "dynamic": (
        lambda: tfwarmup.Adam(1e-3, warmup="dynamic"),
        "dynamic warmup in 470 updates: its end depends on them",
    ),
    "none": (lambda: tfwarmup.Adam(1e-3), "no warmup"),
    "none in Keras": (lambda: keras.optimizers.Adam(COSINE), "no warmup"),
}
several = of_keras(
    "MultiOptimizer",
    "several",
    lambda: keras.optimizers.MultiOptimizer(
        keras.optimizers.OptimizerMap(keras.optimizers.Adam(LINEAR), {"dense.*": keras.optimizers.SGD()})
    ),
    TEXTS["a schedule"][1] + "\nno warmup",
)


@pytest.mark.parametrize(("name", "make", "text"), [*((name, *both) for name, both in TEXTS.items()), several])
def test_one_line_says_what_a_warmup_will_do(name, make, text):
    assert tfwarmup.describe(make(), updates=470) == text


@pytest.mark.parametrize(
    "make", [lambda: tfwarmup.Adam(1e-2, warmup="linear", period=20), lambda: keras.optimizers.Adam(LINEAR)]
)
def test_updates_that_were_made_count(make):
    model = small_model(make())
    model.fit(*small_data(), batch_size=16, epochs=2, verbose=0)
    left = 12 if isinstance(model.optimizer, tfwarmup.Adam) else 1992
    assert f"linear warmup over {left:,} of 100 updates: " in tfwarmup.describe(model.optimizer, 100)
    tfwarmup.restart_warmup(model)
    assert f"linear warmup over {left + 8:,} of 100 updates: " in tfwarmup.describe(model.optimizer, 100)
    tfwarmup.restart_warmup(model, "linear", period=4)
    model.fit(*small_data(), batch_size=16, epochs=1, verbose=0)
    assert tfwarmup.describe(model.optimizer, 100) == "linear warmup: over before the next 100 updates"


# At the start of `fit`.


def fit(optimizer, *callbacks, epochs=3, data=None, **options):
    model = small_model(optimizer)
    x, y = small_data() if data is None else (data, None)
    arguments = {} if data is not None else {"batch_size": 16}
    model.fit(x, y, epochs=epochs, shuffle=False, verbose=0, callbacks=list(callbacks), **arguments, **options)


LONG = "A warmup should take at most half of a run: .* Received: linear warmup over {} of {} updates: "


@pytest.mark.parametrize("accumulation", [None, 2])
def test_a_warmup_that_takes_more_than_half_of_the_run_is_warned_about_at_its_start(accumulation, capsys):
    def optimizer(period):
        return tfwarmup.Adam(1e-3, warmup="linear", period=period, gradient_accumulation_steps=accumulation)

    updates = 12 // (accumulation or 1)
    fit(optimizer(updates / 2), tfwarmup.WarmupCheck(verbose=False))
    with pytest.warns(UserWarning, match=LONG.format(updates - 1, updates)) as seen:
        fit(optimizer(updates - 1), tfwarmup.WarmupCheck())
    assert sum(warning.category is UserWarning for warning in seen) == 1
    first, *others = capsys.readouterr().out.splitlines()
    assert first == f"linear warmup over {updates - 1} of {updates} updates: at 0.001 from update {updates - 1} on"
    assert len(others) == 3
    with pytest.warns(UserWarning, match=LONG.format(updates, updates * 2 // 3)):  # of the epochs to come
        fit(optimizer(updates), tfwarmup.WarmupCheck(verbose=False), initial_epoch=1)


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_nothing_is_said_about_a_run_of_unknown_length(capsys):
    x, y = small_data(16)
    fit(tfwarmup.Adam(warmup="untuned_linear"), tfwarmup.WarmupCheck(), data=(batch for batch in [(x, y)]), epochs=1)
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize(
    "setter",
    [
        lambda: keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=100),
        lambda: keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_a_callback_that_cannot_set_the_rate_is_noticed_before_the_first_step(setter, order):
    callbacks = [tfwarmup.WarmupCheck(verbose=False), setter()][::order]
    fit(tfwarmup.Adam(1e-3, warmup="linear", period=3), *callbacks)  # the rate is a variable
    optimizer = tfwarmup.warm_up(keras.optimizers.Adam(1e-3), "linear", period=3)
    name = type(setter()).__name__
    with pytest.raises(UserWarning, match=f"`{name}` needs a learning rate that is not a schedule, .* Received: "):
        fit(optimizer, *callbacks)
    assert number(optimizer.iterations) == 0


# The length of a run.


def batches():
    x, y = small_data()
    return Batches([(x[start : start + 16], y[start : start + 16]) for start in range(0, 64, 16)])


def dataset():
    tf = pytest.importorskip("tensorflow")
    return tf.data.Dataset.from_tensor_slices(small_data()).batch(16)


DATA = {  # what `fit` gets, and the arguments of both
    "an array": (lambda x, y: {"x": x, "y": y}, {"batch_size": 16}),
    "an array in batches of 32": (lambda x, y: {"x": x, "y": y}, {}),
    "a last batch that is smaller": (lambda x, y: {"x": x[:50], "y": y[:50]}, {"batch_size": 16}),
    "batches": (lambda x, y: {"x": batches()}, {}),
    "a dataset": (lambda x, y: {"x": dataset()}, {}),
}


@pytest.mark.parametrize("name", DATA)
def test_the_updates_of_a_run_are_those_that_fit_makes(name):
    make, options = DATA[name]
    data = make(*small_data())
    model = small_model(tfwarmup.Adam(gradient_accumulation_steps=3))
    model.fit(**data, epochs=5, shuffle=False, verbose=0, **options)
    counted = {"input": data["x"]} if name == "an array" else data["x"]
    assert tfwarmup.updates_of(counted, epochs=5, accumulation=3, **options) == updates_made(model.optimizer)


@pytest.mark.once
@pytest.mark.parametrize("number", [int, np.int64])
def test_the_number_of_examples_is_any_integer(number):
    assert tfwarmup.updates_of(number(33)) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tfwarmup.updates_of(iter([1])), "`data` must have a length: count .* yourself. Received: data="),
        (lambda: tfwarmup.updates_of(dataset().repeat()), "`data` must have a length: .* Received: data="),
        (lambda: tfwarmup.updates_of(10, epochs=0), "`epochs` must be an integer >= 1. Received: epochs=0"),
        (lambda: tfwarmup.updates_of(10, batch_size=0), "`batch_size` must be an integer >= 1. Received: batch_size=0"),
        (lambda: tfwarmup.updates_of(10, accumulation=0), "`accumulation` must be an integer >= 1. Received"),
        (lambda: tfwarmup.updates_of(1.5), "`data` must be an integer >= 1. Received: data=1.5"),
        (lambda: tfwarmup.updates_of(batches(), batch_size=4), "batches have theirs. Received: batch_size=4"),
        (lambda: tfwarmup.describe(tfwarmup.Adam(), 1.5), "`updates` must be an integer >= 1. Received: updates=1.5"),
        (lambda: tfwarmup.describe(None, 10), "`optimizer` must be a Keras optimizer. Received: "),
    ],
)
def test_what_cannot_be_counted_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
