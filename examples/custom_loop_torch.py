"""Warmup in a custom training loop on torch.

python examples/custom_loop_torch.py
"""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch
from sklearn.datasets import load_digits

import tfwarmup

keras.utils.set_random_seed(1)
digits, labels = (torch.from_numpy(array) for array in load_digits(return_X_y=True))
digits = digits.float() / 16
batches = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(digits[:1500], labels[:1500]), batch_size=32, shuffle=True
)

# A Keras model is a torch module on this backend.
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10)])
optimizer = tfwarmup.RAdam(1e-2, beta_2=0.98)
optimizer.build(model.trainable_variables)

for _ in range(6):
    for x, y in batches:
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(x, training=True), y).backward()
        gradients = [variable.value.grad for variable in model.trainable_variables]
        with torch.no_grad():
            # The optimizer counts the updates itself: the warmup needs no extra call.
            optimizer.apply(gradients, model.trainable_variables)

with torch.no_grad():
    accuracy = (model(digits[1500:]).argmax(dim=1) == labels[1500:]).float().mean().item()
print(f"torch: {100 * accuracy:.1f} % of 297 held-out digits are classified correctly")
