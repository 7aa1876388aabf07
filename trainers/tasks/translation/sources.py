"""Batches of sentence pairs of similar length, with a batch size in tokens.

The length of a pair is that of its longer side. Pairs are sorted into buckets of lengths within about 10 % of each
other, shuffled within each bucket, and then cut, one bucket after the other, into micro-batches of as many pairs as
fit. The cuts depend only on the sizes of the buckets and are the same in every epoch. Which pairs share a micro-batch,
and the order of the micro-batches, change.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from trainers.engine.data import Feed, Source, aligned, epochs, example_seed, serving, shared_tensor
from trainers.system.errors import DataError
from trainers.tasks.translation.config import BOS, PAD

SHORTEST_BUCKET = 8  # tokens; all pairs up to this length share a bucket
GROWTH = 1.1  # of the length from one bucket to the next


class Sequences:
    """Sequences of numbers, each ending with `EOS`, concatenated in one array."""

    def __init__(self, tokens: np.ndarray, lengths: np.ndarray) -> None:
        self.tokens, self.lengths = aligned(tokens), lengths
        self.ends = aligned(np.cumsum(np.concatenate([[0], lengths])))  # 0, and where each sequence ends

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> "Sequences":
        tokens = np.fromiter(itertools.chain.from_iterable(sequences), np.int32)
        return cls(tokens, np.fromiter(map(len, sequences), np.int64))

    @classmethod
    def joined(cls, parts: Sequence["Sequences"]) -> "Sequences":
        tokens, lengths = zip(*((part.tokens, part.lengths) for part in parts), strict=True)
        return cls(np.concatenate(tokens), np.concatenate(lengths))

    def __len__(self) -> int:
        return len(self.lengths)

    def rows(self) -> tf.RaggedTensor:
        tokens, ends = shared_tensor(self.tokens), shared_tensor(self.ends)
        return tf.RaggedTensor.from_row_splits(tokens, ends, validate=False)


class TranslationBatches(Source):
    """Pairs of sentences; `Feed.batch_size` is in tokens, including padding.

    A micro-batch is `({"source": [n, s], "target": [n, t]}, targets [n, t], weights [n])`: the target begins with
    `BOS`, the targets are the tokens that follow each of its tokens, and the weights are their numbers. The size of the
    micro-batch in tokens is n times the larger of s and t.
    """

    def __init__(self, sources: Sequences, targets: Sequences) -> None:
        self.sources, self.targets, self.size = sources, targets, len(sources)
        lengths = np.maximum(sources.lengths, targets.lengths)
        self.longest = int(lengths.max())
        self._limits = bucket_limits(self.longest)
        self._buckets = aligned(np.searchsorted(self._limits, lengths))
        self._counts = np.bincount(self._buckets, minlength=len(self._limits))

    def contents(self) -> Iterable[Any]:
        return self.sources.tokens, self.sources.ends, self.targets.tokens, self.targets.ends

    def steps_per_epoch(self, feed: Feed) -> int:
        if feed.micro_size < self.longest:
            raise DataError(
                f"`max_tokens` / (replicas x `accumulate`) must be at least the length of the longest pair, "
                f"{self.longest} tokens. Received: {feed.batch_size} / {_update_parts(feed)}"
            )
        parts, needed = len(self._cuts(feed)) - 1, _update_parts(feed)
        if parts < needed:
            raise DataError(
                f"`max_tokens` must be small enough for replicas x `accumulate` = {needed} micro-batches per epoch. "
                f"Received: {feed.batch_size}, which gives {parts}"
            )
        return parts // needed

    def evaluation_steps(self, feed: Feed) -> int:
        return -(-(len(self._cuts(feed)) - 1) // _update_parts(feed))

    def training(self, feed: Feed) -> tf.data.Dataset:
        steps, cuts = self.steps_per_epoch(feed), tf.constant(self._cuts(feed))
        buckets = shared_tensor(self._buckets)

        def parts(epoch: tf.Tensor, first: tf.Tensor) -> tf.data.Dataset:
            pairs = _sorted_by_bucket(buckets, [feed.seed, epoch])
            order = tf.random.experimental.stateless_shuffle(
                tf.range(len(cuts) - 1), tf.stack([example_seed(feed.seed, epoch), 0])
            )
            numbers = _of_worker(tf.data.Dataset.range(first, steps), feed)
            return numbers.map(lambda number: pairs[cuts[order[number]] : cuts[order[number] + 1]])

        return serving(epochs(feed, steps, parts).map(self._loader()), self.ahead)

    def evaluation(self, feed: Feed) -> tf.data.Dataset:
        """Every pair once, the short ones first; the last batch is filled up with micro-batches of weight 0."""
        pairs = tf.constant(np.argsort(self._buckets, kind="stable"))
        cuts, steps = self._cuts(feed), self.evaluation_steps(feed)
        filled = steps * _update_parts(feed) - (len(cuts) - 1)
        # Those of weight 0 hold only the first pair.
        starts, ends = tf.constant(cuts[:-1] + [0] * filled), tf.constant(cuts[1:] + [1] * filled)
        load = self._loader()

        def part(number: tf.Tensor) -> Any:
            inputs, targets, weights = load(pairs[starts[number] : ends[number]])
            return inputs, targets, weights * tf.cast(number < len(cuts) - 1, tf.float32)

        return serving(_of_worker(tf.data.Dataset.range(steps), feed).map(part), self.ahead)

    def _cuts(self, feed: Feed) -> list[int]:
        return cut_buckets(self._limits, self._counts.tolist(), feed.micro_size)

    def _loader(self) -> Callable[[tf.Tensor], Any]:
        """Returns a function that makes a micro-batch from the indices of its pairs."""
        all_sources, all_targets = self.sources.rows(), self.targets.rows()

        def load(pairs: tf.Tensor) -> Any:
            targets = tf.gather(all_targets, pairs)
            # `BOS` is added and `EOS` is left out, so the length stays the same.
            shifted = tf.concat([tf.fill([tf.size(pairs), 1], BOS), targets[:, :-1]], axis=1)
            inputs = {"source": tf.gather(all_sources, pairs).to_tensor(PAD), "target": shifted.to_tensor(PAD)}
            return inputs, targets.to_tensor(PAD), tf.cast(targets.row_lengths(), tf.float32)

        return load


def bucket_limits(longest: int) -> list[int]:
    """The greatest length of each bucket, up to that of the longest pair.

    >>> bucket_limits(25)
    [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 24, 25]
    """
    limits = [SHORTEST_BUCKET]
    while limits[-1] < longest:
        limits.append(max(limits[-1] + 1, int(GROWTH * limits[-1])))
    return [*limits[:-1], longest]


def cut_buckets(limits: Sequence[int], counts: Sequence[int], tokens: int) -> list[int]:
    """Where to cut sorted pairs into micro-batches of at most `tokens` tokens, from 0 to the number of pairs.

    A pair counts as long as the limit of its bucket, and a micro-batch has at least one pair. The last pairs of a
    bucket share a micro-batch with the first pairs of the next.

    >>> cut_buckets([8, 9], [7, 5], 24)
    [0, 3, 6, 8, 10, 12]
    """
    cuts, end = [0], 0
    for limit, count in zip(limits, counts, strict=True):
        rows = max(1, tokens // limit)
        # A micro-batch that began with shorter pairs may already be too large for longer ones.
        if count and end - cuts[-1] > rows:
            cuts.append(end)
        end += count
        cuts.extend(range(cuts[-1] + rows, end, rows))
    return [*cuts, end]


def _sorted_by_bucket(buckets: tf.Tensor, seed: Any) -> tf.Tensor:
    """The indices of the pairs sorted by bucket, in random order within each bucket."""
    noise = tf.random.stateless_uniform(tf.shape(buckets), seed, 0, 2**32, tf.int64)
    return tf.argsort(buckets * 2**32 + noise, stable=True)


def _of_worker(steps: tf.data.Dataset, feed: Feed) -> tf.data.Dataset:
    """The numbers of the worker's micro-batches in each step, one by one."""
    first = feed.worker * feed.parts
    return steps.flat_map(
        lambda step: tf.data.Dataset.range(feed.parts).map(lambda part: step * _update_parts(feed) + first + part)
    )


def _update_parts(feed: Feed) -> int:
    """Micro-batches per update, over all workers."""
    return feed.workers * feed.parts
