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
