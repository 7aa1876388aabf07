"""Replicas that agree: sums before clipping and checking, under `MirroredStrategy` with two logical devices."""

import contextlib

import keras
import numpy as np
import pytest

import tfwarmup
from tests.tfwarmup.helpers import BACKEND, reloaded, replica_loss, small_data, weights
from tfwarmup import compat
from tfwarmup.distribution import gradients_are_summed

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.skipif(BACKEND != "tensorflow", reason="the TensorFlow backend only")

OPTIMIZERS = {
    "radam": lambda: tfwarmup.RAdam(1e-3),
    "adam": lambda: tfwarmup.Adam(1e-3, warmup="untuned_linear", weight_decay=0.01, use_ema=True, ema_momentum=0.9),
    "dynamic": lambda: keras.optimizers.LossScaleOptimizer(
        tfwarmup.Adam(1e-2, beta_2=0.8, warmup="dynamic", weight_decay=0.01), initial_scale=1.0
    ),
    "gi_adam": lambda: tfwarmup.Adam(1e-3, gradient_init=True, weight_decay=0.01),
    "stable_adam": lambda: tfwarmup.Adam(1e-3, beta_2=0.9, clip_update_rms=True, weight_decay=0.01),
    "ablation": lambda: tfwarmup.RAdam(1e-3, beta_2=0.99, first_steps="linear_adam", weight_decay=0.01),
}


@pytest.fixture(scope="module")
def two_replicas():
    devices = [device.name for device in tf.config.list_logical_devices("CPU")]
    return tf.distribute.MirroredStrategy(devices, cross_device_ops=tf.distribute.ReductionToOneDevice())


def train(make_optimizer, epochs=3):
    words = np.random.default_rng(0).integers(0, 20, (64, 4))
    data = tf.data.Dataset.from_tensor_slices((words, small_data()[1])).batch(16)
    model = sequence_model(make_optimizer())
    model.fit(data, epochs=epochs, shuffle=False, verbose=0)
    model.optimizer.finalize_variable_values(model.trainable_variables)
    return weights(model)


def sequence_model(optimizer, loss=None):
    """An embedding, whose gradients are `IndexedSlices`, and two dense layers."""
    keras.utils.set_random_seed(1)
    inputs = keras.Input((4,), dtype="int32")
    x = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(20, 8)(inputs))
    outputs = keras.layers.Dense(1)(keras.layers.Dense(8, activation="tanh")(x))
    model = keras.Model(inputs, outputs)
    model.compile(optimizer, loss=loss or replica_loss())
    return model


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_two_replicas_equal_one_device(name, two_replicas):
    """Also the way out for `ema_overwrite_frequency`, and the state of a dynamic warmup."""
    made = []

    def make():
        made.append(OPTIMIZERS[name]())
        return made[-1]

    alone = train(make)
    with two_replicas.scope():
        together = train(make)
    assert two_replicas.num_replicas_in_sync == 2
    np.testing.assert_allclose(together, alone, rtol=0, atol=5e-7)
    if name != "dynamic":
        assert np.abs(train(lambda: tfwarmup.Adam(1e-3, warmup="untuned_exponential")) - alone).max() > 1e-5
        return
    inner = [compat.unwrapped(optimizer) for optimizer in made]
    states = [v for v in inner[1].variables if v.path.endswith(("progress", "update", "done_at"))]
    assert len(states) == 3
    for state in states:
        first, second = (component.numpy() for component in state.value.values)
        np.testing.assert_array_equal(first, second)
        assert first.any()
    assert inner[0].warmup_done_at == inner[1].warmup_done_at < 13


CONDITIONAL = [{"gradient_accumulation_steps": 2}, {"use_ema": True, "ema_overwrite_frequency": 2}]


@pytest.mark.parametrize("options", CONDITIONAL)
@pytest.mark.parametrize("make", [tfwarmup.Adam, tfwarmup.RAdam])
def test_updates_at_some_steps_only_are_refused_with_a_way_out_before_fit(make, options, two_replicas):
    name = list(options)[-1]
    with two_replicas.scope():
        with pytest.raises(
            ValueError, match=f"`{name}` must be None under a `MirroredStrategy`: .* Received: {name}=2"
        ):
            make(1e-3, **options)
        with pytest.raises(RuntimeError, match="merge_call"):  # what it would end with
            train(lambda: keras.optimizers.Adam(1e-3, **options))
    assert train(lambda: make(1e-3, **options)).size  # on one device it trains
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        assert train(lambda: make(1e-3, **options)).size


CLIPS = [{"clipnorm": 0.01}, {"clipvalue": 0.001}, {"global_clipnorm": 0.01}]


