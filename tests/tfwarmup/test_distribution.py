"""Replicas that agree: sums before clipping and checking, under `MirroredStrategy` with two logical devices."""

import contextlib

import keras
import numpy as np
import pytest

import tfwarmup
from tests.tfwarmup.helpers import BACKEND, KERAS, replica_loss, small_data, weights
from tfwarmup import compat
from tfwarmup.distribution import gradients_are_summed

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.skipif(BACKEND != "tensorflow", reason="the TensorFlow backend only")

OPTIMIZERS = {
    "radam": lambda: tfwarmup.RAdam(1e-3),
    "adam": lambda: tfwarmup.Adam(1e-3, warmup="untuned_linear", weight_decay=0.01),
    "dynamic": lambda: tfwarmup.Adam(1e-2, beta_2=0.8, warmup="dynamic", weight_decay=0.01),
    "gi_adam": lambda: tfwarmup.Adam(1e-3, gradient_init=True, weight_decay=0.01),
    "stable_adam": lambda: tfwarmup.Adam(1e-3, beta_2=0.9, clip_update_rms=True, weight_decay=0.01),
    "ablation": lambda: tfwarmup.RAdam(1e-3, beta_2=0.99, first_steps="linear_adam", weight_decay=0.01),
}


@pytest.fixture(scope="module")
def two_replicas():
    devices = [device.name for device in tf.config.list_logical_devices("CPU")]
    return tf.distribute.MirroredStrategy(devices, cross_device_ops=tf.distribute.ReductionToOneDevice())


@pytest.fixture
def keras_own_check(monkeypatch):
    """`LossScaleOptimizer` as Keras has it, whatever another test has done to it."""
    check = keras.optimizers.LossScaleOptimizer.check_finite
    monkeypatch.setattr(keras.optimizers.LossScaleOptimizer, "check_finite", getattr(check, "__wrapped__", check))


def sequence_model(optimizer, loss=None):
    """An embedding, whose gradients are `IndexedSlices`, and two dense layers."""
    keras.utils.set_random_seed(1)
    inputs = keras.Input((4,), dtype="int32")
    x = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(20, 8)(inputs))
    outputs = keras.layers.Dense(1)(keras.layers.Dense(8, activation="tanh")(x))
    model = keras.Model(inputs, outputs)
    model.compile(optimizer, loss=loss or replica_loss())
    return model


def train(make_optimizer):
    words = np.random.default_rng(0).integers(0, 20, (64, 4))
    data = tf.data.Dataset.from_tensor_slices((words, small_data()[1])).batch(16)
    model = sequence_model(make_optimizer())
    model.fit(data, epochs=3, shuffle=False, verbose=0)
    return weights(model)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_two_replicas_equal_one_device(name, two_replicas):
    alone = train(OPTIMIZERS[name])
    with two_replicas.scope():
        together = train(OPTIMIZERS[name])
    assert two_replicas.num_replicas_in_sync == 2
    np.testing.assert_allclose(together, alone, rtol=0, atol=5e-7)
    assert np.abs(train(lambda: tfwarmup.Adam(1e-3, warmup="untuned_exponential")) - alone).max() > 1e-5


def test_slots_follow_their_variable_to_every_replica(two_replicas):
    with two_replicas.scope():
        variable = keras.Variable(np.zeros(3, "float16"), dtype="float16")
        optimizer = tfwarmup.RAdam()
        optimizer.build([variable])
    moments = [v for v in optimizer.variables if v.path.endswith(("momentum", "velocity"))]
    assert [len(v.value.values) for v in moments] == [2, 2]
    assert {v.dtype for v in moments} == {"float32"}


@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "loss scale"])
def test_a_dynamic_warmup_has_the_same_state_on_every_replica(wrapped, two_replicas):
    inner = []

    def make():
        inner.append(OPTIMIZERS["dynamic"]())
        return keras.optimizers.LossScaleOptimizer(inner[-1], initial_scale=1.0) if wrapped else inner[-1]

    alone = train(make)
    with two_replicas.scope():
        together = train(make)
    np.testing.assert_allclose(together, alone, rtol=0, atol=5e-7)
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


def test_the_way_out_for_a_moving_average_is_that_of_one_device(two_replicas):
    def averaged():
        words = np.random.default_rng(0).integers(0, 20, (64, 4))
        data = tf.data.Dataset.from_tensor_slices((words, small_data()[1])).batch(16)
        model = sequence_model(tfwarmup.Adam(1e-2, use_ema=True, ema_momentum=0.9))
        model.fit(data, epochs=2, shuffle=False, verbose=0)
        model.optimizer.finalize_variable_values(model.trainable_variables)
        return weights(model)

    alone = averaged()
    with two_replicas.scope():
        together = averaged()
    np.testing.assert_allclose(together, alone, rtol=0, atol=5e-7)


