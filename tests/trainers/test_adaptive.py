"""Adaptive input and softmax: against torch, against themselves written out, at their edges."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch

from trainers.layers.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from trainers.system.errors import ConfigError

VOCABULARY, WIDTH, CUTOFFS, FACTOR = 60, 16, (10, 30), 4
SIZES = {"vocabulary_size": VOCABULARY, "width": WIDTH, "cutoffs": CUTOFFS, "factor": FACTOR}


def hidden_and_targets(*shape, words=VOCABULARY):
    generator = np.random.default_rng(0)
    return generator.normal(size=(*shape, WIDTH)).astype("float32"), generator.integers(0, words, shape).astype("int32")


def softmax_like(reference):
    """Ours, with the weights of torch's."""
    softmax = AdaptiveSoftmax(**SIZES)
    softmax.build()
    head = reference.head.weight.detach().numpy()
    softmax.tables[0].assign(head[: CUTOFFS[0]])
    softmax.classes.assign(head[CUTOFFS[0] :])
    for number, (projection, table) in enumerate(reference.tail, start=1):
        softmax.projections[number].assign(projection.weight.detach().numpy())
        softmax.tables[number].assign(table.weight.detach().numpy())
    return softmax


def dense(gradients):
    return [tf.convert_to_tensor(gradient).numpy() for gradient in gradients]


@pytest.fixture
def reference():
    torch.manual_seed(0)
    return torch.nn.AdaptiveLogSoftmaxWithLoss(WIDTH, VOCABULARY, list(CUTOFFS), div_value=FACTOR)


@pytest.fixture
def embedding():
    layer = AdaptiveEmbedding(**SIZES)
    layer.build()
    return layer


