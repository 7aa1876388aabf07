"""The parts of the Transformer: against torch, against their formulas, first weights, files and errors."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch

from trainers.layers.transformer import AttentionXavier, DecoderBlock, SinusoidalPositions, TransformerBlock
from trainers.system.errors import ConfigError
from trainers.system.private import all_layers

WIDTH, HEADS, INNER = 16, 4, 40
SIZES = {"width": WIDTH, "heads": HEADS, "inner": INNER}


def vectors(*shape):
    return np.random.default_rng(0).normal(size=(*shape, WIDTH)).astype("float32")


def positions_of_tensor2tensor(length, width):
    """In float64: channel i is sin(position / 10000^(i / (width / 2 - 1))), and channel i + width / 2 its cosine."""
    half = width // 2
    angles = np.arange(length)[:, None] / 10_000 ** (np.arange(half) / (half - 1))
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def copy_attention(attention, reference):
    """Gives Keras' attention the weights of torch's."""
    of_torch = {name: value.detach().numpy() for name, value in reference.named_parameters()}
    heads, width = attention.num_heads, reference.embed_dim
    in_weights = of_torch["in_proj_weight"].reshape(3, width, width)
    in_biases = of_torch["in_proj_bias"].reshape(3, heads, -1)
    inputs = (attention.query_dense, attention.key_dense, attention.value_dense)
    for dense, weight, bias in zip(inputs, in_weights, in_biases, strict=True):
        dense.set_weights([weight.T.reshape(width, heads, -1), bias])
    attention.output_dense.set_weights(
        [of_torch["out_proj.weight"].T.reshape(heads, -1, width), of_torch["out_proj.bias"]]
    )


def copy_block(block, reference):
    """Gives a block of ours the weights of torch's encoder or decoder layer."""
    norms = {"attention_norm": "norm1", "dense_norm": "norm2"}
    copy_attention(block.attention, reference.self_attn)
    if isinstance(block, DecoderBlock):
        norms = {"attention_norm": "norm1", "memory_norm": "norm2", "dense_norm": "norm3"}
        copy_attention(block.memory_attention, reference.multihead_attn)
    for ours, theirs in ({"widen": "linear1", "narrow": "linear2"} | norms).items():
        weight, bias = (value.detach().numpy() for value in getattr(reference, theirs).parameters())
        getattr(block, ours).set_weights([weight.T, bias])


def block_like(reference, **options):
    """Ours, with the weights of torch's layer."""
    if isinstance(reference, torch.nn.TransformerDecoderLayer):
        block = DecoderBlock(**SIZES, **options)
        block.build((None, None, WIDTH), (None, None, WIDTH))
    else:
        block = TransformerBlock(**SIZES, **options)
        block.build((None, None, WIDTH))
    copy_block(block, reference)
    return block


def torch_layer(normalize_first, kind=torch.nn.TransformerEncoderLayer):
    torch.manual_seed(0)
    layer = kind(WIDTH, HEADS, INNER, dropout=0.0, batch_first=True, norm_first=normalize_first)
    # It starts with biases of 0 and norms of 1, which would hide a mistake in them.
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return layer


# Without dropout Keras' attention is another code path, so both are compared.
@pytest.mark.parametrize("attention_dropout", [0.0, 0.1])
@pytest.mark.parametrize("normalize_first", [True, False])
@pytest.mark.parametrize("kind", ["causal", "free", "decoder"])
def test_block_equals_that_of_torch(kind, normalize_first, attention_dropout):
    decodes, options = kind == "decoder", {} if kind == "decoder" else {"causal": kind == "causal"}
    layers = (torch.nn.TransformerEncoderLayer, torch.nn.TransformerDecoderLayer)
    reference = torch_layer(normalize_first, layers[decodes])
    block = block_like(reference, normalize_first=normalize_first, attention_dropout=attention_dropout, **options)
    arrays, real = [vectors(3, 7), vectors(3, 5)[:, ::-1].copy()], np.arange(5) < np.array([[5], [3], [1]])
    arrays = arrays if decodes else arrays[:1]
    theirs = [torch.tensor(x, requires_grad=True) for x in arrays]
    masks = {"tgt_mask" if decodes else "src_mask": None}
    if kind != "free":
        masks = dict.fromkeys(masks, torch.nn.Transformer.generate_square_subsequent_mask(7))
    memory = {"memory_key_padding_mask": torch.tensor(~real)} if decodes else {}
    expected = reference(*theirs, **masks, **memory)
    (expected**2).sum().backward()
    ours = [tf.constant(x) for x in arrays]
    with tf.GradientTape() as tape:
        tape.watch(ours)
        outputs = block(*ours, **({"memory_mask": real[:, None]} if decodes else {}))
        loss = tf.reduce_sum(outputs**2)
    np.testing.assert_allclose(outputs, expected.detach().numpy(), rtol=1e-5, atol=2e-5)
    for gradient, tensor in zip(tape.gradient(loss, ours), theirs, strict=True):
        largest = np.abs(tensor.grad.numpy()).max()
        np.testing.assert_allclose(gradient, tensor.grad.numpy(), rtol=0, atol=1e-5 * largest)


