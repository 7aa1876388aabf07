"""Warmup in a custom training loop on JAX, compiled by `jax.jit`.

python examples/custom_loop_jax.py
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np
from sklearn.datasets import load_digits

import tfwarmup

keras.utils.set_random_seed(1)
digits, labels = load_digits(return_X_y=True)
digits = digits.astype("float32") / 16

model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10)])
loss_function = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tfwarmup.RAdam(1e-2, beta_2=0.98)
optimizer.build(model.trainable_variables)


def compute_loss(weights, other_variables, x, y):
    logits, other_variables = model.stateless_call(weights, other_variables, x, training=True)
    return loss_function(y, logits), other_variables


@jax.jit
def train_step(state, x, y):
    weights, other_variables, optimizer_state = state
    gradient_function = jax.value_and_grad(compute_loss, has_aux=True)
    (loss, other_variables), gradients = gradient_function(weights, other_variables, x, y)
    # The optimizer counts the updates itself: the warmup needs nothing more than its state.
    weights, optimizer_state = optimizer.stateless_apply(optimizer_state, gradients, weights)
    return loss, (weights, other_variables, optimizer_state)


variables = (model.trainable_variables, model.non_trainable_variables, optimizer.variables)
state = tuple([variable.value for variable in group] for group in variables)
for epoch in range(6):
    for rows in np.random.default_rng(epoch).permutation(1500)[:1472].reshape(-1, 32):
        loss, state = train_step(state, digits[rows], labels[rows])

for group, values in zip(variables, state, strict=True):  # so that the model can be used and saved again
    for variable, value in zip(group, values, strict=True):
        variable.assign(value)
accuracy = np.mean(np.argmax(model.predict(digits[1500:], verbose=0), axis=1) == labels[1500:])
print(f"jax: {100 * accuracy:.1f} % of 297 held-out digits are classified correctly")