CLIPS = [{"clipnorm": 0.01}, {"clipvalue": 0.001}, {"global_clipnorm": 0.01}]


@pytest.mark.parametrize("clip", CLIPS)
def test_reduce_first_makes_replicas_clip_the_gradient_of_the_whole_batch(clip, two_replicas):
    # SGD, since Adam would divide a wrong scale out again.
    alone = train(lambda: keras.optimizers.SGD(1.0, **clip))
    with two_replicas.scope():
        right = train(lambda: tfwarmup.reduce_first(keras.optimizers.SGD(1.0, **clip)))
        wrong = train(lambda: keras.optimizers.SGD(1.0, **clip))
    np.testing.assert_allclose(right, alone, rtol=0, atol=1e-6)
    assert np.abs(wrong - alone).max() > 1e-4


@pytest.mark.parametrize("clip", CLIPS)
def test_our_optimizers_clip_the_gradient_of_the_whole_batch_unasked(clip, two_replicas):
    # An epsilon that is large beside the gradients keeps their scale, so that a wrong one shows.
    def optimizer():
        return tfwarmup.Adam(1.0, epsilon=1.0, **clip)

    alone = train(optimizer)
    with two_replicas.scope():
        together = train(optimizer)
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-6)


def test_reduce_first_twice_is_once(two_replicas):
    alone = train(lambda: keras.optimizers.SGD(1.0, global_clipnorm=0.01))
    with two_replicas.scope():
        twice = train(
            lambda: tfwarmup.reduce_first(tfwarmup.reduce_first(keras.optimizers.SGD(1.0, global_clipnorm=0.01)))
        )
    np.testing.assert_allclose(twice, alone, rtol=0, atol=1e-6)
    ours = tfwarmup.RAdam()
    apply = ours.apply
    assert tfwarmup.reduce_first(ours).apply == apply


def test_gradients_that_are_none_stay_none(two_replicas):
    with two_replicas.scope():
        used, unused = keras.Variable([1.0]), keras.Variable([1.0])
        optimizers = [tfwarmup.reduce_first(keras.optimizers.SGD(1.0)), tfwarmup.Adam(1.0)]
        for optimizer in optimizers:
            optimizer.build([unused, used])

    @tf.function
    def step():
        for optimizer in optimizers:
            two_replicas.run(lambda o=optimizer: o.apply([None, tf.ones(1)], [unused, used]))

    with pytest.warns(UserWarning, match="Gradients do not exist for variables"):
        step()
    assert float(unused.numpy()[0]) == 1.0
    assert float(used.numpy()[0]) == pytest.approx(1.0 - 2.0 - 1.0, abs=1e-6)  # SGD by the sum of two, Adam by alpha


def test_gradients_that_a_loop_has_summed_are_not_summed_again(two_replicas):
    makers = [lambda: tfwarmup.reduce_first(keras.optimizers.SGD(1.0)), lambda: tfwarmup.Adam(1.0, epsilon=1e3)]
    for make in makers:
        moved = []
        for summed in (False, True):
            with two_replicas.scope():
                variable, optimizer = keras.Variable([0.0]), make()
                optimizer.build([variable])

            def on_replica(summed=summed, variable=variable, optimizer=optimizer):
                with gradients_are_summed() if summed else contextlib.nullcontext():
                    optimizer.apply([tf.ones(1)], [variable])

            tf.function(two_replicas.run)(on_replica)
            moved.append(float(variable.numpy()[0]))
        assert moved[0] == pytest.approx(2 * moved[1], rel=1e-2)


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


@pytest.mark.usefixtures("keras_own_check")
@pytest.mark.skipif(KERAS < (3, 5), reason="Keras does not sum here at all")
def test_keras_itself_looks_at_the_first_replica_alone(two_replicas):
    value, updates, scale = after_a_bad_step(two_replicas, 1, lambda: loss_scale(keras.optimizers.Adam(1e-3)))
    assert (updates, scale) == (1, 1.0)
    assert not np.all(np.isfinite(value))


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
        model.save(tmp_path / "model.keras")
        loaded = keras.models.load_model(tmp_path / "model.keras")
    assert not compat.sums_first(loaded.optimizer)
    assert compat.sums_first(tfwarmup.reduce_first(loaded.optimizer))
    assert "call it again on the `optimizer` of a loaded model" in " ".join(tfwarmup.reduce_first.__doc__.split())
