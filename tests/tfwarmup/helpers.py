"""Tools that several test files share."""

import keras
import numpy as np
import pytest
from keras import ops

import tfwarmup

BACKEND = keras.backend.backend()
# The warmups that are functions of t: all but the one that follows the updates.
FUNCTIONS_OF_T = tuple(name for name in tfwarmup.WARMUPS if name != "dynamic")
KERAS = tuple(int(part) for part in keras.__version__.split(".")[:2])


def of_keras(name, *values):
    """A parameter of a test that needs one of Keras' optimizers, skipped where this version has none of that name."""
    missing = not hasattr(keras.optimizers, name)
    marks = pytest.mark.skipif(missing, reason=f"Keras {keras.__version__} has no {name}")
    return pytest.param(*(values or (name,)), marks=marks)


def compiled(function):
    """The function as this backend compiles it; torch runs as it is."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return tf.function(function)
    if BACKEND == "jax":
        import jax

        return jax.jit(function)
    return function


def numpy(x):
    return np.asarray(ops.convert_to_numpy(x))


def number(x):
    """A variable or a tensor as a float; before Keras 3.5 a variable has no `float` of its own."""
    return float(numpy(x))


def random_gradients(updates=1000, size=40, seed=0):
    """Normal gradients whose scale runs from 1e-4 to 10, with a mean for every second parameter."""
    scale = np.logspace(-4, 1, size)
    mean = scale * (np.arange(size) % 2)
    return np.random.default_rng(seed).normal(mean, scale, (updates, size)).astype("float32")


def trajectory(optimizer, gradients, theta=None, dtype="float32"):
    """The variable after each update, compiled as the backend's own trainer would."""
    variable = keras.Variable(np.zeros(gradients.shape[1:]) if theta is None else theta, dtype=dtype)
    optimizer.build([variable])
    update = _update_function(optimizer, variable)
    values = []
    for gradient in gradients:
        update(ops.convert_to_tensor(gradient, dtype=dtype))
        values.append(numpy(ops.cast(variable, "float64" if dtype == "float64" else "float32")).astype("float64"))
    return np.stack(values)


def _update_function(optimizer, variable):
    if BACKEND != "jax":
        return compiled(lambda gradient: optimizer.apply([gradient], [variable]))
    stateless = compiled(optimizer.stateless_apply)

    def update(gradient):
        state = [v.value for v in optimizer.variables]
        (value,), state = stateless(state, [gradient], [variable.value])
        for target, new in zip([variable, *optimizer.variables], [value, *state], strict=True):
            target.assign(new)

    return update


def drift(values, expected):
    """The largest difference of two trajectories, in float32 ulps of the largest value its parameter ever took.

    A thousand updates, each rounded to half an ulp at the most, wander some tens of ulps apart.
    """
    expected = np.stack(list(expected))
    ulp = np.spacing(np.abs(expected).max(axis=0).astype("float32"))
    return float(np.max(np.abs(values - expected) / ulp))


def squared_error(weight=1.0):
    """A loss that is multiplied by a weight, since versions of Keras differ in their `loss_weights`."""
    return lambda y, y_pred: weight * keras.losses.mean_squared_error(y, y_pred)


def replica_loss():
    """The squared error for `fit` under the current strategy: before Keras 3.8 the replicas' losses are added up."""
    import tensorflow as tf

    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    return squared_error(1 / replicas if KERAS < (3, 8) else 1.0)


def small_model(optimizer, loss="mse", **kwargs):
    """A compiled regression network with 31 weights, the same at every call."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(6, activation="tanh"), keras.layers.Dense(1)])
    model.compile(optimizer, loss=loss, **kwargs)
    return model


def small_data(rows=64):
    x = np.random.default_rng(2).normal(size=(rows, 3)).astype("float32")
    return x, np.sin(x.sum(axis=1, keepdims=True)).astype("float32")


def fit(model, epochs=1, batch_size=16, **options):
    """Trains on `small_data` in its order, and returns the history."""
    options = {"batch_size": batch_size, "epochs": epochs, "shuffle": False, "verbose": 0} | options
    return model.fit(*small_data(), **options).history


def reloaded(model, folder):
    """The model after a way through a file."""
    model.save(folder / "model.keras")
    return keras.models.load_model(folder / "model.keras")


def noisy_model(optimizer):
    """Dropout, batch normalisation, regularisers and metrics: all that a pass could disturb."""
    keras.utils.set_random_seed(3)
    x = inputs = keras.Input((3,))
    x = keras.layers.Dense(6, activation="tanh", kernel_regularizer="l2", activity_regularizer="l2")(x)
    x = keras.layers.Dropout(0.5)(keras.layers.BatchNormalization()(x))
    model = keras.Model(inputs, keras.layers.Dense(1)(x))
    model.compile(optimizer, loss="mse", metrics=["mae"], weighted_metrics=["mse"])
    return model


def all_state(model):
    """Copies of every variable of a model, its optimizer and its metrics."""
    variables = [*model.variables, *model.optimizer.variables, *model.metrics_variables]
    return [numpy(variable).copy() for variable in variables]


def gradient_by_hand(model, x, y):
    """The gradient of the mean squared error at both kernels of `small_model`, in float64."""
    w1, b1, w2, b2 = (np.asarray(w, "float64") for w in model.get_weights())
    hidden = np.tanh(x @ w1 + b1)
    error = 2 * (hidden @ w2 + b2 - y) / len(x)
    return np.concatenate([np.ravel(x.T @ (error @ w2.T * (1 - hidden**2))), np.ravel(hidden.T @ error)])


class Batches(keras.utils.PyDataset):
    def __init__(self, batches):
        super().__init__()
        self.batches = batches

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        return self.batches[index]


def weights(model):
    return np.concatenate([np.ravel(w) for w in model.get_weights()])
