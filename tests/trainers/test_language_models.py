"""The language model: size, causality, tied weights, randomness, replicas, files and errors."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from trainers.engine.layer_state import StatelessSeeds
from trainers.system.errors import ConfigError
from trainers.system.private import all_layers
from trainers.tasks.language.config import LanguageSizes
from trainers.tasks.language.models import build_language_model

VOCABULARY, CUTOFFS = 60, (10, 30)
SIZES = {"layers": 2, "width": 32, "heads": 4, "inner": 48, "cutoffs": CUTOFFS, "dropout": 0.0}
DROPOUTS = {"dropout": 0.3, "attention_dropout": 0.1, "activation_dropout": 0.1, "softmax_dropout": 0.2}
FULL_SIZE = {"layers": 16, "width": 1024, "heads": 8, "inner": 4096, "cutoffs": (20_000, 60_000), "factor": 4}


def small_model(**options):
    return build_language_model(VOCABULARY, LanguageSizes(**SIZES | options))


def batch(*shape, words=VOCABULARY):
    words = np.random.default_rng(0).integers(0, words, (*shape[:-1], shape[-1] + 1)).astype("int32")
    return {"tokens": words[..., :-1], "targets": words[..., 1:]}


def mean_loss_and_gradients(model, inputs, training=True):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(inputs, training=training))
    return loss, tape.gradient(loss, model.trainable_variables)


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    return small_model(**DROPOUTS)


@pytest.fixture
def weightless():
    """A scope in which a model has the shapes of its weights, but not the gigabyte of numbers."""
    with keras.StatelessScope(initialize_variables=False):
        yield
    keras.utils.clear_session()  # or the next scope would make them after all


def parameters_at_full_size(vocabulary):
    width, inner, cutoffs = 1024, 4096, (20_000, 60_000)
    tables = cutoffs[0] * width + (cutoffs[1] - cutoffs[0]) * width // 4 + (vocabulary - cutoffs[1]) * width // 16
    projections = width * width + width // 4 * width + width // 16 * width
    classes = len(cutoffs) * width
    attention = 4 * (width * width + width)
    dense = width * inner + inner + inner * width + width
    norms = 2 * 2 * width
    return tables + projections + classes + 16 * (attention + dense + norms)


def test_parameters_at_full_size_are_the_247_million_of_the_paper(weightless):
    # 267,735 words are WikiText-103's, the unknown word and the end of a line among them. fairseq has a beginning and
    # a padding too, and fills up to a multiple of eight: 267,744. By its own account its model has 246,933,504
    # parameters (examples/layerdrop/README.md).
    for vocabulary, expected in ((267_735, 246_932_928), (267_744, 246_933_504)):
        model = build_language_model(vocabulary, LanguageSizes(**FULL_SIZE | DROPOUTS))
        assert parameters_at_full_size(vocabulary) == expected
        assert sum(int(np.prod(weight.shape)) for weight in model.trainable_variables) == expected


def test_losses_are_float32_numbers_of_every_token(model):
    losses = model(batch(3, 7))
    assert losses.shape == (3, 7)
    assert losses.dtype == "float32"
    assert np.isfinite(losses).all()
    assert np.all(losses > 0)


@pytest.mark.parametrize("normalize_first", [True, False])
def test_blocks_normalise_their_inputs_or_their_outputs(normalize_first, tmp_path):
    keras.utils.set_random_seed(0)
    model = small_model(normalize_first=normalize_first)
    hidden = model.hidden(batch(3, 7)["tokens"])
    is_normalised = np.allclose(np.mean(hidden, axis=-1), 0, atol=1e-5) and np.allclose(
        np.std(hidden, axis=-1), 1, atol=1e-3
    )
    assert is_normalised != normalize_first
    model.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras")(batch(3, 7)), model(batch(3, 7)))


def test_a_later_token_changes_nothing_before_it(model):
    inputs = batch(2, 8)
    changed = {**inputs, "tokens": inputs["tokens"].copy()}
    changed["tokens"][:, 5] = (changed["tokens"][:, 5] + 1) % VOCABULARY
    before, after = model(inputs).numpy(), model(changed).numpy()
    np.testing.assert_array_equal(before[:, :5], after[:, :5])
    assert not np.any(np.isclose(before[:, 5:], after[:, 5:]))


def test_positions_matter(model):
    same_word = {"tokens": np.full((1, 6), 5, "int32"), "targets": np.full((1, 6), 7, "int32")}
    assert len(np.unique(np.round(model(same_word), 4))) == 6


def test_embeddings_are_scaled_by_the_root_of_the_width():
    model = small_model(width=64)
    vectors = model.embedding(np.arange(VOCABULARY, dtype="int32")[None])
    seen = []
    model.positions = lambda x: seen.append(x) or x
    model.hidden(np.arange(VOCABULARY, dtype="int32")[None])
    np.testing.assert_allclose(seen[0], 8 * vectors, rtol=1e-6)


def test_words_may_be_of_any_integer_type(model):
    inputs = batch(2, 6)
    for dtype in ("int64", "uint16"):
        tokens = {"tokens": inputs["tokens"].astype(dtype), "targets": inputs["targets"].astype(dtype)}
        np.testing.assert_array_equal(model(tokens), model(inputs))


def test_a_negative_target_is_not_counted(model):
    inputs = batch(2, 6)
    targets = inputs["targets"].copy()
    targets[0, 2:] = -1
    losses = model({**inputs, "targets": targets}).numpy()
    assert not np.any(losses[0, 2:])
    np.testing.assert_allclose(losses[1], model(inputs)[1], rtol=1e-6)


def test_input_and_output_share_their_tables_and_projections(model):
    names = [weight.name for weight in model.weights]
    assert len(names) == len({id(weight) for weight in model.weights})
    assert sorted(name for name in names if name.startswith(("table", "projection", "classes"))) == [
        "classes",
        *(f"{kind}_{band}" for kind in ("projection", "table") for band in range(3)),
    ]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model({"tokens": np.array([[20, 20]]), "targets": np.array([[3, 3]])}))
    gradient = tf.convert_to_tensor(tape.gradient(loss, model.embedding.tables[0].value)).numpy()
    assert np.all(np.any(gradient, axis=1))  # a table that no input reads has the gradient of the output


def next_word_log_probabilities(model, tokens):
    return model.softmax.log_prob(model.hidden(tokens)[:, -1])


def test_next_word_log_probabilities_are_those_of_the_losses(model):
    inputs = batch(4, 9)
    log_probabilities = next_word_log_probabilities(model, inputs["tokens"]).numpy()
    assert log_probabilities.shape == (4, VOCABULARY)
    np.testing.assert_allclose(np.exp(log_probabilities).sum(axis=1), 1, atol=1e-5)
    last = inputs["targets"][:, -1]
    np.testing.assert_allclose(-log_probabilities[np.arange(4), last], model(inputs)[:, -1], rtol=0, atol=1e-5)


def test_every_dropout_is_a_layer_of_its_own(model):
    dropouts = [layer for layer in all_layers(model) if isinstance(layer, keras.layers.Dropout)]
    embedding, per_block, softmax = 1, 4, 1 + len(CUTOFFS)
    assert len(dropouts) == embedding + SIZES["layers"] * per_block + softmax
    assert all(layer.rate > 0 for layer in dropouts)


def test_losses_are_a_function_of_the_seed_and_the_step():
    model = small_model(**DROPOUTS, layers=1)

    def losses(seed, step):
        StatelessSeeds(model, seed, lambda: tf.constant(step, tf.int64)).begin_pass()
        return model(batch(2, 5), training=True).numpy()

    np.testing.assert_array_equal(losses(1, 10), losses(1, 10))
    assert not np.any(np.isclose(losses(1, 10), losses(1, 11)))
    assert not np.any(np.isclose(losses(1, 10), losses(2, 10)))


def test_a_batch_of_frequent_words_has_all_gradients(model):
    _, gradients = mean_loss_and_gradients(model, batch(2, 6, words=CUTOFFS[0]))
    for weight, gradient in zip(model.trainable_variables, gradients, strict=True):
        values = tf.convert_to_tensor(gradient).numpy()
        assert values.shape == weight.shape
        assert np.isfinite(values).all()
        of_a_tail = weight.name in ("table_1", "table_2", "projection_1", "projection_2")
        assert np.any(values) != of_a_tail, weight.path


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_gives_finite_float32_losses_and_gradients(policy):
    keras.config.set_dtype_policy(policy)
    model = small_model(**DROPOUTS, layers=1)
    assert {weight.dtype for weight in model.weights if "seed" not in weight.name} == {"float32"}
    assert model.hidden(batch(2, 5)["tokens"]).dtype == policy.removeprefix("mixed_")
    with tf.GradientTape() as tape:
        losses = model(batch(2, 5), training=True)
        scaled = tf.reduce_mean(losses) * 2.0**10
    assert losses.dtype == "float32"
    assert next_word_log_probabilities(model, batch(2, 5)["tokens"]).dtype == "float32"
    for gradient in tape.gradient(scaled, model.trainable_variables):
        assert gradient.dtype == "float32"
        assert np.isfinite(tf.convert_to_tensor(gradient)).all()


def test_two_replicas_equal_one_device():
    one = small_model(layers=1)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice())
    with strategy.scope():
        two = small_model(layers=1)
    two.set_weights(one.get_weights())
    inputs = batch(4, 6)

    @tf.function
    def replicas():
        def replica():
            context = tf.distribute.get_replica_context()
            mine = context.replica_id_in_sync_group * 2 + tf.range(2)
            part = {name: tf.gather(words, mine) for name, words in inputs.items()}
            loss, gradients = mean_loss_and_gradients(two, part)
            return context.all_reduce("sum", [loss / 2, *(tf.convert_to_tensor(g) / 2 for g in gradients)])

        return [strategy.experimental_local_results(value)[0] for value in strategy.run(replica)]

    loss, gradients = mean_loss_and_gradients(one, inputs)
    for ours, reference in zip(replicas(), [loss, *gradients], strict=True):
        np.testing.assert_allclose(ours, tf.convert_to_tensor(reference), rtol=0, atol=1e-6)


def test_it_learns_a_sentence():
    model = small_model(layers=1)
    sentence = np.array([[1, 40, 2, 15, 3, 59, 2, 33, 4]], "int32")
    inputs = {"tokens": sentence[:, :-1], "targets": sentence[:, 1:]}
    optimizer = keras.optimizers.Adam(1e-2)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step():
        loss, gradients = mean_loss_and_gradients(model, inputs)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    for _ in range(60):
        step()
    assert np.mean(model(inputs)) < 0.05
    assert np.argmax(next_word_log_probabilities(model, sentence[:, :5]), axis=1) == 59


def test_a_seed_decides_the_first_weights():
    def weights(seed):
        keras.utils.set_random_seed(seed)
        return np.concatenate([np.ravel(weight) for weight in small_model(layers=1).get_weights()])

    np.testing.assert_array_equal(weights(1), weights(1))
    assert not np.array_equal(weights(1), weights(2))


@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_a_saved_model_loads_tied_and_in_its_precision(policy, tmp_path):
    keras.config.set_dtype_policy(policy)
    model = small_model(**DROPOUTS, layers=1)
    model.save(tmp_path / "model.keras")
    keras.config.set_dtype_policy("float32")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(batch(2, 5)), model(batch(2, 5)))
    tokens = batch(2, 5)["tokens"]
    np.testing.assert_array_equal(
        next_word_log_probabilities(loaded, tokens), next_word_log_probabilities(model, tokens)
    )
    assert len(loaded.weights) == len(model.weights)
    assert loaded.softmax.embedding is loaded.embedding
    assert loaded.get_config() == model.get_config()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": 3}, "`heads` must divide width=32. Received: 3"),
        ({"width": 33, "heads": 3}, "`width` of positions must be even and >= 4. Received: 33"),
        ({"cutoffs": (10, 60)}, "must increase, and lie between 0 and vocabulary_size=60. Received: (10, 60)"),
    ],
)
def test_errors_say_the_rule_and_then_the_value(changes, message):
    with pytest.raises(ConfigError) as error:
        small_model(**changes)
    assert message in str(error.value)