@pytest.mark.parametrize("attention_dropout", [0.0, 0.1])
def test_a_padding_mask_equals_that_of_torch(attention_dropout):
    reference = torch_layer(normalize_first=False)
    block = block_like(reference, normalize_first=False, causal=False, attention_dropout=attention_dropout)
    x, real = vectors(3, 7), np.arange(7) < np.array([[7], [4], [1]])
    expected = reference(torch.tensor(x), src_key_padding_mask=torch.tensor(~real)).detach().numpy()
    outputs = block(x, attention_mask=real[:, None]).numpy()
    np.testing.assert_allclose(outputs[real], expected[real], rtol=1e-5, atol=2e-5)
    assert not np.allclose(outputs[real], block(x).numpy()[real], atol=0.01)


@pytest.mark.parametrize("normalize_first", [True, False])
def test_steps_with_a_cache_equal_the_whole_sequence(normalize_first):
    block = block_like(torch_layer(normalize_first, torch.nn.TransformerDecoderLayer), normalize_first=normalize_first)
    batch, sequences, length = 2, 3, 6
    x, memory = vectors(batch, sequences, length), vectors(batch, 4) * 2
    mask = np.array([[[True, True, True, True]], [[True, True, False, False]]])
    of_each = [np.repeat(array, sequences, axis=0) for array in (memory, mask)]
    whole = block(x.reshape(-1, length, WIDTH), of_each[0], memory_mask=of_each[1]).numpy().reshape(x.shape)
    cache, of_memory = block.empty_cache(batch), block.memory_attention.keys_and_values(memory)
    for position in range(length):
        own = np.tile(np.eye(sequences, dtype=bool), (batch, 1, position + 1))
        outputs, cache = block.step(x[:, :, position], cache, own, of_memory, mask)
        np.testing.assert_allclose(outputs, whole[:, :, position], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_the_softmax_of_an_attention_is_in_float32(policy):
    block = TransformerBlock(**SIZES, attention_dropout=0.1, dtype=policy)
    x = tf.cast(vectors(2, 500), policy.removeprefix("mixed_"))
    block.build(x.shape)
    outputs, weights = block.attention(x, x, return_attention_scores=True)
    assert (outputs.dtype, weights.dtype) == (policy.removeprefix("mixed_"), "float32")
    np.testing.assert_allclose(tf.reduce_sum(weights, axis=-1), 1, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "shapes", "rates"),
    [(TransformerBlock, 1, [0.1, 0.2, 0.3, 0.3]), (DecoderBlock, 2, [0.1, 0.2, 0.2, 0.3, 0.3, 0.3])],
)
def test_every_place_of_a_dropout_has_its_rate(kind, shapes, rates):
    block = kind(**SIZES, dropout=0.3, attention_dropout=0.2, activation_dropout=0.1)
    block.build(*[(None, None, WIDTH)] * shapes)
    dropouts = [layer for layer in all_layers(block) if isinstance(layer, keras.layers.Dropout)]
    assert sorted(layer.rate for layer in dropouts) == rates
    assert (block.attention.dropout, block.activation_dropout.rate) == (0.2, 0.1)


