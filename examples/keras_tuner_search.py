"""Search learning rate, beta_2 and warmup together with keras-tuner.

python examples/keras_tuner_search.py
"""

import tempfile

import keras
import keras_tuner
from sklearn.datasets import load_digits

from tfwarmup.tuning import LogRange, warmup_space

digits, labels = load_digits(return_X_y=True)
digits = digits.astype("float32") / 16


def build_model(hp):
    model = keras.Sequential(
        [keras.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10, activation="softmax")]
    )
    # Declares the three hyperparameters, and returns the optimizer with the values drawn. "radam" is RAdam, the others
    # are Adam with that warmup.
    optimizer = warmup_space(
        hp,
        learning_rate=LogRange(1e-3, 1e-1),
        beta_2=(0.9, 0.98),
        warmup=("untuned_linear", "untuned_exponential", "radam"),
    )
    model.compile(optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


with tempfile.TemporaryDirectory() as folder:  # use a permanent folder to resume a search later
    tuner = keras_tuner.RandomSearch(build_model, "val_accuracy", max_trials=3, seed=1, directory=folder)
    validation = (digits[1500:], labels[1500:])
    tuner.search(digits[:1500], labels[:1500], batch_size=32, epochs=3, validation_data=validation, verbose=0)
    [best] = tuner.oracle.get_best_trials(1)
print(f"the best of 3 trials reaches {100 * best.score:.1f} % with {best.hyperparameters.values}")
