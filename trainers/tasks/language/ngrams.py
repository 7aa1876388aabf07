"""The loss of a model that knows how frequent every word is and nothing else: a model that fails still learns that."""

import numpy as np

ADDED = 0.1  # to the count of every word, so that none is impossible
UNIGRAM_LOSS = "unigram_loss"  # in the results of a run


def unigram_loss(train: np.ndarray, validation: np.ndarray, vocabulary_size: int, smoothing: float = 0.0) -> float:
    """The mean loss of the words of `validation` under the word frequencies of `train`.

    Args:
        train: The training text in numbers.
        validation: The validation text in numbers.
        vocabulary_size: The number of different words.
        smoothing: The share of each word that the loss spreads evenly over the vocabulary; the frequencies are spread
            likewise, which minimises such a loss.
    """
    frequencies = unigram_probabilities(train, vocabulary_size)
    logs = np.log((1 - smoothing) * frequencies + smoothing / vocabulary_size)
    return -float((1 - smoothing) * np.mean(logs[validation]) + smoothing * np.mean(logs))


def unigram_probabilities(train: np.ndarray, vocabulary_size: int) -> np.ndarray:
    counts = np.bincount(train, minlength=vocabulary_size) + ADDED
    return np.asarray(counts / counts.sum())


def bigram_perplexity(train: np.ndarray, validation: np.ndarray, vocabulary_size: int, end: int) -> float:
    """The perplexity of `validation` under an interpolated Kneser-Ney bigram model; `end` precedes the first token."""
    model = KneserNey(np.append(np.int32(end), train), vocabulary_size)
    probabilities = model.probabilities(np.append(np.int32(end), validation[:-1]), validation)
    return float(np.exp(-np.mean(np.log(probabilities))))


class KneserNey:
    """Interpolated modified Kneser-Ney smoothing of bigrams (Chen and Goodman, 1999).

    p(w | v) = (c(vw) - d) / c(v) + left(v) p(w), where left(v) is the probability that the discounts d took from v. The
    lower-order model p(w) is smoothed in the same way, but counts after how many different words w was seen.
    """

    def __init__(self, text: np.ndarray, vocabulary_size: int) -> None:
        self.vocabulary_size = vocabulary_size
        self.pairs, counts = np.unique(self._pairs(text[:-1], text[1:]), return_counts=True)
        first, second = np.divmod(self.pairs, vocabulary_size)
        self.below = self._lower_order(np.bincount(second, minlength=vocabulary_size))
        discounts = discounts_of(counts)[np.minimum(counts, 3)]
        # At least 1, for words that nothing follows.
        total = np.maximum(np.bincount(first, counts, vocabulary_size), 1)
        self.own = (counts - discounts) / total[first]
        self.left = 1 - np.bincount(first, self.own, vocabulary_size)

    def probabilities(self, before: np.ndarray, words: np.ndarray) -> np.ndarray:
        """p(word | before) of each pair."""
        pairs = self._pairs(before, words)
        places = np.minimum(np.searchsorted(self.pairs, pairs), len(self.pairs) - 1)
        own = np.where(self.pairs[places] == pairs, self.own[places], 0)
        return np.asarray(own + self.left[before] * self.below[words])

    def _lower_order(self, counts: np.ndarray) -> np.ndarray:
        own = (counts - discounts_of(counts)[np.minimum(counts, 3)]) / counts.sum()
        return np.asarray(own + (1 - own.sum()) / self.vocabulary_size)

    def _pairs(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return np.asarray(first.astype(np.int64) * self.vocabulary_size + second)


def discounts_of(counts: np.ndarray) -> np.ndarray:
    """The discounts of items seen never, once, twice and more often, estimated from how many there are of each."""
    once, twice, thrice, four = (max(1, int(np.sum(counts == n))) for n in range(1, 5))
    share = once / (once + 2 * twice)
    discounts = [0, 1 - 2 * share * twice / once, 2 - 3 * share * thrice / twice, 3 - 4 * share * four / thrice]
    # In a tiny text the estimates can be anything; these bounds keep every probability above zero.
    return np.clip(discounts, [0, 0.1, 0.1, 0.1], [0, 0.9, 1.9, 2.9])
