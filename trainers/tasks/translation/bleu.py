"""Translations of whole texts, and their BLEU."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from trainers.tasks.translation.config import PAD
from trainers.tasks.translation.subwords import Subwords

COMPOUND = re.compile(r"(?<=\S)-(?=\S)")
ROWS = 64  # sentences that are translated together
MOST_TOKENS = ROWS * 256  # per group of sentences, including padding

Search = Callable[[np.ndarray], np.ndarray]  # from sources [n, positions] to translations [n, positions]


def translate_lines(lines: Sequence[str], subwords: Subwords, search: Search) -> list[str]:
    """Translates every line; blank lines stay blank."""
    sources = subwords.encode_with_end(lines)
    translations: list[str] = [""] * len(lines)
    full = [number for number, line in enumerate(lines) if line.strip()]
    by_length = sorted(full, key=lambda number: len(sources[number]))  # for little padding
    for numbers in _groups(by_length, [len(source) for source in sources]):
        found = search(_padded([sources[number] for number in numbers]))
        for number, text in zip(numbers, subwords.decode(found.tolist()), strict=True):
            translations[number] = text
    return translations


def _groups(by_length: Sequence[int], lengths: Sequence[int]) -> Iterator[Sequence[int]]:
    """Groups of lines to translate together: up to 64, and fewer if long, as attention needs quadratic memory."""
    first = 0
    while first < len(by_length):
        rows = ROWS
        while rows > 1 and rows * lengths[by_length[min(first + rows, len(by_length)) - 1]] > MOST_TOKENS:
            rows //= 2
        yield by_length[first : first + rows]
        first += rows


def bleu(translations: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """BLEU in percent, and the signature that says how it was computed."""
    metric = BLEU()
    return metric.corpus_score(translations, [references]).score, str(metric.get_signature())


def compound_split_bleu(translations: Sequence[str], references: Sequence[str]) -> float:
    """BLEU in percent of tokenised text with split hyphenated compounds, as reported by papers of 2017 to 2019.

    The tokenizer is that of `bleu`, mteval-v13a; those papers used the tokenizer of Moses.
    """
    tokenize: Any = Tokenizer13a()  # type: ignore[no-untyped-call]

    def split(lines: Sequence[str]) -> list[str]:
        return [COMPOUND.sub(r" ##AT##-##AT## ", tokenize(line)) for line in lines]

    score: float = BLEU(tokenize="none", force=True).corpus_score(split(translations), [split(references)]).score
    return score


def _padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    padded = np.full((len(rows), max(map(len, rows))), PAD, np.int32)
    for row, tokens in zip(padded, rows, strict=True):
        row[: len(tokens)] = tokens
    return padded
