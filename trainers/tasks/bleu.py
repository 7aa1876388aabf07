"""Translations of whole texts, and their BLEU."""

from collections.abc import Callable, Sequence

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from trainers.tasks.marks import EOS, PAD
from trainers.tasks.subwords import Subwords

ROWS = 64  # sentences that are translated together

Search = Callable[[np.ndarray], np.ndarray]  # from sources [n, positions] to translations [n, positions]


def translate_lines(lines: Sequence[str], subwords: Subwords, search: Search) -> list[str]:
    """The translation of every line, in the lines' order."""
    sources = [[*tokens, EOS] for tokens in subwords.encode(lines)]
    translations: list[str] = [""] * len(lines)
    by_length = sorted(range(len(lines)), key=lambda number: len(sources[number]))  # little padding
    for first in range(0, len(lines), ROWS):
        numbers = by_length[first : first + ROWS]
        found = search(_padded([sources[number] for number in numbers]))
        for number, text in zip(numbers, subwords.decode(found.tolist()), strict=True):
            translations[number] = text
    return translations


def translate_full_lines(lines: Sequence[str], subwords: Subwords, search: Search) -> list[str]:
    """The translation of every line in its place; a blank line is one of its own translation."""
    translations = iter(translate_lines([line for line in lines if line.strip()], subwords, search))
    return [next(translations) if line.strip() else "" for line in lines]


def bleu(translations: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """BLEU in percent, and the signature that says how it was computed."""
    metric = BLEU()
    return metric.corpus_score(translations, [references]).score, str(metric.get_signature())


def _padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    padded = np.full((len(rows), max(map(len, rows))), PAD, np.int32)
    for row, tokens in zip(padded, rows, strict=True):
        row[: len(tokens)] = tokens
    return padded
