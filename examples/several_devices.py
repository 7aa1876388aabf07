"""One model on several devices with `tf.distribute.MirroredStrategy`.

python examples/several_devices.py

Without several GPUs, it splits the CPU into two logical devices and runs the same code on them.
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import tensorflow as tf
from sklearn.datasets import load_digits

import tfwarmup

keras.utils.set_random_seed(1)
kind = "GPU" if len(tf.config.list_physical_devices("GPU")) > 1 else "CPU"
if kind == "CPU":
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], two)
strategy = tf.distribute.MirroredStrategy(tf.config.list_logical_devices(kind))

digits, labels = load_digits(return_X_y=True)
digits = digits.astype("float32") / 16
# The batch is split between the devices. Examples of a smaller last batch would get another weight.
data = tf.data.Dataset.from_tensor_slices((digits[:1500], labels[:1500]))
data = data.shuffle(1500, seed=1).batch(50, drop_remainder=True)

with strategy.scope():
    model = keras.Sequential(
        [keras.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10, activation="softmax")]
    )
    # `tfwarmup.Adam` and `tfwarmup.RAdam` sum the gradients of all devices, then clip the sum. Keras' own optimizers
    # clip on each device, unless you wrap them: tfwarmup.reduce_first(keras.optimizers.Adam(...)).
    optimizer = tfwarmup.Adam(1e-2, beta_2=0.98, warmup="untuned_linear", global_clipnorm=1.0)
    model.compile(optimizer, loss="sparse_categorical_crossentropy")
model.fit(data, epochs=6, shuffle=False, verbose=0)  # the data set shuffles itself

predicted = model(digits[1500:]).numpy().argmax(axis=1)
accuracy = (predicted == labels[1500:]).mean()
devices = strategy.num_replicas_in_sync
print(f"{devices} devices: {100 * accuracy:.1f} % of 297 held-out digits are classified correctly")
