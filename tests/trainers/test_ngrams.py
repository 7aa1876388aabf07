"""The baselines are proper distributions, and the ones they claim to be."""

import math
from collections import Counter

import numpy as np
import pytest

from trainers.tasks.language.ngrams import (
    KneserNey,
    bigram_perplexity,
    discounts_of,
    unigram_loss,
    unigram_probabilities,
)

SIZE, END = 30, 2
GENERATOR = np.random.default_rng(0)
# Words follow each other by a rule with exceptions; 28 and 29 never appear, 27 only at the end.
CHAIN = np.cumsum(GENERATOR.choice([1, 1, 1, 2, 3, 7], 900)) % 27
TRAIN, VALIDATION = np.append(CHAIN[:600], 27).astype(np.int32), CHAIN[600:].astype(np.int32)


def test_unigram_probabilities_sum_to_one_and_follow_the_counts():
    probabilities = unigram_probabilities(np.array([0, 0, 1], np.int32), 4)
    np.testing.assert_allclose(probabilities, np.array([2.1, 1.1, 0.1, 0.1]) / 3.4)
    assert unigram_probabilities(TRAIN, SIZE).sum() == pytest.approx(1)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_word_frequencies_is_the_smallest_without_context(smoothing):
    """On the text that the frequencies come from: no other prediction that is the same for every word has less."""

    def loss(probabilities):
        logs = np.log(probabilities)
        return -(1 - smoothing) * logs[TRAIN].mean() - smoothing * logs.mean()

    smallest = unigram_loss(TRAIN, TRAIN, SIZE, smoothing)
    frequencies = (1 - smoothing) * unigram_probabilities(TRAIN, SIZE) + smoothing / SIZE
    assert smallest == pytest.approx(loss(frequencies), rel=1e-12)
    others = frequencies * np.exp(np.random.default_rng(0).normal(0, 0.1, (100, SIZE)))
    assert all(loss(other / other.sum()) > smallest for other in others)


@pytest.mark.parametrize("text", [TRAIN, TRAIN[:3], np.array([1, 1], np.int32), np.arange(30, dtype=np.int32)])
def test_bigram_probabilities_sum_to_one_after_every_word(text):
    model = KneserNey(text, SIZE)
    words = np.arange(SIZE)
    for before in range(SIZE):
        probabilities = model.probabilities(np.full(SIZE, before), words)
        assert probabilities.min() > 0
        assert probabilities.sum() == pytest.approx(1)


def kneser_ney(text, before, word):
    """The definition, pair by pair."""
    pairs = Counter(zip(text[:-1].tolist(), text[1:].tolist(), strict=True))
    after = Counter(second for _, second in pairs)

    def smoothed(counts, key, below):
        discounts = discounts_of(np.array(list(counts.values())))
        taken = sum(discounts[min(count, 3)] for count in counts.values())
        own = counts[key] - discounts[min(counts[key], 3)]
        return (own + taken * below) / counts.total()

    below = smoothed(after, word, 1 / SIZE)
    follow = Counter({second: count for (first, second), count in pairs.items() if first == before})
    if not follow:
        return below
    discounts = discounts_of(np.array(list(pairs.values())))
    taken = sum(discounts[min(count, 3)] for count in follow.values())
    return (follow[word] - discounts[min(follow[word], 3)] + taken * below) / follow.total()


def test_bigram_probabilities_are_those_of_the_definition():
    model = KneserNey(TRAIN, SIZE)
    cases = [(0, 1), (1, 0), (3, 4), (3, 10), (26, 27), (27, 0), (28, 5), (5, 29), (28, 29)]
    before, words = np.array(cases).T
    expected = [kneser_ney(TRAIN, *case) for case in cases]
    np.testing.assert_allclose(model.probabilities(before, words), expected, rtol=1e-12)


def test_discounts_are_those_of_chen_and_goodman():
    counts = np.repeat([1, 2, 3, 4, 5], [40, 12, 6, 4, 9])
    share = 40 / (40 + 2 * 12)
    expected = [0, 1 - 2 * share * 12 / 40, 2 - 3 * share * 6 / 12, 3 - 4 * share * 4 / 6]
    np.testing.assert_allclose(discounts_of(counts), expected)


def test_perplexity_counts_every_token_of_the_validation_text():
    probabilities = unigram_probabilities(TRAIN, SIZE)
    mean = sum(math.log(probabilities[word]) for word in VALIDATION) / len(VALIDATION)
    assert math.exp(unigram_loss(TRAIN, VALIDATION, SIZE)) == pytest.approx(math.exp(-mean))
    with_end = np.append(np.int32(END), TRAIN)
    before = [END, *VALIDATION.tolist()]
    logs = [math.log(kneser_ney(with_end, before[i], word)) for i, word in enumerate(VALIDATION[:40].tolist())]
    expected = math.exp(-sum(logs) / 40)
    assert bigram_perplexity(TRAIN, VALIDATION[:40], SIZE, END) == pytest.approx(expected)


def test_a_bigram_knows_more_than_a_unigram_and_neither_more_than_the_rule():
    steps = np.array([3, 1, 1, 1]) / 6
    rule = math.exp(-(steps * np.log(steps)).sum())
    unigram, bigram = math.exp(unigram_loss(TRAIN, VALIDATION, SIZE)), bigram_perplexity(TRAIN, VALIDATION, SIZE, END)
    assert rule < bigram < 0.3 * unigram
    assert unigram == pytest.approx(27, rel=0.1)
