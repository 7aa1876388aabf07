"""Batches of any source, for comparisons."""

import numpy as np


def take(dataset, count=-1):
    """The first batches, each as one tuple: its inputs (one array, or several by name), targets and weights."""
    batches = []
    for inputs, targets, weights in dataset.take(count):
        parts = inputs.values() if isinstance(inputs, dict) else (inputs,)
        batches.append(tuple(part.numpy() for part in (*parts, targets, weights)))
    return batches


def assert_same(batches, others):
    assert len(batches) == len(others)
    for batch, other in zip(batches, others, strict=True):
        for part, other_part in zip(batch, other, strict=True):
            np.testing.assert_array_equal(part, other_part)