def test_losses_and_gradients_equal_those_of_torch(reference):
    softmax = softmax_like(reference)
    hidden, targets = hidden_and_targets(40)
    theirs = torch.tensor(hidden, requires_grad=True)
    output = reference(theirs, torch.tensor(targets).long()).output
    output.sum().neg().backward()
    ours = tf.constant(hidden)
    with tf.GradientTape() as tape:
        tape.watch(ours)
        losses = softmax(ours, targets)
    np.testing.assert_allclose(losses, -output.detach().numpy(), rtol=0, atol=1e-5)

    tails = range(1, 1 + len(CUTOFFS))
    weights = [softmax.tables[0], softmax.classes]
    weights += [softmax.projections[i] for i in tails] + [softmax.tables[i] for i in tails]
    ours_gradient, *gradients = dense(tape.gradient(losses, [ours, *(weight.value for weight in weights)]))
    expected = [reference.head.weight.grad[: CUTOFFS[0]], reference.head.weight.grad[CUTOFFS[0] :]]
    expected += [tail[0].weight.grad for tail in reference.tail] + [tail[1].weight.grad for tail in reference.tail]
    np.testing.assert_allclose(ours_gradient, theirs.grad.numpy(), rtol=0, atol=1e-5)
    for gradient, of_torch in zip(gradients, expected, strict=True):
        assert np.abs(gradient).max() > 0.01
        np.testing.assert_allclose(gradient, of_torch.numpy(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("cutoffs", [(), (10,), (10, 30), (1, 2)], ids=str)
def test_probabilities_sum_to_one_and_are_those_of_the_losses(cutoffs):
    softmax = AdaptiveSoftmax(VOCABULARY, WIDTH, cutoffs)
    hidden, _ = hidden_and_targets(1)
    every_word = np.arange(VOCABULARY, dtype="int32")
    losses = softmax(np.repeat(hidden, VOCABULARY, axis=0), every_word)
    log_probabilities = softmax.log_prob(hidden)[0]
    np.testing.assert_allclose(np.exp(log_probabilities).sum(), 1, atol=1e-5)
    np.testing.assert_allclose(losses, -log_probabilities, rtol=0, atol=1e-5)
    if not cutoffs:
        expected = tf.nn.log_softmax(hidden @ softmax.get_weights()[0].T)[0]
        np.testing.assert_allclose(log_probabilities, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("cutoffs", [(), CUTOFFS], ids=str)
def test_embedding_projects_the_rows_of_each_band(cutoffs):
    embedding = AdaptiveEmbedding(**SIZES | {"cutoffs": cutoffs})
    tokens = np.array([[0, 9, 10, 29], [30, 59, 30, 3]], "int32")
    vectors = embedding(tokens)
    assert vectors.shape == (2, 4, WIDTH)
    edges = [0, *cutoffs, VOCABULARY]
    for token, vector in zip(tokens.ravel(), np.reshape(vectors, [-1, WIDTH]), strict=True):
        band = np.searchsorted(cutoffs, token, side="right")
        table, projection = embedding.tables[band].numpy(), embedding.projections[band].numpy()
        assert table.shape == (edges[band + 1] - edges[band], WIDTH // FACTOR**band)
        np.testing.assert_allclose(vector, table[token - edges[band]] @ projection, rtol=0, atol=1e-6)


def test_a_tied_softmax_uses_the_tables_and_projections_of_the_embedding(embedding):
    hidden, targets = hidden_and_targets(20)
    tied, free = AdaptiveSoftmax(**SIZES, embedding=embedding), AdaptiveSoftmax(**SIZES)
    tied.build()
    free.build()
    free.classes.assign(tied.classes)
    for number in range(len(free.bands)):
        free.tables[number].assign(embedding.tables[number])
        if number > 0:
            free.projections[number].assign(embedding.projections[number])
    np.testing.assert_array_equal(tied(hidden, targets), free(hidden, targets))
    assert len(tied.trainable_variables) == len(embedding.trainable_variables) + 1


def test_a_tail_that_no_target_is_in_is_not_computed():
    softmax = AdaptiveSoftmax(**SIZES)
    hidden, targets = hidden_and_targets(12, words=CUTOFFS[1])
    losses = softmax(hidden, targets)
    for weight in (softmax.tables[2], softmax.projections[2]):
        weight.assign(np.full(weight.shape, np.nan))
    np.testing.assert_array_equal(softmax(hidden, targets), losses)
    with_rare_word = softmax(hidden, np.append(targets[:-1], CUTOFFS[1]).astype("int32"))
    np.testing.assert_array_equal(with_rare_word[:-1], losses[:-1])
    assert np.isnan(with_rare_word[-1])


def test_weights_of_absent_bands_have_gradients_of_zero(embedding):
    softmax = AdaptiveSoftmax(**SIZES, embedding=embedding)
    tokens = np.arange(CUTOFFS[0], dtype="int32")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(softmax(embedding(tokens), tokens))
    gradients = dense(tape.gradient(loss, softmax.trainable_variables))
    for weight, gradient in zip(softmax.trainable_variables, gradients, strict=True):
        assert gradient.shape == weight.shape
        assert np.isfinite(gradient).all()
        assert np.any(gradient) == (weight.name in ("table_0", "projection_0", "classes")), weight.path


def test_negative_targets_count_nothing():
    softmax = AdaptiveSoftmax(**SIZES)
    hidden, targets = hidden_and_targets(2, 6)
    losses = softmax(hidden, targets).numpy()
    ignored = np.array([[True, False, False, True, False, True], [False] * 6])
    hidden[ignored] = np.inf  # nor does it matter what stands there
    variable = tf.Variable(hidden)
    with tf.GradientTape() as tape:
        some = softmax(variable, np.where(ignored, -1, targets).astype("int32"))
    np.testing.assert_array_equal(some, np.where(ignored, 0, losses))
    gradient = tape.gradient(some, variable).numpy()
    np.testing.assert_array_equal(np.any(gradient, axis=-1), ~ignored)
    np.testing.assert_array_equal(softmax(hidden, np.full((2, 6), -1, "int32")), np.zeros((2, 6)))


def test_unknown_shapes_and_loops_change_nothing(embedding):
    softmax = AdaptiveSoftmax(**SIZES, embedding=embedding)
    softmax.build()
    _, tokens = hidden_and_targets(4, 3, 5)

    def losses(tokens):
        return softmax(embedding(tokens), tokens)

    @tf.function(input_signature=[tf.TensorSpec([None, None, None], tf.int32)])
    def summed(batches):
        total, gradients = tf.constant(0.0), [tf.zeros(weight.shape) for weight in softmax.trainable_variables]
        for batch in batches:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(losses(batch))
            total += loss
            gradients = tf.nest.map_structure(tf.add, gradients, tape.gradient(loss, softmax.trainable_variables))
        return total, gradients

    total, gradients = summed(tokens)
    with tf.GradientTape() as tape:
        expected = tf.reduce_sum(losses(tokens))
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    for ours, whole in zip(gradients, dense(tape.gradient(expected, softmax.trainable_variables)), strict=True):
        np.testing.assert_allclose(ours, whole, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("policy", "tolerance"), [("mixed_float16", 0.02), ("mixed_bfloat16", 0.1)])
def test_half_precision_is_near_and_its_softmax_float32(policy, tolerance, embedding):
    half = AdaptiveEmbedding(**SIZES, dtype=policy)
    softmax = AdaptiveSoftmax(**SIZES, embedding=half, dtype=policy)
    _, tokens = hidden_and_targets(4, 5)
    vectors = half(tokens)
    assert vectors.dtype == policy.removeprefix("mixed_")
    losses = softmax(vectors, tokens)
    assert losses.dtype == softmax.log_prob(vectors).dtype == "float32"
    assert {weight.dtype for weight in softmax.weights} == {"float32"}
    full = AdaptiveSoftmax(**SIZES, embedding=embedding)
    full(embedding(tokens), tokens)
    full.set_weights(softmax.get_weights())
    np.testing.assert_allclose(losses, full(embedding(tokens), tokens), rtol=0, atol=tolerance)


def test_dropout_is_of_the_hidden_vectors_and_of_the_projections():
    softmax = AdaptiveSoftmax(**SIZES, dropout=0.5)
    hidden, targets = hidden_and_targets(200)
    plain, dropped = softmax(hidden, targets), softmax(hidden, targets, training=True)
    assert not np.any(np.isclose(plain, dropped, atol=1e-7))
    softmax.hidden_dropout.rate = 0
    only_tails = softmax(hidden, targets, training=True)
    changed = ~np.isclose(plain, only_tails, atol=1e-7)
    in_tail = targets >= CUTOFFS[0]
    assert not np.any(changed & ~in_tail)
    assert changed[in_tail].mean() > 0.4  # the last tail is one channel wide: half of its tokens keep it, doubled


def test_tables_start_normal_and_projections_as_xavier():
    embedding = AdaptiveEmbedding(4000, 64, (1000,))
    embedding.build()
    for table, width in zip(embedding.tables, (64, 16), strict=True):
        np.testing.assert_allclose(table.numpy().std(), width**-0.5, rtol=0.02)
    for projection, width in zip(embedding.projections, (64, 16), strict=True):
        bound = (6 / (width + 64)) ** 0.5
        assert 0.95 * bound < np.abs(projection.numpy()).max() <= bound


def test_a_saved_model_of_tied_layers_is_tied(tmp_path):
    tokens, targets = (keras.Input((None,), dtype="int32") for _ in range(2))
    embedding = AdaptiveEmbedding(**SIZES)
    softmax = AdaptiveSoftmax(**SIZES, dropout=0.1, embedding=embedding)
    model = keras.Model([tokens, targets], softmax(embedding(tokens), targets))
    assert model.output.shape == (None, None)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    _, words = hidden_and_targets(2, 3)
    np.testing.assert_array_equal(loaded([words, words]), model([words, words]))
    assert len(loaded.weights) == len(model.weights) == 7
    assert loaded.layers[-1].embedding is loaded.get_layer(embedding.name)
    assert loaded.layers[-1].dropout == 0.1


def test_a_saved_model_of_untied_layers_loads(tmp_path):
    hidden, targets = keras.Input((None, WIDTH)), keras.Input((None,), dtype="int32")
    model = keras.Model([hidden, targets], AdaptiveSoftmax(**SIZES)(hidden, targets))
    model.save(tmp_path / "model.keras")
    batch = list(hidden_and_targets(2, 3))
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras")(batch), model(batch))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cutoffs": (30, 10)}, "`cutoffs` must increase, and lie between 0 and vocabulary_size=60. Received: (30"),
        ({"cutoffs": (10, 10)}, "Received: (10, 10)"),
        ({"cutoffs": (0, 10)}, "Received: (0, 10)"),
        ({"cutoffs": (10, 60)}, "Received: (10, 60)"),
        ({"width": 8}, "must be >= factor ** 2, so that the last band has a width. Received: {'width': 8, 'factor"),
    ],
)
@pytest.mark.parametrize("layer", [AdaptiveEmbedding, AdaptiveSoftmax])
def test_errors_say_the_rule_and_then_the_value(layer, changes, message):
    with pytest.raises(ConfigError) as error:
        layer(**SIZES | changes)
    assert message in str(error.value)


def test_the_softmax_takes_only_an_embedding_of_its_own_bands(embedding):
    with pytest.raises(ConfigError, match="`embedding` must have the bands of the softmax"):
        AdaptiveSoftmax(VOCABULARY, WIDTH, (10, 31), embedding=embedding)
