"""The models of image classification: functional Keras models from an image to float32 logits.

Pixels are 0 to 255, uint8 or float32, and the first layer scales them. So a saved model takes images as they are, and
images are sent to a device as uint8, a quarter of the size of float32.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
from keras import layers

from trainers.system.errors import require

ImageShape = tuple[int, int, int]
SCALED = "scaled"  # the name of the first layer


@dataclasses.dataclass(frozen=True)
class Scaling:
    """(pixel - mean) / deviation, with one number for all channels or one per channel.

    Images stay uint8 until the first layer of a model scales them on its device. A saved model includes its scaling.
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __str__(self) -> str:
        if self == UNIT:
            return "pixels scaled to [0, 1]"
        if self == IMAGENET:
            return "pixels normalised by ImageNet's mean and deviation"
        mean, deviation = (value / 255 for value in (*self.mean, *self.deviation))
        return f"pixels standardised by mean {mean:.6g} and deviation {deviation:.6g} of [0, 1]"


UNIT = Scaling((0.0,), (255.0,))
IMAGENET = Scaling(
    tuple(255 * mean for mean in (0.485, 0.456, 0.406)), tuple(255 * deviation for deviation in (0.229, 0.224, 0.225))
)


def mlp(image_shape: ImageShape, classes: int, scaling: Scaling = UNIT, activation: str = "relu") -> keras.Model:
    """The feed-forward network of the paper's gradient analysis (appendix A.5): hidden layers of 200, 100 and 50."""
    inputs = _image(image_shape)
    x = layers.Flatten()(_scale(inputs, scaling))
    for units in (200, 100, 50):
        x = _dense(x, units, activation=activation)
    return keras.Model(inputs, _logits(x, classes), name="mlp")


def small_resnet(image_shape: ImageShape, classes: int, scaling: Scaling = UNIT) -> keras.Model:
    """A residual network of two blocks, for grey or colour images of about 28 to 32 pixels."""
    require(max(image_shape[:2]) <= 64, "`image_shape` of small_resnet must be at most 64 pixels", image_shape)
    inputs = _image(image_shape)
    # The stem has a stride so that runs on small data take less than a minute on two cores.
    x = layers.Activation("relu")(_conv_norm(_scale(inputs, scaling), 32, 5, strides=2))
    for filters in (64, 128):
        shortcut = _conv_norm(x, filters, 1, strides=2)
        x = layers.Activation("relu")(_conv_norm(x, filters, 3, strides=2))
        x = layers.Activation("relu")(layers.Add()([_conv_norm(x, filters, 3), shortcut]))
    return keras.Model(inputs, _logits(layers.GlobalAveragePooling2D()(x), classes), name="small_resnet")


def resnet50(image_shape: ImageShape, classes: int, scaling: Scaling = UNIT) -> keras.Model:
    """ResNet-50 as in PyTorch's ImageNet example, which the paper trains: stride in the 3x3, He fan-out weights.

    Its batch normalisation is not synchronised, as under PyTorch's DataParallel: each replica normalises by its own
    part of the batch, so that n replicas train a slightly different network than one device with the whole batch.
    """
    import keras_hub  # takes half a second, and only this model needs it

    require(min(image_shape[:2]) >= 32, "`image_shape` of resnet50 must be at least 32 pixels", image_shape)
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
    scaled = _behind_scaling(backbone, scaling)
    # Connects tensors instead of calling backbone(inputs), so that the model is a flat list of Keras' own layers.
    x = layers.GlobalAveragePooling2D()(scaled.output)
    return keras.Model(scaled.input, _logits(x, classes), name="resnet50")


MODELS: dict[str, Callable[..., keras.Model]] = {
    "mlp": mlp,
    "small_resnet": small_resnet,
    "resnet50": resnet50,
}


def build_model(
    name: str, image_shape: ImageShape, classes: int, scaling: Scaling = UNIT, **options: str
) -> keras.Model:
    """The model called `name` in `MODELS`, for images of `image_shape` (height, width, channels).

    `options` are specific to a model: mlp has `activation`.
    """
    return MODELS[name](image_shape, classes, scaling, **options)


def _image(image_shape: ImageShape) -> Any:
    # Not uint8, which would silently truncate fractions.
    return keras.Input(image_shape, dtype="float32", name="image")


def _scale(images: Any, scaling: Scaling) -> Any:
    """(image - mean) / deviation, in float32 under every dtype policy."""
    per_channel = len(scaling.mean) > 1
    mean: Any = scaling.mean if per_channel else scaling.mean[0]
    variance: Any = [value**2 for value in scaling.deviation] if per_channel else scaling.deviation[0] ** 2
    axis = -1 if per_channel else None
    return layers.Normalization(axis=axis, mean=mean, variance=variance, dtype="float32", name=SCALED)(images)


def _behind_scaling(model: keras.Model, scaling: Scaling) -> keras.Model:
    """The same layers, with the scaling before the first one."""
    first = model.layers[1]

    def call(layer: Any, *inputs: Any, **arguments: Any) -> Any:
        if layer is first:
            inputs = (_scale(inputs[0], scaling), *inputs[1:])
        return layer(*inputs, **arguments)

    return keras.models.clone_model(model, clone_function=lambda layer: layer, call_function=call)


def _dense(x: Any, units: int, **kwargs: Any) -> Any:
    """A dense layer initialised like torch's Linear: weights and biases uniform within 1 / sqrt(fan_in)."""
    bound = x.shape[-1] ** -0.5
    # Two initializers: one without a seed would draw the same numbers at each call.
    weights, biases = (keras.initializers.RandomUniform(-bound, bound) for _ in range(2))
    return layers.Dense(units, kernel_initializer=weights, bias_initializer=biases, **kwargs)(x)


def _logits(x: Any, classes: int) -> Any:
    """The last layer, in float32 under every dtype policy: softmax of half-precision logits loses digits."""
    return _dense(x, classes, dtype="float32", name="logits")


def _conv_norm(x: Any, filters: int, kernel_size: int, strides: int = 1) -> Any:
    """A convolution and a batch normalisation, synchronised so that two replicas train the same network as one."""
    x = layers.Conv2D(filters, kernel_size, strides, padding="same", use_bias=False, kernel_initializer=_he_fan_out())(
        x
    )
    # Moving averages over about ten updates, because runs on small data are only a few hundred updates long.
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5, synchronized=True)(x)


def _he_fan_out() -> keras.initializers.Initializer:
    return keras.initializers.VarianceScaling(2.0, mode="fan_out", distribution="untruncated_normal")
