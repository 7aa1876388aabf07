"""What only TensorFlow has: the fused kernel, XLA, `IndexedSlices` and `MirroredStrategy`."""

import keras
import numpy as np
import pytest

import tfwarmup
from tests.tfwarmup import reference
from tests.tfwarmup.helpers import BACKEND, drift, random_gradients
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
    monkeypatch.setattr("tfwarmup.optimizers.adam.step", steps.plain_step)
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


def test_embedding_rows_that_a_batch_does_not_name_move_too_and_no_shape_is_needed():
    table = keras.Variable(np.zeros((2, 1), "float32"))
    optimizer = tfwarmup.Adam(1e-3)
    dense = np.zeros((30, 2, 1), "float32")
    dense[np.arange(30), np.arange(30) % 2] = 1.0
    for t in range(30):
        optimizer.apply([tf.IndexedSlices(tf.ones((1, 1)), tf.constant([t % 2]))], [table])
    assert drift(table.numpy(), list(reference.adam(dense, np.zeros((2, 1))))[-1]) < 16
