"""Beam search: against a plain one, ends and lengths, padding, one graph, half precision."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from trainers.tasks.translation.beam_search import BeamSearch
from trainers.tasks.translation.config import BOS, EOS, PAD, TranslatorSizes
from trainers.tasks.translation.models import build_translation_model

SIZES = {"layers": 2, "width": 16, "heads": 2, "inner": 24, "dropout": 0.0}
WORDS, SEED = 20, 0


def random_model(vocabulary, seed):
    """A model with opinions of its own: at first a model is unsure, and says what it has just said."""
    keras.utils.set_random_seed(seed)
    model = build_translation_model(vocabulary, TranslatorSizes(**SIZES))
    table, signs = model.embedding.get_weights()[0], np.random.default_rng(seed).choice([-1.0, 1.0], SIZES["width"])
    table[EOS] *= 1.5
    model.embedding.set_weights([2 * table])
    model.decoder[-1].dense_norm.gamma.assign(signs)
    return model


def sources(vocabulary, lengths, seed=0):
    """Sources of these lengths, their end counted."""
    generator = np.random.default_rng(seed)
    tokens = np.full((len(lengths), max(lengths)), PAD, "int32")
    for row, length in zip(tokens, lengths, strict=True):
        row[:length] = [*generator.integers(EOS + 1, vocabulary, length - 1), EOS]
    return tokens


@functools.cache
def compiled(model):
    tokens = tf.TensorSpec([None, None], tf.int32)
    return tf.function(
        lambda source, target: model({"source": source, "target": target}), input_signature=[tokens, tokens]
    )


def log_probabilities(model, source, prefixes):
    """Of the next subword after each of some prefixes of one length: a whole pass over all of them, in float64."""
    target = np.array([[BOS, *prefix] for prefix in prefixes], "int32")
    logits = compiled(model)(np.repeat(source[None], len(prefixes), axis=0), target).numpy()[:, -1].astype("float64")
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def plain_beam_search(model, source, beam, penalty, longest):
    """One sentence, one step after the other, to the very end, nothing cached: the best tokens and their score."""
    live, best = [((), 0.0)], ((), -np.inf)
    for length in range(1, longest + 1):
        rows = log_probabilities(model, source, [prefix for prefix, _ in live])
        candidates = [
            ((*prefix, word), log_p + row[word])
            for (prefix, log_p), row in zip(live, rows, strict=True)
            for word in range(rows.shape[1])
            if word not in (PAD, BOS) and (word == EOS or length < longest)
        ]
        candidates.sort(key=lambda candidate: -candidate[1])
        ended = [(tokens, log_p / length**penalty) for tokens, log_p in candidates[:beam] if tokens[-1] == EOS]
        best = max([best, *ended], key=lambda candidate: candidate[1])
        live = [candidate for candidate in candidates if candidate[0][-1] != EOS][:beam]
    return best


def without_padding(tokens):
    return [tuple(int(token) for token in row if token != PAD) for row in np.asarray(tokens)]


def assert_found(found, expected):
    """The same sequences, padded at their ends, and the same scores to the accuracy of float32."""
    tokens, scores = found
    assert (tokens.dtype, scores.dtype) == ("int32", "float32")
    longest = max(len(sequence) for sequence, _ in expected)
    assert tokens.numpy().tolist() == [[*sequence, *[PAD] * (longest - len(sequence))] for sequence, _ in expected]
    np.testing.assert_allclose(scores, [value for _, value in expected], rtol=0, atol=1e-5)


@pytest.fixture(scope="module")
def model():
    return random_model(WORDS, seed=SEED)


@pytest.fixture(scope="module")
def search(model):
    return BeamSearch(model, extra_length=6)


@pytest.fixture(scope="module")
def batch():
    return sources(WORDS, (7, 4, 1, 5, 2))


@pytest.mark.parametrize(("beam", "penalty"), [(1, 0.0), (1, 0.6), (2, 0.6), (4, 0.6), (4, 1.5), (60, 0.6)])
def test_it_equals_a_plain_search_without_a_cache(model, batch, beam, penalty):
    lengths = (batch != PAD).sum(axis=1)
    expected = [
        plain_beam_search(model, row[:length], beam, penalty, length + 6)
        for row, length in zip(batch, lengths, strict=True)
    ]
    assert_found(BeamSearch(model, beam, penalty, extra_length=6)(batch), expected)
    assert len({len(tokens) for tokens, _ in expected}) > 1


class Forgetful(BeamSearch):
    """A wrong variant: a hypothesis keeps the past of the one that had its place before."""

    def follow(self, past, parents):
        return past


class WithoutLength(BeamSearch):
    """A wrong variant: no length in the score."""

    def score(self, log_p, length):
        return log_p


@pytest.mark.parametrize("variant", [Forgetful, WithoutLength])
def test_a_wrong_variant_is_seen(model, search, batch, variant):
    right, wrong = search(batch), variant(model, extra_length=6)(batch)
    assert without_padding(right[0]) != without_padding(wrong[0])


class Biased(BeamSearch):
    """As if the model always gave one subword so much more."""

    word, more = EOS, -1e4

    def logits(self, tokens, past, memory):
        logits, past = super().logits(tokens, past, memory)
        return logits + self.more * tf.one_hot(self.word, tf.shape(logits)[2]), past


@pytest.mark.parametrize("extra", [0, 3])
def test_without_an_end_a_translation_is_longer_than_its_source_by_the_extra_length(model, batch, extra):
    tokens, _ = Biased(model, extra_length=extra)(batch)
    for row, found in zip(batch, without_padding(tokens), strict=True):
        assert len(found) == np.sum(row != PAD) + extra
        assert found[-1] == EOS


@pytest.mark.parametrize("word", [PAD, BOS])
def test_padding_and_beginning_are_never_part_of_a_translation(model, batch, word):
    tempted = Biased(model, extra_length=3)
    tempted.word, tempted.more = word, 5.0
    for row in tempted(batch)[0].numpy():
        (end,) = np.flatnonzero(row == EOS)
        assert not set(row[:end]) & {PAD, BOS}


def test_a_certain_end_stops_the_search_at_once(model, batch):
    steps = tf.Variable(0)

    class Counting(Biased):
        more = 40.0

        def logits(self, tokens, past, memory):
            steps.assign_add(1)
            return super().logits(tokens, past, memory)

    tokens, scores = Counting(model)(batch)
    np.testing.assert_array_equal(tokens, np.full((len(batch), 1), EOS))
    np.testing.assert_allclose(scores, 0, atol=1e-5)
    assert steps.numpy() == 1


def test_the_search_waits_for_a_late_winner(model):
    class Scripted(BeamSearch):
        """EOS at once has probability 0.5, and four times word 4, then EOS, 0.3."""

        def logits(self, tokens, past, memory):
            count = tf.shape(tokens)[2]
            first = tf.math.log([[[1e-9, 0.2, 1e-9, 0.5, 0.3]]])
            later = tf.one_hot([[tf.where(count < 5, 4, EOS)]], 5, 40.0, 0.0)
            return tf.repeat(tf.where(count == 1, first, later), self.beam, axis=1), past

    tokens, scores = Scripted(model, extra_length=6)(np.array([[EOS]]))
    np.testing.assert_array_equal(tokens, [[4, 4, 4, 4, EOS]])
    np.testing.assert_allclose(scores, np.log(0.3) / 5**0.6, rtol=1e-5)
    # After the first step, two subwords were not enough: it could be taken for lost.
    assert np.log(0.3) / 2**0.6 < np.log(0.5) < np.log(0.3) / 5**0.6


def test_a_row_of_padding_ends_and_harms_no_other(model, batch):
    with_padding = np.concatenate([np.zeros_like(batch[:1]), batch])
    search = BeamSearch(model, extra_length=0)
    tokens, scores = search(with_padding)
    assert np.isfinite(scores[1:]).all()
    assert without_padding(tokens)[1:] == without_padding(search(batch)[0])


def test_one_graph_serves_all_shapes_and_weights(batch):
    model = random_model(WORDS, seed=SEED)
    traced = []

    class Counting(BeamSearch):
        def start(self, source):
            traced.append(source)
            return super().start(source)

    search = Counting(model, extra_length=4)
    first = search(batch)
    search(batch[:2, :4].astype("int64"))
    model.set_weights(random_model(WORDS, seed=2).get_weights())
    changed, again = search(batch), BeamSearch(model, extra_length=4)(batch)
    assert len(traced) == 1
    assert without_padding(changed[0]) != without_padding(first[0])
    assert_found(changed, list(zip(without_padding(again[0]), again[1], strict=True)))


def test_half_precision_finds_translations_of_its_own_scores(batch):
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = random_model(WORDS, seed=SEED)
    tokens, scores = BeamSearch(model, extra_length=6)(batch)
    for row, found, value in zip(batch, without_padding(tokens), scores.numpy(), strict=True):
        log_p = sum(
            log_probabilities(model, row[row != PAD], [found[:length]])[0, word] for length, word in enumerate(found)
        )
        assert abs(log_p / len(found) ** 0.6 - value) < 0.1
