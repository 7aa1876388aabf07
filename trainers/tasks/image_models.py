"""The models of image classification: functional Keras models from a float32 image to float32 logits."""

from collections.abc import Callable
from typing import Any

import keras
from keras import layers

ImageShape = tuple[int, int, int]


class ModelError(ValueError):
    """A model that cannot be built as asked."""


def mlp(image_shape: ImageShape, classes: int) -> keras.Model:
    """The feed-forward network of the paper's gradient analysis (appendix A.5): hidden layers of 200, 100 and 50."""
    inputs = keras.Input(image_shape, dtype="float32", name="image")
    x = layers.Flatten()(inputs)
    for units in (200, 100, 50):
        x = _dense(x, units, activation="relu")
    return keras.Model(inputs, _logits(x, classes), name="mlp")


def small_resnet(image_shape: ImageShape, classes: int) -> keras.Model:
    """A residual network of two blocks, for grey or colour images of about 28 to 32 pixels."""
    if max(image_shape[:2]) > 64:
        raise ModelError(
            f"`image_shape` of small_resnet must be at most 64 pixels. Received: image_shape={image_shape}"
        )
    inputs = keras.Input(image_shape, dtype="float32", name="image")
    # A stride in the stem, because runs on small data are to take less than a minute on two cores.
    x = layers.Activation("relu")(_conv_norm(inputs, 32, 5, strides=2))
    for filters in (64, 128):
        shortcut = _conv_norm(x, filters, 1, strides=2)
        x = layers.Activation("relu")(_conv_norm(x, filters, 3, strides=2))
        x = layers.Activation("relu")(layers.Add()([_conv_norm(x, filters, 3), shortcut]))
    return keras.Model(inputs, _logits(layers.GlobalAveragePooling2D()(x), classes), name="small_resnet")


def resnet50(image_shape: ImageShape, classes: int) -> keras.Model:
    """ResNet-50 as in PyTorch's ImageNet example, which the paper trains: stride in the 3x3, He fan-out weights.

    Its batch normalisation is not synchronised, as under PyTorch's DataParallel: each replica normalises by its own
    part of the batch, so that n replicas train a slightly different network than one device with the whole batch.
    """
    import keras_hub  # takes half a second, and only this model needs it

    if min(image_shape[:2]) < 32:
        raise ModelError(f"`image_shape` of resnet50 must be at least 32 pixels. Received: image_shape={image_shape}")
    backbone = keras_hub.models.ResNetBackbone(
        input_conv_filters=[64],
        input_conv_kernel_sizes=[7],
        stackwise_num_filters=[64, 128, 256, 512],
        stackwise_num_blocks=[3, 4, 6, 3],
        stackwise_num_strides=[1, 2, 2, 2],
        block_type="bottleneck_block",
        image_shape=image_shape,
        data_format="channels_last",
    )
    # The backbone takes no initializer and has drawn Glorot weights by now.
    for layer in backbone.layers:
        if isinstance(layer, layers.Conv2D):
            layer.kernel.assign(_he_fan_out()(layer.kernel.shape))
    # From tensor to tensor, not backbone(inputs): the model then consists of Keras' own layers, in one level.
    x = layers.GlobalAveragePooling2D()(backbone.output)
    return keras.Model(backbone.input, _logits(x, classes), name="resnet50")


MODELS: dict[str, Callable[[ImageShape, int], keras.Model]] = {
    "mlp": mlp,
    "small_resnet": small_resnet,
    "resnet50": resnet50,
}


def build_model(name: str, image_shape: ImageShape, classes: int) -> keras.Model:
    """The model called `name` in `MODELS`, for images of `image_shape` (height, width, channels)."""
    if name not in MODELS:
        raise ModelError(f"`name` must be one of {', '.join(MODELS)}. Received: name={name}")
    if len(image_shape) != 3 or min(image_shape) < 1:
        raise ModelError(
            f"`image_shape` must be (height, width, channels), all > 0. Received: image_shape={image_shape}"
        )
    if classes < 2:
        raise ModelError(f"`classes` must be >= 2. Received: classes={classes}")
    return MODELS[name](image_shape, classes)


def _dense(x: Any, units: int, **kwargs: Any) -> Any:
    """A dense layer as torch's Linear starts: weights and biases uniform within 1 / sqrt(fan_in)."""
    bound = x.shape[-1] ** -0.5
    # Two initializers: one without a seed would draw the same numbers at each call.
    weights, biases = (keras.initializers.RandomUniform(-bound, bound) for _ in range(2))
    return layers.Dense(units, kernel_initializer=weights, bias_initializer=biases, **kwargs)(x)


def _logits(x: Any, classes: int) -> Any:
    """The last layer, in float32 under every dtype policy: softmax of half-precision logits loses digits."""
    return _dense(x, classes, dtype="float32", name="logits")


def _conv_norm(x: Any, filters: int, kernel_size: int, strides: int = 1) -> Any:
    """A convolution and its batch normalisation; synchronised, so that two replicas train the network that one does."""
    x = layers.Conv2D(filters, kernel_size, strides, padding="same", use_bias=False, kernel_initializer=_he_fan_out())(
        x
    )
    # Moving averages of the last ten updates or so: runs on small data are a few hundred updates long.
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5, synchronized=True)(x)


def _he_fan_out() -> keras.initializers.Initializer:
    return keras.initializers.VarianceScaling(2.0, mode="fan_out", distribution="untruncated_normal")
