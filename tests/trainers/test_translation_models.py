"""The translation model: against torch, padding, shared weights, steps, losses (see test_sequence_models.py)."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch

from tests.trainers.test_transformer import copy_block, positions_of_tensor2tensor
from trainers.tasks.translation.config import BOS, EOS, PAD, TranslatorSizes
from trainers.tasks.translation.models import (
    build_translation_model,
    smoothed_cross_entropy,
)

VOCABULARY = 40
SIZES = {"layers": 2, "width": 32, "heads": 4, "inner": 48, "dropout": 0.0}
DROPOUTS = {"dropout": 0.3, "attention_dropout": 0.1, "activation_dropout": 0.1}
LENGTHS = (6, 3, 1)


def small_model(**options):
    return build_translation_model(VOCABULARY, TranslatorSizes(**SIZES | options))


def batch(lengths=LENGTHS, positions=5):
    """Sources of these lengths, their end counted, and targets that are all of one length."""
    generator = np.random.default_rng(0)
    source = np.full((len(lengths), max(lengths)), PAD, "int32")
    for row, length in zip(source, lengths, strict=True):
        row[:length] = [*generator.integers(EOS + 1, VOCABULARY, length - 1), EOS]
    target = generator.integers(EOS + 1, VOCABULARY, (len(lengths), positions)).astype("int32")
    target[:, 0] = BOS
    return {"source": source, "target": target}


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    return small_model(**DROPOUTS)


@pytest.fixture(scope="module")
def without_dropout():
    # With dropout of its weights, Keras warns of an attention to a single position.
    keras.utils.set_random_seed(0)
    return small_model()


def torch_transformer():
    """With random biases and norms, which would hide a mistake, and no norm after the last block."""
    torch.manual_seed(0)
    sizes = (SIZES["width"], SIZES["heads"], SIZES["layers"], SIZES["layers"], SIZES["inner"])
    reference = torch.nn.Transformer(*sizes, dropout=0.0, batch_first=True)
    reference.encoder.norm = reference.decoder.norm = None
    for parameter in reference.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return reference


def torch_logits(reference, table, inputs):
    def embed(tokens):
        x = table[torch.tensor(tokens, dtype=torch.long)] * table.shape[1] ** 0.5
        return x + torch.tensor(positions_of_tensor2tensor(tokens.shape[1], table.shape[1]), dtype=torch.float32)

    padding = torch.tensor(inputs["source"] == PAD)
    hidden = reference(
        embed(inputs["source"]),
        embed(inputs["target"]),
        tgt_mask=torch.nn.Transformer.generate_square_subsequent_mask(inputs["target"].shape[1]),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
        tgt_is_causal=True,
    )
    return hidden @ table.T


# Without dropout Keras' attention is another code path, so both are compared.
@pytest.mark.parametrize("attention_dropout", [0.0, 0.1])
def test_model_equals_that_of_torch(attention_dropout):
    model, reference, inputs = small_model(attention_dropout=attention_dropout), torch_transformer(), batch()
    layers = (*reference.encoder.layers, *reference.decoder.layers)
    for block, layer in zip((*model.encoder, *model.decoder), layers, strict=True):
        copy_block(block, layer)
    table = torch.tensor(model.embedding.get_weights()[0], requires_grad=True)
    expected = torch_logits(reference, table, inputs)
    (expected**2).mean().backward()
    with tf.GradientTape() as tape:
        logits = model(inputs)
        loss = tf.reduce_mean(logits**2)
    np.testing.assert_allclose(logits, expected.detach().numpy(), rtol=0, atol=2e-5)
    gradient = tf.convert_to_tensor(tape.gradient(loss, model.embedding.embeddings.value)).numpy()
    np.testing.assert_allclose(gradient, table.grad.numpy(), rtol=0, atol=1e-5 * np.abs(gradient).max())


def test_padding_of_the_source_does_not_matter(without_dropout):
    model, inputs = without_dropout, batch()
    wider = {**inputs, "source": np.pad(inputs["source"], [(0, 0), (0, 9)], constant_values=PAD)}
    np.testing.assert_allclose(model(wider), model(inputs), rtol=0, atol=1e-5)
    for row, length in enumerate(LENGTHS):
        alone = {"source": inputs["source"][row : row + 1, :length], "target": inputs["target"][row : row + 1]}
        np.testing.assert_allclose(model(alone)[0], model(inputs)[row], rtol=0, atol=1e-5)


def test_a_row_of_padding_gives_numbers(model):
    assert np.isfinite(model({"source": np.zeros((1, 4), "int32"), "target": np.zeros((1, 3), "int32")})).all()


def test_embeddings_start_normal():
    model = build_translation_model(2000, TranslatorSizes(layers=1, width=64, heads=2, inner=8, dropout=0.0))
    table = model.embedding.get_weights()[0]
    assert abs(table.mean()) < 0.001
    assert abs(table.std() / 64**-0.5 - 1) < 0.01


def test_one_matrix_serves_source_target_and_output(model):
    names = [weight.path for weight in model.weights]
    assert len(names) == len({id(weight) for weight in model.weights})
    assert sum("embedding" in name for name in names) == 1
    inputs, read = batch(), 20
    assert read not in inputs["source"]
    with tf.GradientTape() as tape:
        # Of the first position, which sees no word of the target but BOS.
        logit = model({name: tokens[:1] for name, tokens in inputs.items()})[0, 0, read]
    gradient = tf.convert_to_tensor(tape.gradient(logit, model.embedding.embeddings.value)).numpy()
    assert set(np.flatnonzero(gradient.any(axis=1))) == {*inputs["source"][0], BOS, read}


def test_every_weight_has_a_gradient(model):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(batch(), training=True) ** 2)
    for weight, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True):
        assert np.any(tf.convert_to_tensor(gradient)), weight.path


def steps_with_parents(model, source, tokens, parents):
    """The logits after every position, of targets each of which goes on from that of its parent."""
    memory, past = model.start(source, tokens.shape[1])
    for position in range(tokens.shape[2]):
        logits, past = model.step(tokens[:, :, position], past, memory)
        yield logits.numpy()
        past = past.follow(parents[position])


def test_steps_equal_the_whole_target_whatever_it_goes_on_from(without_dropout):
    model, source, targets, positions = without_dropout, batch()["source"], 3, 6
    generator = np.random.default_rng(1)
    tokens = generator.integers(EOS, VOCABULARY, (len(source), targets, positions)).astype("int32")
    parents = generator.integers(0, targets, (positions, len(source), targets))
    whole = tokens[:, :, :1]
    for position, logits in enumerate(steps_with_parents(model, source, tokens, parents)):
        inputs = {"source": np.repeat(source, targets, axis=0), "target": whole.reshape(-1, position + 1)}
        np.testing.assert_allclose(
            logits, model(inputs).numpy()[:, -1].reshape(logits.shape), rtol=0, atol=1e-5, err_msg=str(position)
        )
        if position + 1 < positions:
            past = np.take_along_axis(whole, parents[position][:, :, None], axis=1)
            whole = np.concatenate([past, tokens[:, :, position + 1 : position + 2]], axis=2)
    assert not np.array_equal(whole, tokens)


@pytest.mark.parametrize(("policy", "tolerance"), [("mixed_float16", 0.02), ("mixed_bfloat16", 0.1)])
def test_half_precision_steps_like_itself(policy, tolerance):
    keras.config.set_dtype_policy(policy)
    half, inputs = small_model(), batch()
    tokens, stay = inputs["target"][:, None], np.zeros((5, len(LENGTHS), 1), "int32")
    stepped = np.stack([step[:, 0] for step in steps_with_parents(half, inputs["source"], tokens, stay)], axis=1)
    np.testing.assert_allclose(stepped, half(inputs), rtol=0, atol=tolerance)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_gradients_of_a_frequent_subword_are_summed_in_float32(policy):
    keras.config.set_dtype_policy(policy)
    model = small_model(layers=1)
    many = 5000
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(tf.cast(model.embedding(np.full((1, many), 7)), tf.float32))
    gradient = tf.convert_to_tensor(tape.gradient(total, model.embedding.embeddings.value))
    np.testing.assert_array_equal(gradient[7], np.full(SIZES["width"], many))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_losses_and_their_gradients_equal_those_of_torch(smoothing):
    generator = np.random.default_rng(0)
    logits = 3 * generator.normal(size=(4, 6, VOCABULARY)).astype("float32")
    targets = generator.integers(1, VOCABULARY, (4, 6)).astype("int32")
    targets[0, 2:] = PAD
    theirs = torch.tensor(logits, requires_grad=True)
    expected = torch.nn.functional.cross_entropy(
        theirs.reshape(-1, VOCABULARY),
        torch.tensor(targets, dtype=torch.long).reshape(-1),
        label_smoothing=smoothing,
        ignore_index=PAD,
        reduction="none",
    )
    expected.sum().backward()
    ours = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(ours)
        losses = smoothed_cross_entropy(targets, ours, smoothing)
    assert losses.dtype == "float32"
    np.testing.assert_allclose(losses, expected.detach().numpy().reshape(4, 6), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(tape.gradient(losses, ours), theirs.grad.numpy(), rtol=0, atol=1e-6)
    assert not np.any(losses[0, 2:])
