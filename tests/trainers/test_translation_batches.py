"""Micro-batches hold pairs of similar length, as many as fit, and are a function of the seed and the step."""

import itertools

import numpy as np
import pytest

from tests.trainers.batches import take
from tests.trainers.pairs import made_pairs
from trainers.engine.data import Feed
from trainers.system.errors import DataError
from trainers.tasks.translation.config import BOS, EOS, PAD
from trainers.tasks.translation.sources import Sequences, TranslationBatches, bucket_limits, cut_buckets

TOKENS = 120


def pairs_of(batch):
    """The numbers of the pairs in a micro-batch."""
    return ((batch[0][:, 0] - 10) // 2).tolist()


def tokens_of(batch):
    return len(batch[0]) * max(batch[0].shape[1], batch[1].shape[1])


@pytest.fixture(scope="module")
def source():
    return made_pairs()


# Buckets


def test_buckets_grow_by_a_tenth_and_end_with_the_longest_pair():
    limits = bucket_limits(250)
    assert limits[0] == 8
    assert limits[-1] == 250
    assert all(0 < after - before <= max(1, before / 10) for before, after in itertools.pairwise(limits))
    assert bucket_limits(8) == [8]
    assert bucket_limits(3) == [3]


@pytest.mark.parametrize("seed", range(20))
def test_cuts_leave_no_micro_batch_too_large_and_few_too_small(seed):
    generator = np.random.default_rng(seed)
    limits = bucket_limits(int(generator.integers(5, 60)))
    counts = generator.integers(0, 30, len(limits)).tolist()
    counts[-1] += 1
    uppers = np.repeat(limits, counts)
    tokens = int(generator.integers(limits[-1], 400))
    cuts = cut_buckets(limits, counts, tokens)
    assert (cuts[0], cuts[-1]) == (0, len(uppers))
    for first, last in itertools.pairwise(cuts):
        assert first < last
        assert (last - first) * uppers[last - 1] <= tokens
    for _, last in itertools.pairwise(cuts[:-1]):
        # With the next pair in it, it would be too large.
        first = cuts[cuts.index(last) - 1]
        assert (last + 1 - first) * uppers[last] > tokens


# Micro-batches


def test_a_micro_batch_is_a_source_a_target_and_what_follows_its_tokens():
    source = TranslationBatches(Sequences.of([[5, 6, EOS], [7, EOS]]), Sequences.of([[8, EOS], [9, 10, 11, EOS]]))
    [(sources, target, targets, weights)] = take(source.evaluation(Feed(100)))
    assert sources.tolist() == [[5, 6, EOS], [7, EOS, PAD]]
    assert target.tolist() == [[BOS, 8, PAD, PAD], [BOS, 9, 10, 11]]
    assert targets.tolist() == [[8, EOS, PAD, PAD], [9, 10, 11, EOS]]
    assert weights.tolist() == [2, 4]
    assert [part.dtype for part in (sources, target, targets, weights)] == [np.int32] * 3 + [np.float32]


def test_sequences_are_joined_in_order():
    joined = Sequences.joined([Sequences.of([[1, 2], [3]]), Sequences.of([[4, 5, 6]])])
    assert (joined.tokens.tolist(), joined.ends.tolist(), len(joined)) == ([1, 2, 3, 4, 5, 6], [0, 2, 3, 6], 3)
    assert (joined.tokens.dtype, joined.ends.dtype) == (np.int32, np.int64)


def test_the_next_epoch_has_every_pair_in_other_company(source):
    feed = Feed(TOKENS, seed=1)
    steps = source.steps_per_epoch(feed)
    batches = take(source.training(feed), 2 * steps)
    epochs = [[pairs_of(batch) for batch in epoch] for epoch in (batches[:steps], batches[steps:])]
    assert not [batch for batch in epochs[0] if len(batch) > 4 and batch in epochs[1]]
    lengths = [[len(batch) for batch in epoch] for epoch in epochs]
    assert lengths[0] != lengths[1]
    assert sorted(lengths[0]) == sorted(lengths[1])


def test_training_shows_whole_pairs(source):
    for sources, target, targets, weights in take(source.training(Feed(TOKENS)), 30):
        pairs = (sources[:, 0] - 10) // 2
        np.testing.assert_array_equal((sources != PAD).sum(axis=1), source.sources.lengths[pairs])
        np.testing.assert_array_equal((targets != PAD).sum(axis=1), source.targets.lengths[pairs])
        np.testing.assert_array_equal((target != PAD).sum(axis=1), source.targets.lengths[pairs])
        np.testing.assert_array_equal(weights, source.targets.lengths[pairs])
        assert (target[:, 0] == BOS).all()
        assert ((targets == EOS).sum(axis=1) == 1).all()


def test_tokens_never_exceed_the_micro_batch_and_padding_is_a_small_part():
    source, feed = made_pairs(3000), Feed(500)
    batches = take(source.training(feed), source.steps_per_epoch(feed))
    tokens = [tokens_of(batch) for batch in batches]
    assert max(tokens) <= 500
    assert np.mean(tokens) > 0.95 * 500
    cells = sum(batch[0].size + batch[1].size for batch in batches)
    assert 1 - sum((batch[0] != PAD).sum() + (batch[1] != PAD).sum() for batch in batches) / cells < 0.12


def test_the_last_incomplete_update_of_an_epoch_is_left_out(source):
    parts = source.steps_per_epoch(Feed(TOKENS))
    feed = Feed(7 * TOKENS, micro_batches=7)
    steps = source.steps_per_epoch(feed)
    assert steps == parts // 7
    assert parts % 7
    seen = [pair for batch in take(source.training(feed), 7 * steps) for pair in pairs_of(batch)]
    assert len({*seen}) == len(seen) < source.size


# Evaluation


def test_evaluation_fills_up_its_last_update_with_micro_batches_of_weight_0(source):
    batches = take(source.evaluation(Feed(7 * TOKENS, replicas=7)))
    assert max(map(tokens_of, batches)) <= TOKENS
    filled = [not batch[3].any() for batch in batches]
    assert filled == sorted(filled)
    assert 0 < sum(filled) < 7


def test_evaluation_holds_a_pair_that_is_longer_than_a_micro_batch(source):
    batches = take(source.evaluation(Feed(20)))
    assert sorted(itertools.chain(*map(pairs_of, batches))) == list(range(source.size))
    assert all(tokens_of(batch) <= 20 or len(batch[0]) == 1 for batch in batches)


# Bad input


@pytest.mark.parametrize("function", [TranslationBatches.steps_per_epoch, TranslationBatches.training])
def test_a_micro_batch_must_hold_the_longest_pair(source, function):
    function(source, Feed(4 * source.longest, replicas=2, micro_batches=2))
    with pytest.raises(DataError) as caught:
        function(source, Feed(4 * source.longest - 1, replicas=2, micro_batches=2))
    assert str(caught.value) == (
        "`max_tokens` / (replicas x `accumulate`) must be at least the length of the longest pair, "
        f"{source.longest} tokens. Received: {4 * source.longest - 1} / 4"
    )


def test_an_epoch_must_have_an_update(source):
    with pytest.raises(DataError) as caught:
        source.steps_per_epoch(Feed(10**6, replicas=2))
    assert str(caught.value) == (
        "`max_tokens` must be small enough for replicas x `accumulate` = 2 micro-batches per epoch. "
        "Received: 1000000, which gives 1"
    )
