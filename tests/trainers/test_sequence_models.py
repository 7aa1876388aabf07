"""What the language model and the translation model have in common."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from trainers.system.errors import ConfigError
from trainers.system.private import all_layers
from trainers.tasks.language.config import LanguageSizes
from trainers.tasks.language.models import build_language_model
from trainers.tasks.translation.config import TranslatorSizes
from trainers.tasks.translation.models import build_translation_model

VOCABULARY = 60
SIZES = {"layers": 1, "width": 32, "heads": 4, "inner": 48}
DROPOUTS = {"dropout": 0.3, "attention_dropout": 0.1, "activation_dropout": 0.1}
NO_DROPOUT = dict.fromkeys(DROPOUTS, 0.0)
FULL_LANGUAGE_MODEL = {"layers": 16, "heads": 8, "cutoffs": (20_000, 60_000), "factor": 4}


class Language:
    shown, predicted = "tokens", "targets"  # the inputs
    dropouts = 1 + SIZES["layers"] * 4 + 3  # of the embedding, the blocks and the bands of the softmax

    @staticmethod
    def build(**options):
        values = {**SIZES, **DROPOUTS, "cutoffs": (10, 30), **options}
        return build_language_model(VOCABULARY, LanguageSizes(**values, softmax_dropout=values["dropout"]))

    @staticmethod
    def hidden(model, inputs):
        return model.hidden(inputs["tokens"])


class Translation:
    shown, predicted = "target", "source"
    dropouts = 2 + SIZES["layers"] * (4 + 6)

    @staticmethod
    def build(**options):
        return build_translation_model(VOCABULARY, TranslatorSizes(**{**SIZES, **DROPOUTS, **options}))

    @staticmethod
    def hidden(model, inputs):
        return model.encode(inputs["source"])


@pytest.fixture(params=[Language, Translation])
def kind(request):
    return request.param


@pytest.fixture
def inputs(kind):
    words = np.random.default_rng(0).integers(3, VOCABULARY, (2, 3, 8)).astype("int32")
    return {kind.shown: words[0], kind.predicted: words[1]}


@pytest.mark.parametrize(
    ("build", "parameters"),
    [
        # 267,735 words are WikiText-103's, the unknown word and the end of a line among them. fairseq has a beginning
        # and a padding too, and fills up to a multiple of eight: 267,744. By its own account its model has 246,933,504
        # parameters (examples/layerdrop/README.md).
        (lambda big: build_language_model(267_735, LanguageSizes(**FULL_LANGUAGE_MODEL, **big)), 246_932_928),
        (lambda big: build_language_model(267_744, LanguageSizes(**FULL_LANGUAGE_MODEL, **big)), 246_933_504),
        (lambda big: build_translation_model(32_768, TranslatorSizes(layers=6, heads=16, **big)), 209_911_808),
    ],
)
def test_the_papers_models_have_their_parameters(build, parameters):
    # Only shapes: the numbers would be a gigabyte.
    with keras.StatelessScope(initialize_variables=False):
        model = build({"width": 1024, "inner": 4096, **DROPOUTS})
    keras.utils.clear_session()  # or the next scope would make them after all
    assert sum(int(np.prod(weight.shape)) for weight in model.trainable_variables) == parameters


def test_tokens_may_be_of_any_integer_type_and_outputs_are_finite_float32(kind, inputs):
    model = kind.build()
    outputs = model(inputs)
    assert (outputs.shape[:2], outputs.dtype) == (inputs[kind.shown].shape, "float32")
    assert np.isfinite(outputs).all()
    for dtype in ("int64", "uint16"):
        np.testing.assert_array_equal(model({name: x.astype(dtype) for name, x in inputs.items()}), outputs)


def test_a_later_token_changes_nothing_before_it(kind, inputs):
    model = kind.build()
    changed = {**inputs, kind.shown: inputs[kind.shown].copy()}
    changed[kind.shown][:, 5] = 2
    before, after = (model(each).numpy().reshape(3, 8, -1) for each in (inputs, changed))
    np.testing.assert_array_equal(before[:, :5], after[:, :5])
    assert not np.any(np.isclose(before[:, 5:], after[:, 5:]).all(axis=-1))


def test_embeddings_are_scaled_by_the_root_of_the_width(kind):
    model, tokens = kind.build(width=64), np.arange(VOCABULARY, dtype="int32")[None]
    seen = []
    model.positions = lambda x, start=0: seen.append(x) or x
    kind.hidden(model, {"tokens": tokens, "source": tokens})
    np.testing.assert_allclose(seen[0], 8 * model.embedding(tokens), rtol=1e-6)


def test_every_dropout_is_a_layer_of_its_own(kind):
    dropouts = [layer for layer in all_layers(kind.build()) if isinstance(layer, keras.layers.Dropout)]
    assert len(dropouts) == kind.dropouts
    assert all(layer.rate > 0 for layer in dropouts)


@pytest.mark.parametrize(("policy", "unit"), [("mixed_float16", 2**-10), ("mixed_bfloat16", 2**-7)])
def test_half_precision_is_near_and_has_finite_gradients_in_float32(kind, inputs, policy, unit):
    full = kind.build(**NO_DROPOUT)
    keras.config.set_dtype_policy(policy)
    half = kind.build(**NO_DROPOUT)
    half.set_weights(full.get_weights())
    assert {weight.dtype for weight in half.trainable_variables} == {"float32"}
    assert kind.hidden(half, inputs).dtype == policy.removeprefix("mixed_")
    with tf.GradientTape() as tape:
        outputs = half(inputs, training=True)
        loss = tf.reduce_mean(outputs) * 2.0**10
    assert outputs.dtype == "float32"
    np.testing.assert_allclose(outputs, full(inputs), rtol=unit, atol=5 * unit)
    for gradient in tape.gradient(loss, half.trainable_variables):
        assert gradient.dtype == "float32"
        assert np.isfinite(tf.convert_to_tensor(gradient)).all()


@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_a_saved_model_loads_in_its_precision(kind, inputs, policy, tmp_path):
    keras.config.set_dtype_policy(policy)
    model = kind.build()
    model.save(tmp_path / "model.keras")
    keras.config.set_dtype_policy("float32")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(inputs), model(inputs))
    assert kind.hidden(loaded, inputs).dtype == policy.removeprefix("mixed_")
    assert loaded.get_config() == model.get_config()
    assert len(loaded.weights) == len(model.weights)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": 3}, "`heads` must divide width=32. Received: 3"),
        ({"width": 33, "heads": 3}, "`width` of positions must be even and >= 4. Received: 33"),
    ],
)
def test_errors_say_the_rule_and_then_the_value(kind, changes, message):
    with pytest.raises(ConfigError) as error:
        kind.build(**changes)
    assert message in str(error.value)
