"""What only TensorFlow has: the fused kernel, XLA, `IndexedSlices` and `MirroredStrategy`."""

import keras
import numpy as np
import pytest

import tfwarmup
from tests.tfwarmup import reference
from tests.tfwarmup.helpers import BACKEND, drift, random_gradients, small_data, weights
from tfwarmup import steps

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.skipif(BACKEND != "tensorflow", reason="the TensorFlow backend only")

GRADIENTS = random_gradients(60)
OPTIMIZERS = {
    "radam": lambda: tfwarmup.RAdam(1e-3),
    "adam": lambda: tfwarmup.Adam(1e-3, warmup="untuned_linear", weight_decay=0.01),
    "ablation": lambda: tfwarmup.RAdam(1e-3, beta_2=0.99, first_steps="linear_adam", weight_decay=0.01),
}
every_optimizer = pytest.mark.parametrize("name", OPTIMIZERS)


def run(optimizer, **function_arguments):
    variable = keras.Variable(np.full(GRADIENTS.shape[1], 0.5, "float32"))
    optimizer.build([variable])

    def update(gradient):
        optimizer.apply([gradient], [variable])

    if function_arguments:
        update = tf.function(update, **function_arguments)
    values = []
    for gradient in GRADIENTS:
        update(tf.constant(gradient))
        values.append(variable.numpy())
    return np.stack(values)


@every_optimizer
def test_xla_equals_graph_equals_eager(name):
    eager = run(OPTIMIZERS[name]())
    np.testing.assert_array_equal(run(OPTIMIZERS[name](), autograph=False), eager)
    assert drift(run(OPTIMIZERS[name](), jit_compile=True), eager) < 8


@every_optimizer
def test_plain_step_equals_the_fused_one(name, monkeypatch):
    fused = run(OPTIMIZERS[name](), autograph=False)
    monkeypatch.setattr("tfwarmup.optimizers.step", steps.plain_step)
    assert drift(run(OPTIMIZERS[name](), autograph=False), fused) < 8


def kernels(optimizer):
    variable = keras.Variable(np.zeros(3, "float32"))
    optimizer.build([variable])
    function = tf.function(lambda gradient: optimizer.apply([gradient], [variable]))
    graph = function.get_concrete_function(tf.TensorSpec(3)).graph
    return sum(operation.type == "ResourceApplyAdam" for operation in graph.get_operations())


def test_one_kernel_is_the_whole_update():
    assert kernels(tfwarmup.RAdam()) == 1
    assert kernels(tfwarmup.Adam(warmup="radam", beta_2=0.9999)) == 1
    assert kernels(tfwarmup.Adam(beta_2=0.99999)) == 0  # float32 has no such beta_2: 1 - beta_2 would be off by 1e-3


@pytest.mark.parametrize("clip", [{}, {"clipnorm": 1e-2}, {"clipvalue": 1e-2}, {"global_clipnorm": 1e-2}])
@pytest.mark.parametrize("accumulate", [None, 2])
def test_indexed_slices_equal_their_dense_gradient(clip, accumulate):
    generator = np.random.default_rng(0)

    def run_sparse(as_dense):
        table = keras.Variable(np.zeros((5, 3), "float32"))
        optimizer = tfwarmup.RAdam(1e-3, gradient_accumulation_steps=accumulate, **clip)
        for indices, rows in updates:
            gradient = tf.IndexedSlices(tf.constant(rows), tf.constant(indices), tf.constant([5, 3]))
            optimizer.apply([tf.convert_to_tensor(gradient) if as_dense else gradient], [table])
        return table.numpy()

    updates = [(generator.integers(0, 5, 4), generator.normal(size=(4, 3)).astype("float32")) for _ in range(20)]
    np.testing.assert_array_equal(run_sparse(as_dense=False), run_sparse(as_dense=True))


def test_embedding_rows_that_a_batch_does_not_name_move_too():
    table = keras.Variable(np.zeros((2, 1), "float32"))
    optimizer = tfwarmup.Adam(1e-3)
    dense = np.zeros((30, 2, 1), "float32")
    dense[np.arange(30), np.arange(30) % 2] = 1.0
    for t in range(30):
        optimizer.apply([tf.IndexedSlices(tf.ones((1, 1)), tf.constant([t % 2]), tf.constant([2, 1]))], [table])
    assert drift(table.numpy(), list(reference.adam(dense, np.zeros((2, 1))))[-1]) < 16


def sequence_model(optimizer):
    """An embedding, whose gradients are `IndexedSlices`, and two dense layers."""
    keras.utils.set_random_seed(1)
    inputs = keras.Input((4,), dtype="int32")
    x = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(20, 8)(inputs))
    outputs = keras.layers.Dense(1)(keras.layers.Dense(8, activation="tanh")(x))
    model = keras.Model(inputs, outputs)
    model.compile(optimizer, loss="mse")
    return model


def train(make_optimizer):
    words = np.random.default_rng(0).integers(0, 20, (64, 4))
    data = tf.data.Dataset.from_tensor_slices((words, small_data()[1])).batch(16)
    model = sequence_model(make_optimizer())
    model.fit(data, epochs=3, shuffle=False, verbose=0)
    return weights(model)


@pytest.fixture(scope="module")
def two_replicas():
    devices = [device.name for device in tf.config.list_logical_devices("CPU")]
    return tf.distribute.MirroredStrategy(devices, cross_device_ops=tf.distribute.ReductionToOneDevice())


@every_optimizer
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


@pytest.mark.parametrize("clip", [{"clipnorm": 0.01}, {"clipvalue": 0.001}, {"global_clipnorm": 0.01}])
def test_reduce_first_makes_replicas_clip_the_gradient_of_the_whole_batch(clip, two_replicas):
    # SGD, since Adam would divide a wrong scale out again.
    alone = train(lambda: keras.optimizers.SGD(1.0, **clip))
    with two_replicas.scope():
        right = train(lambda: tfwarmup.reduce_first(keras.optimizers.SGD(1.0, **clip)))
        wrong = train(lambda: keras.optimizers.SGD(1.0, **clip))
    np.testing.assert_allclose(right, alone, rtol=0, atol=1e-6)
    assert np.abs(wrong - alone).max() > 1e-4


@pytest.mark.parametrize("bad_replica", [0, 1])
def test_reduce_first_makes_an_overflow_on_any_replica_skip_the_step(bad_replica, two_replicas):
    def after_a_bad_step(prepare):
        with two_replicas.scope():
            variable = keras.Variable(np.zeros(2, "float32"))
            optimizer = prepare(keras.optimizers.LossScaleOptimizer(tfwarmup.RAdam(1e-3), initial_scale=1.0))
            optimizer.build([variable])

        @tf.function
        def step():
            def on_replica():
                replica = tf.distribute.get_replica_context().replica_id_in_sync_group
                bad = tf.cast(replica, tf.int32) == bad_replica
                optimizer.apply([tf.where(bad, tf.fill([2], np.inf), tf.ones(2))], [variable])

            two_replicas.run(on_replica)

        step()
        return variable.numpy(), int(optimizer.iterations.numpy())

    value, updates = after_a_bad_step(tfwarmup.reduce_first)
    assert updates == 0
    np.testing.assert_array_equal(value, 0)
    if bad_replica == 1:  # Keras looks at replica 0 alone
        value, updates = after_a_bad_step(lambda optimizer: optimizer)
        assert updates == 1
        assert not np.all(np.isfinite(value))
