"""Warmup without tuning in `model.fit`, on any Keras backend.

python examples/fit.py
KERAS_BACKEND=jax python examples/fit.py
"""

import keras
from sklearn.datasets import load_digits

import tfwarmup

keras.utils.set_random_seed(1)

# 1,797 real digits of 8x8 pixels, which come with scikit-learn. The last 297 are held out.
digits, labels = load_digits(return_X_y=True)
digits = digits.astype("float32") / 16

model = keras.Sequential(
    [keras.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10, activation="softmax")]
)

# Adam with a linear warmup over 2 / (1 - beta_2) updates: 100 of the 470 updates of this run. With the usual beta_2 of
# 0.999 it would be 2000 updates, and the run would end before its warmup.
model.compile(
    tfwarmup.Adam(1e-2, beta_2=0.98, warmup="untuned_linear"),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
model.fit(digits[:1500], labels[:1500], batch_size=32, epochs=10, verbose=2)

_, accuracy = model.evaluate(digits[1500:], labels[1500:], verbose=0)
print(f"{keras.backend.backend()}: {100 * accuracy:.1f} % of 297 held-out digits are classified correctly")
