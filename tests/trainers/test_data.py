"""Batches are a function of the step."""

import numpy as np
import pytest

from trainers.engine.data import ArraySource, Feed

SOURCE = ArraySource(np.arange(103).astype("float32"), np.arange(103))


def batches(count, **feed):
    parts = SOURCE.training(Feed(10, seed=3, **feed)).take(count)
    return [inputs.numpy() for inputs, _, _ in parts]


def test_an_epoch_holds_no_example_twice_and_has_an_order_of_its_own():
    epochs = np.concatenate(batches(20)).reshape(2, 100)
    assert [len(set(epoch)) for epoch in epochs] == [100, 100]
    assert list(epochs[0]) != list(epochs[1])


@pytest.mark.parametrize("start", [1, 9, 10, 13, 27])
def test_a_run_can_start_at_any_step(start):
    np.testing.assert_array_equal(batches(5, start_step=start), batches(start + 5)[start:])


def test_another_seed_is_another_order():
    other = next(iter(SOURCE.training(Feed(10, seed=4))))[0].numpy()
    assert list(other) != list(batches(1)[0])


def test_replicas_micro_batches_and_workers_share_out_the_same_batch():
    whole = np.stack(batches(4))
    for feed in ({"replicas": 2}, {"micro_batches": 2}):
        np.testing.assert_array_equal(np.stack(batches(8, **feed)).reshape(4, 10), whole)
    workers = [np.stack(batches(4, workers=2, worker=worker)) for worker in range(2)]
    np.testing.assert_array_equal(np.concatenate(workers, axis=1), whole)


@pytest.mark.parametrize("replicas", [1, 2])
def test_validation_sees_every_example_once(replicas):
    parts = list(SOURCE.evaluation(Feed(10, replicas=replicas)))
    inputs, weights = (np.concatenate([part[i].numpy() for part in parts]) for i in (0, 2))
    assert len(weights) == 110
    np.testing.assert_array_equal(inputs[weights == 1], np.arange(103))


def test_augmentation_has_a_seed_for_every_example_of_every_epoch():
    seen = ArraySource(np.zeros(20, "float32"), np.zeros(20), augment=lambda rows, seeds: seeds)
    seeds = np.concatenate([inputs.numpy() for inputs, _, _ in seen.training(Feed(10)).take(6)])
    assert len({tuple(seed) for seed in seeds}) == 60
    again = np.concatenate([inputs.numpy() for inputs, _, _ in seen.training(Feed(10, start_step=3)).take(3)])
    np.testing.assert_array_equal(again, seeds[30:])
