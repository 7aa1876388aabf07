"""What every source promises: batches are a function of the seed and the step, shared out by the feed."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.trainers.batches import assert_same, take
from tests.trainers.pairs import made_pairs
from trainers.engine.data import ArraySource, Feed
from trainers.tasks.language.sources import TrainingBlocks, Windows

IMAGES = ("folder", "in_memory", "stream")
# Made-up sources, with a batch size that four parts share.
SOURCES = {
    "arrays": (ArraySource(np.arange(43.0, dtype=np.float32), np.arange(43)), 8),
    "blocks": (TrainingBlocks(np.arange(113, dtype=np.int32), 5), 4),
    "windows": (Windows(np.arange(84, dtype=np.int32), 5, 2), 4),
    "pairs": (made_pairs(), 480),
}


@pytest.fixture(params=[*SOURCES, *IMAGES])
def case(request, image_sets):
    return SOURCES.get(request.param) or (image_sets[request.param].train, 4)


def numbers(batches):
    """The numbers of the examples in each batch."""
    found = []
    for first, *_, targets, _ in batches:
        found.append((targets if targets.ndim == 1 else first[:, 0]).tolist())
    return found


def parts(make, steps, size, **feed):
    """The micro-batches of each step, worker by worker."""
    workers = [Feed(size, worker=worker, **feed) for worker in range(feed.get("workers", 1))]
    taken = [take(make(each), steps * each.parts) for each in workers]
    count = workers[0].parts
    return [batch for step in range(steps) for batches in taken for batch in batches[step * count : (step + 1) * count]]


def test_an_epoch_holds_every_example_once_in_an_order_of_its_own(case):
    source, size = case
    steps = source.steps_per_epoch(Feed(size))
    batches = take(source.training(Feed(size, seed=1)), 2 * steps) + take(source.training(Feed(size, seed=2)), steps)
    epochs = [list(itertools.chain(*numbers(batches[at : at + steps]))) for at in range(0, 3 * steps, steps)]
    expected = source.size if source is SOURCES["pairs"][0] else source.size // size * size
    assert [len({*epoch}) for epoch in epochs] == [len(epoch) for epoch in epochs] == [expected] * 3
    assert len({*map(tuple, epochs)}) == 3
    assert all((batch[-1] > 0).all() for batch in batches)


def test_a_run_that_starts_at_a_step_sees_what_the_whole_run_sees_whatever_the_global_seed(case):
    source, size = case
    feed = {"seed": 5, "micro_batches": 2}
    steps = source.steps_per_epoch(Feed(size, **feed))
    whole = take(source.training(Feed(size, **feed)), 2 * (2 * steps + 3))
    for start in (1, steps, 2 * steps + 2):
        tf.random.set_seed(start)
        rest = take(source.training(Feed(size, start_step=start, **feed)), 6)
        assert_same(rest[: len(whole) - 2 * start], whole[2 * start : 2 * start + 6])


@pytest.mark.parametrize("method", ["training", "evaluation"])
def test_replicas_micro_batches_and_workers_share_out_the_same_batch(case, method):
    source, size = case
    make, steps = getattr(source, method), 2
    four = parts(make, steps, size, seed=1, replicas=2, micro_batches=2)
    assert_same(parts(make, steps, size, seed=1, workers=2, replicas=2), four)
    if source is not SOURCES["pairs"][0]:
        joined = [tuple(map(np.concatenate, zip(*four[i : i + 4], strict=True))) for i in (0, 4)]
        assert_same(joined, take(make(Feed(size, seed=1)), steps))


def test_evaluation_sees_every_example_once_and_always_the_same(case):
    source, size = case
    feeds = (Feed(size), Feed(size, seed=9), Feed(16 * size))  # the last has more than there are
    passes = [take(source.evaluation(feed)) for feed in feeds]
    for feed, batches in zip(feeds, passes, strict=True):
        assert len(batches) == source.evaluation_steps(feed)
        counted = [n for batch in batches for n, w in zip(*numbers([batch]), batch[-1], strict=True) if w > 0]
        assert len({*counted}) == len(counted) == source.size
    assert_same(*passes[:2])


def test_shapes_and_types_are_known_before_the_data_is(case):
    source, size = case
    for dataset in (source.training(Feed(size)), source.evaluation(Feed(size))):
        for batch in dataset.take(1):
            for spec, tensor in zip(*map(tf.nest.flatten, (dataset.element_spec, batch)), strict=True):
                assert spec.dtype == tensor.dtype
                assert spec.shape.rank == tensor.shape.rank
                assert source is SOURCES["pairs"][0] or spec.shape == tensor.shape


def test_augmentation_has_a_seed_for_every_example_of_every_epoch():
    seen = ArraySource(np.zeros(20, "float32"), np.zeros(20), augment=lambda rows, seeds: seeds)
    seeds = np.concatenate([inputs.numpy() for inputs, _, _ in seen.training(Feed(10)).take(6)])
    assert len({tuple(seed) for seed in seeds}) == 60