@pytest.mark.parametrize("place", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_acts_in_training_only(place):
    block = TransformerBlock(**SIZES, **{place: 0.5})
    x = vectors(2, 5)
    np.testing.assert_array_equal(block(x), block(x))
    assert not np.allclose(block(x, training=True), block(x))


def test_a_residual_passes_all_dropout():
    block = TransformerBlock(**SIZES, dropout=0.999999)
    x = vectors(2, 5)
    np.testing.assert_array_equal(block(x, training=True), x)


@pytest.mark.parametrize("heads", [1, 4, 64])
def test_attention_starts_as_xavier_with_queries_keys_and_values_as_one_matrix(heads):
    width = 64
    block = TransformerBlock(width, heads, 2 * width)
    block.build((None, None, width))
    attention = block.attention
    inputs = [dense.kernel.numpy() for dense in (attention.query_dense, attention.key_dense, attention.value_dense)]
    output = attention.output_dense.kernel.numpy()
    for kernel, rows in (*((kernel, 3 * width) for kernel in inputs), (output, width)):
        bound = (6 / (width + rows)) ** 0.5
        assert 0.97 * bound < np.abs(kernel).max() <= bound
    assert not np.array_equal(inputs[0], inputs[1])
    for dense in (block.widen, block.narrow):
        bound = (6 / (3 * width)) ** 0.5
        assert 0.97 * bound < np.abs(dense.kernel.numpy()).max() <= bound
    assert not any(np.any(weight) for weight in block.weights if weight.name == "bias")


def test_attention_xavier_keeps_its_seed():
    initializer = AttentionXavier(WIDTH, HEADS, seed=3)
    again = AttentionXavier.from_config(initializer.get_config())
    np.testing.assert_array_equal(initializer((WIDTH, HEADS, 4)), again((WIDTH, HEADS, 4)))


@pytest.mark.parametrize("length", [5, 700])
def test_positions_are_sines_and_cosines_of_any_length(length):
    added = SinusoidalPositions()(np.zeros((1, length, WIDTH), "float32"))[0]
    np.testing.assert_allclose(added, positions_of_tensor2tensor(length, WIDTH), rtol=0, atol=1e-4)


def test_positions_are_added_and_may_start_later():
    x = vectors(2, 9)
    whole = SinusoidalPositions()(x)
    np.testing.assert_allclose(SinusoidalPositions()(x[:, 4:], start=4), whole[:, 4:], rtol=0, atol=1e-6)
    np.testing.assert_allclose(whole - x, np.broadcast_to((whole - x)[:1], x.shape), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 1e-3), ("bfloat16", 4e-3)])
def test_positions_are_exact_in_half_precision(dtype, tolerance):
    added = SinusoidalPositions(dtype=dtype)(tf.zeros([1, 3000, WIDTH], dtype))[0]
    assert added.dtype == dtype
    expected = positions_of_tensor2tensor(3000, WIDTH)
    np.testing.assert_allclose(tf.cast(added, tf.float32), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("kind", [TransformerBlock, DecoderBlock])
def test_a_saved_model_of_the_parts_loads(policy, kind, tmp_path):
    keras.config.set_dtype_policy(policy)
    inputs = [keras.Input((None, WIDTH)) for _ in range(1 if kind is TransformerBlock else 2)]
    block = kind(**SIZES, dropout=0.3, attention_dropout=0.2, activation_dropout=0.1, normalize_first=False)
    model = keras.Model(inputs, block(SinusoidalPositions()(inputs[0]), *inputs[1:]))
    model.save(tmp_path / "model.keras")
    keras.config.set_dtype_policy("float32")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.layers[-1].get_config() == block.get_config()
    assert loaded.output.dtype == policy.removeprefix("mixed_")
    x = [vectors(2, 5), vectors(2, 3)][: len(inputs)]
    np.testing.assert_array_equal(loaded(x), model(x))


def test_errors_of_sizes_and_shapes():
    with pytest.raises(ConfigError, match="`heads` must divide width=16. Received: 5"):
        TransformerBlock(**SIZES | {"heads": 5})
    with pytest.raises(ConfigError, match="vectors must be of width=8. Received: "):
        TransformerBlock(8, 2, 8)(vectors(1, 2))
    with pytest.raises(ConfigError, match="the memory must be of width=16. Received: "):
        DecoderBlock(**SIZES)(vectors(1, 2), np.zeros((1, 2, 8), "float32"))
    with pytest.raises(ConfigError, match="`width` of positions must be even and >= 4. Received: 5"):
        SinusoidalPositions()(np.zeros((1, 2, 5), "float32"))
