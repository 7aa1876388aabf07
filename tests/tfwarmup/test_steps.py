"""The step itself: exact momentum, variables of several types at once, and what only torch's kernel needs."""

import keras
import numpy as np
import pytest
from keras import ops

import tfwarmup
from tests.tfwarmup.helpers import BACKEND, drift, fit, numpy, random_gradients, small_model, trajectory, weights

only_torch = pytest.mark.skipif(BACKEND != "torch", reason="torch's kernel")
GRADIENTS = random_gradients(20)


def momentum_error(beta_2):
    """Of the first update of RAdam, a momentum step, with gradients so large that their root mean square is 3e10."""
    gradients = np.float32([[1e9, -1e11, 1e12]])
    value = trajectory(tfwarmup.RAdam(1e-3, beta_2=beta_2), gradients)
    return np.abs(value / (-1e-3 * gradients.astype("float64")) - 1).max()


@pytest.mark.parametrize("beta_2", [0.999, 0.99999], ids=["kernel", "no kernel"])
def test_momentum_steps_are_exact_for_huge_gradients(beta_2, monkeypatch):
    assert momentum_error(beta_2) < 3e-7
    monkeypatch.setattr("tfwarmup.formula.MOMENTUM_EPSILON", 2.0**53)
    # With this epsilon sqrt(v) is no longer nothing.
    assert momentum_error(beta_2) > 3e-7


def test_variables_of_several_types_updated_together_equal_each_updated_alone():
    types = ["float32", "float16", "bfloat16", "float32"] + ["float64"] * (BACKEND != "jax")

    def run(dtypes):
        optimizer = tfwarmup.RAdam(1e-2, weight_decay=0.1)
        names = ["bias" if i == 3 else "kernel" for i in range(len(dtypes))]
        variables = [keras.Variable(np.ones(40), dtype=d, name=n) for d, n in zip(dtypes, names, strict=True)]
        optimizer.exclude_from_weight_decay(var_names=["bias"])
        optimizer.build(variables)
        for gradient in GRADIENTS:
            optimizer.apply([ops.convert_to_tensor(gradient, dtype) for dtype in dtypes], variables)
        return [numpy(ops.cast(variable, "float32")) for variable in variables]

    together = run(types)
    for i, dtype in enumerate(types):
        if i != 3:
            np.testing.assert_array_equal(together[i], run([dtype])[0])
    assert np.all(together[3] > together[0])  # it has no decay


@only_torch
def test_a_transposed_gradient_is_read_along_its_strides():
    import torch

    gradients = torch.tensor(GRADIENTS.reshape(20, 5, 8))
    results = []
    for layout in (lambda g: g, lambda g: g.t().contiguous().t()):
        variable = keras.Variable(np.zeros((5, 8), "float32"))
        optimizer = tfwarmup.RAdam(1e-2)
        for gradient in gradients:
            optimizer.apply([layout(gradient)], [variable])
        results.append(numpy(variable))
    np.testing.assert_array_equal(*results)


@pytest.fixture
def torch_without_the_kernel(monkeypatch):
    """A function that makes this torch one that lacks the kernel, to the end of the test."""
    import torch

    from tfwarmup.steps import on_torch

    def remove():
        monkeypatch.delattr(torch, "_fused_adam_")
        on_torch._has_kernel.cache_clear()

    yield remove
    monkeypatch.undo()
    on_torch._has_kernel.cache_clear()


@only_torch
@pytest.mark.parametrize(("dtype", "ulps"), [("float32", 4), ("float64", 1e-6)])
@pytest.mark.parametrize("weight_decay", [None, 0.1])
def test_step_of_a_torch_without_the_kernel_equals_the_fused_one(dtype, ulps, weight_decay, torch_without_the_kernel):
    def run(theta):
        return trajectory(tfwarmup.RAdam(1e-3, weight_decay=weight_decay), GRADIENTS, np.full(40, theta), dtype)

    fused = [run(theta) for theta in (0.0, 0.5)]
    torch_without_the_kernel()
    foreach = [run(theta) for theta in (0.0, 0.5)]
    assert max(map(drift, foreach, fused)) < ulps


@only_torch
@pytest.mark.parametrize("weight_decay", [None, 0.1])
def test_number_of_operations_does_not_depend_on_the_number_of_variables(weight_decay):
    """Neither of kernels nor of transfers to the host."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        operations = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.operations += 1
            return function(*args, **(kwargs or {}))

    def count(number):
        variables = [keras.Variable(np.zeros(3, "float32")) for _ in range(number)]
        optimizer = tfwarmup.RAdam(weight_decay=weight_decay)
        optimizer.apply([ops.ones(3) for _ in variables], variables)
        gradients = [ops.ones(3) for _ in variables]
        with Count() as counter:
            optimizer.apply(gradients, variables)
        return counter.operations

    assert count(30) == count(2)


@only_torch
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's own, while it compiles
def test_a_train_step_that_torch_compiles_equals_the_eager_one():
    def train(**options):
        model = small_model(tfwarmup.RAdam(1e-2, weight_decay=0.01), **options)
        fit(model, epochs=2)
        return weights(model)

    np.testing.assert_allclose(train(jit_compile=True), train(jit_compile=False), rtol=0, atol=2e-6)
