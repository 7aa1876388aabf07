"""The models of image classification: sizes, types, first weights, files and errors."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from trainers.system.errors import ConfigError
from trainers.tasks.images.models import IMAGENET, MODELS, SCALED, UNIT, Scaling, build_model

SMALL = [name for name in MODELS if name != "resnet50"]
POLICIES = ["float32", "mixed_float16", "mixed_bfloat16"]


@pytest.fixture
def policy(request):
    keras.config.set_dtype_policy(request.param)
    return request.param


@pytest.fixture(scope="module")
def resnet50():
    """One for all tests: it takes seconds to build."""
    keras.utils.set_random_seed(0)
    return build_model("resnet50", (224, 224, 3), 1000)


def trainable_parameters(model):
    return sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)


def images(*shape):
    return np.random.default_rng(0).integers(0, 256, shape).astype("uint8")


def scaled(model, pixels):
    """What the layers behind the first see."""
    return keras.Model(model.input, model.get_layer(SCALED).output)(pixels).numpy()


def test_pixels_are_scaled_to_the_unit_interval_exactly():
    model = build_model("mlp", (28, 28, 1), 10, UNIT)
    pixels = images(2, 28, 28, 1)
    np.testing.assert_array_equal(scaled(model, pixels), np.float32(pixels) / np.float32(255))


@pytest.mark.parametrize("name", [*SMALL, pytest.param("resnet50", marks=pytest.mark.slow)])
def test_every_model_scales_its_pixels_first(name, tmp_path):
    shape, scaling = (32, 32, 3), Scaling((10.0, 20.0, 30.0), (1.0, 2.0, 4.0))
    keras.utils.set_random_seed(0)
    model = build_model(name, shape, 4, scaling)
    keras.utils.set_random_seed(0)
    plain = build_model(name, shape, 4, Scaling((0.0,), (1.0,)))
    pixels = images(2, *shape)
    expected = (pixels - np.float32([10, 20, 30])) / np.float32([1, 2, 4])
    np.testing.assert_array_equal(scaled(model, pixels), expected)
    np.testing.assert_array_equal(model(pixels), plain(expected))
    np.testing.assert_array_equal(model(np.float32(pixels)), plain(expected))
    model.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras")(pixels), model(pixels))


def test_photographs_have_imagenets_mean_at_zero():
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    pixels = 255 * np.stack([mean, mean + deviation, mean - 2 * deviation])[None, None].astype("float32")
    model = build_model("mlp", (1, 3, 3), 2, IMAGENET)
    np.testing.assert_allclose(scaled(model, pixels)[0, 0], [[0] * 3, [1] * 3, [-2] * 3], atol=1e-6)


@pytest.mark.parametrize("policy", ["mixed_float16"], indirect=True)
def test_half_precision_scales_in_float32(policy):
    pixels = images(2, 28, 28, 1)
    half = scaled(build_model("mlp", (28, 28, 1), 10, Scaling((33.3,), (78.6,))), pixels)
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, (pixels - 33.3) / 78.6, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_mlp_has_the_layers_of_the_paper(activation):
    model = build_model("mlp", (28, 28, 1), 10, activation=activation)
    dense = [layer for layer in model.layers if isinstance(layer, keras.layers.Dense)]
    assert [layer.activation.__name__ for layer in dense] == [activation] * 3 + ["linear"]
    kernels = [tuple(layer.kernel.shape) for layer in dense]
    assert kernels == list(itertools.pairwise([784, 200, 100, 50, 10]))
    assert trainable_parameters(model) == sum((m + 1) * n for m, n in kernels)


def test_weights_and_biases_of_mlp_fill_the_range_one_over_root_fan_in():
    model = build_model("mlp", (28, 28, 1), 10)
    for layer in (layer for layer in model.layers if layer.weights):
        bound = layer.kernel.shape[0] ** -0.5
        for weight in layer.get_weights():
            assert np.abs(weight).max() <= bound
            assert np.abs(weight).max() > 0.7 * bound  # ten biases or more: fails by chance once in 35 at the most
            assert weight.min() < 0 < weight.max()
        kernel = layer.get_weights()[0]
        np.testing.assert_allclose(kernel.std(), bound / 3**0.5, rtol=0.1)


def test_resnet50_has_the_parameters_of_the_reference_and_strides_in_the_3x3_convolution(resnet50):
    assert trainable_parameters(resnet50) == 25_557_032
    strided = [la for la in resnet50.layers if isinstance(la, keras.layers.Conv2D) and la.strides == (2, 2)]
    assert [la.kernel_size for la in strided if not la.name.endswith("_0_conv")] == [(7, 7), (3, 3), (3, 3), (3, 3)]


def test_convolutions_of_resnet50_start_as_he_normal_by_fan_out(resnet50):
    for layer in (layer for layer in resnet50.layers if isinstance(layer, keras.layers.Conv2D)):
        height, width, _, filters = layer.kernel.shape
        kernel = layer.get_weights()[0]
        np.testing.assert_allclose(kernel.std(), (2 / (height * width * filters)) ** 0.5, rtol=0.05)
    first, second = (resnet50.get_layer(f"stack2_block{n}_1_conv").get_weights()[0] for n in (1, 2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("policy", ["mixed_float16"], indirect=True)
def test_resnet50_computes_in_half_precision_and_gives_float32_logits(policy):
    model = build_model("resnet50", (32, 32, 3), 10)
    assert {w.dtype for w in model.weights} == {"float32"}
    assert model.get_layer("conv1_conv").compute_dtype == "float16"
    logits = model(images(2, 32, 32, 3))
    assert logits.dtype == "float32"
    assert np.isfinite(logits).all()


@pytest.mark.parametrize("policy", POLICIES, indirect=True)
@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 32, 3)], ids=str)
@pytest.mark.parametrize("name", SMALL)
def test_small_models_give_float32_logits_from_float32_images(name, shape, policy):
    model = build_model(name, shape, 7)
    assert model.input.dtype == "float32"
    assert model.output.dtype == "float32"
    logits = model(images(3, *shape), training=True)
    assert logits.shape == (3, 7)
    assert logits.dtype == "float32"
    assert np.isfinite(logits).all()
    assert model.get_layer(SCALED).compute_dtype == "float32"
    assert model.layers[2].compute_dtype == policy.removeprefix("mixed_")


def test_small_resnet_on_two_replicas_equals_one_device():
    x, labels = images(16, 28, 28, 1), np.arange(16) % 10

    def loss_gradients(model, x, labels):
        with tf.GradientTape() as tape:
            losses = keras.losses.sparse_categorical_crossentropy(labels, model(x, training=True), from_logits=True)
            loss = tf.reduce_sum(losses) / 16
        return tape.gradient(loss, model.trainable_variables)

    one = build_model("small_resnet", (28, 28, 1), 10)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice())
    with strategy.scope():
        two = build_model("small_resnet", (28, 28, 1), 10)
    two.set_weights(one.get_weights())

    @tf.function
    def replicas():
        def replica():
            context = tf.distribute.get_replica_context()
            mine = context.replica_id_in_sync_group * 8 + tf.range(8)
            gradients = loss_gradients(two, tf.gather(x, mine), tf.gather(labels, mine))
            return context.all_reduce("sum", gradients)

        return [strategy.experimental_local_results(g)[0] for g in strategy.run(replica)]

    for ours, reference in zip(replicas(), loss_gradients(one, x, labels), strict=True):
        scale = float(tf.reduce_max(tf.abs(reference)))
        np.testing.assert_allclose(ours, reference, rtol=0, atol=1e-4 * scale + 1e-7)
    for ours, reference in zip(two.non_trainable_variables, one.non_trainable_variables, strict=True):
        np.testing.assert_allclose(ours.numpy(), reference.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("resnet50", (28, 28, 3), 10), "at least 32 pixels. Received: (28, 28, 3)"),
        (("resnet50", (224, 31, 3), 10), "at least 32 pixels. Received: (224, 31, 3)"),
        (("small_resnet", (65, 32, 3), 10), "at most 64 pixels. Received: (65, 32, 3)"),
    ],
)
def test_errors_say_the_rule_and_then_the_value(arguments, message):
    with pytest.raises(ConfigError) as error:
        build_model(*arguments)
    assert message in str(error.value)