@pytest.mark.parametrize("clip", CLIPS)
def test_replicas_clip_the_gradient_of_the_whole_batch(clip, two_replicas):
    def sgd():  # Adam would divide a wrong scale out again, but for an epsilon that is large beside the gradients.
        return keras.optimizers.SGD(1.0, **clip)

    makers = {
        "once": lambda: tfwarmup.reduce_first(sgd()),
        "twice": lambda: tfwarmup.reduce_first(tfwarmup.reduce_first(sgd())),
        "ours": lambda: tfwarmup.Adam(1.0, epsilon=1.0, **clip),
    }
    alone = {name: train(sgd if name in ("once", "twice") else make, epochs=1) for name, make in makers.items()}
    with two_replicas.scope():
        together = {name: train(make, epochs=1) for name, make in makers.items()}
        wrong = train(sgd, epochs=1)
    for name in makers:
        np.testing.assert_allclose(together[name], alone[name], rtol=0, atol=1e-6)
    assert np.abs(wrong - alone["once"]).max() > 1e-4
    ours = tfwarmup.RAdam()
    apply = ours.apply
    assert tfwarmup.reduce_first(ours).apply == apply


@pytest.mark.parametrize("summed", [False, True])
@pytest.mark.parametrize("name", ["reduce_first", "ours"])
def test_gradients_are_summed_once_and_those_that_are_none_stay_none(name, summed, two_replicas):
    with two_replicas.scope():
        used, unused = keras.Variable([0.0]), keras.Variable([1.0])
        ours = tfwarmup.Adam(1.0, epsilon=1e3)
        optimizer = ours if name == "ours" else tfwarmup.reduce_first(keras.optimizers.SGD(1e-3))
        optimizer.build([unused, used])

    def on_replica():
        with gradients_are_summed() if summed else contextlib.nullcontext():
            optimizer.apply([None, tf.ones(1)], [unused, used])

    with pytest.warns(UserWarning, match="Gradients do not exist for variables"):
        tf.function(lambda: two_replicas.run(on_replica))()
    assert float(unused.numpy()[0]) == 1.0
    assert float(used.numpy()[0]) == pytest.approx(-1e-3 if summed else -2e-3, rel=1e-2)


def after_a_bad_step(two_replicas, bad_replica, prepare):
    """The variable and the number of updates after a step whose gradient is infinite on one replica."""
    with two_replicas.scope():
        variable = keras.Variable(np.zeros(2, "float32"))
        optimizer = prepare()
        optimizer.build([variable])

    @tf.function
    def step():
        def on_replica():
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            bad = tf.cast(replica, tf.int32) == bad_replica
            optimizer.apply([tf.where(bad, tf.fill([2], np.inf), tf.ones(2))], [variable])

        two_replicas.run(on_replica)

    step()
    return variable.numpy(), compat.updates_made(optimizer), float(optimizer.dynamic_scale.numpy())


def loss_scale(optimizer):
    return keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=1.0)


CURES = {
    "ours, unasked": lambda: loss_scale(tfwarmup.RAdam(1e-3)),
    "reduce_first outside": lambda: tfwarmup.reduce_first(loss_scale(keras.optimizers.Adam(1e-3))),
    "reduce_first inside": lambda: loss_scale(tfwarmup.reduce_first(keras.optimizers.Adam(1e-3))),
    "both": lambda: tfwarmup.reduce_first(loss_scale(tfwarmup.reduce_first(keras.optimizers.Adam(1e-3)))),
}


@pytest.mark.parametrize("cure", CURES)
@pytest.mark.parametrize("bad_replica", [0, 1])
def test_an_overflow_on_any_replica_skips_the_step_and_lowers_the_scale(bad_replica, cure, two_replicas):
    value, updates, scale = after_a_bad_step(two_replicas, bad_replica, CURES[cure])
    assert (updates, scale) == (0, 0.5)
    np.testing.assert_array_equal(value, 0)


@pytest.mark.parametrize(
    "make",
    [lambda: tfwarmup.RAdam(1e-2), lambda: tfwarmup.reduce_first(keras.optimizers.SGD(1e-2, global_clipnorm=0.1))],
    ids=["ours", "reduce_first"],
)
def test_an_infinity_of_one_replica_does_not_reach_the_weights_of_a_compiled_float16_model(make, two_replicas):
    x, y = small_data()
    x[8:16] = np.inf  # the second half of the first batch: that of the second replica
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
    keras.config.set_dtype_policy("mixed_float16")
    try:
        with two_replicas.scope():
            model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dense(1)])
            model.compile(make(), loss=replica_loss())
        assert type(model.optimizer).__name__ == "LossScaleOptimizer"
        model.fit(data, epochs=1, shuffle=False, verbose=0)
    finally:
        keras.config.set_dtype_policy("float32")
    assert np.all(np.isfinite(weights(model)))
    assert compat.updates_made(model.optimizer) == 3


def test_a_loaded_model_has_to_be_told_again(two_replicas, tmp_path):
    with two_replicas.scope():
        model = sequence_model(tfwarmup.reduce_first(keras.optimizers.SGD(1.0)), loss="mse")
        loaded = reloaded(model, tmp_path)
    assert not compat.sums_first(loaded.optimizer)
    assert compat.sums_first(tfwarmup.reduce_first(loaded.optimizer))
    assert "call it again on the `optimizer` of a loaded model" in " ".join(tfwarmup.reduce_first.__doc__.split())
