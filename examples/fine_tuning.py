"""A second warmup: train on the digits 0 to 4, then fine-tune the same model on 5 to 9.

python examples/fine_tuning.py
"""

import keras
from sklearn.datasets import load_digits

import tfwarmup

keras.utils.set_random_seed(1)
digits, labels = load_digits(return_X_y=True)
digits = digits.astype("float32") / 16
low = labels < 5

model = keras.Sequential(
    [keras.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10, activation="softmax")]
)
# An optimizer you already have gets a warmup from `warm_up`, which reads beta_2 from it.
model.compile(
    tfwarmup.warm_up(keras.optimizers.AdamW(1e-2, beta_2=0.98)),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
model.fit(digits[low], labels[low], batch_size=32, epochs=5, verbose=0)
print(f"trained on 0 to 4; the warmup factor is {float(tfwarmup.warmup_factor(model.optimizer)):.2f}")

# The new digits bring large gradients. The warmup starts again at the next update; Adam's moments stay.
tfwarmup.restart_warmup(model)
print(f"warming up again; the warmup factor is {float(tfwarmup.warmup_factor(model.optimizer)):.2f}")

new, new_labels = digits[~low], labels[~low]
model.fit(new[:700], new_labels[:700], batch_size=32, epochs=10, verbose=0)
_, accuracy = model.evaluate(new[700:], new_labels[700:], verbose=0)
print(f"fine-tuned: {100 * accuracy:.1f} % of {len(new) - 700} held-out digits from 5 to 9 are classified correctly")
