"""Made-up pairs of sentences as numbers."""

import numpy as np

from trainers.tasks.translation.config import EOS
from trainers.tasks.translation.sources import Sequences, TranslationBatches


def made_pairs(pairs=300, seed=0, mean=2.6):
    """Pairs whose every token tells the pair and its side; 2 to 60 tokens with the end."""
    generator = np.random.default_rng(seed)
    lengths = np.clip(generator.lognormal(mean, 0.5, pairs), 2, 60).astype(int)
    others = np.clip(lengths * generator.normal(1.05, 0.12, pairs), 2, 60).astype(int)
    sides = [
        [[10 + 2 * number + side] * (length - 1) + [EOS] for number, length in enumerate(each)]
        for side, each in enumerate((lengths, others))
    ]
    return TranslationBatches(*map(Sequences.of, sides))
