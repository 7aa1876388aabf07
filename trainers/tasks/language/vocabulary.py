"""Words in order of frequency, and texts as arrays of their numbers."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

import numpy as np

from trainers.system.errors import DataError
from trainers.system.files import atomic_file
from trainers.tasks.files import require_data

UNKNOWN, END = "<unk>", "<eos>"
CHUNK = 2**20  # numbers to work on at a time

Lines = Iterable[Iterable[str]]  # a text as the words of its lines


class Vocabulary:
    """The words that a model knows. A word's number is its rank by frequency; every other word is `<unk>`."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        self._numbers = _WordNumbers((word, number) for number, word in enumerate(self.words))
        require_data(
            len(self._numbers) == len(self.words) and {UNKNOWN, END} <= self._numbers.keys(),
            f"A vocabulary must hold {UNKNOWN}, {END} and no word twice",
            f"{len(self.words)} words, {len(self._numbers)} of them different",
        )
        self.unknown, self.end = self._numbers[UNKNOWN], self._numbers[END]

    @property
    def size(self) -> int:
        return len(self.words)

    def encode(self, words: Iterable[str]) -> np.ndarray:
        return np.fromiter(map(self._numbers.__getitem__, words), np.int32)

    def decode(self, numbers: Iterable[int]) -> list[str]:
        return [self.words[number] for number in numbers]

    def number_lines(self, lines: Lines) -> np.ndarray:
        """A text as numbers of this vocabulary, in the format of `number_text`."""
        return _collect(lines, self._numbers)

    def save(self, path: Path) -> None:
        """Writes one word per line, in order."""
        with atomic_file(path) as file:
            file.write("".join(f"{word}\n" for word in self.words).encode())

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        try:
            return cls(path.read_text("utf-8").split("\n")[:-1])
        except (OSError, ValueError) as error:
            raise DataError(
                f"A vocabulary must be a text with one word per line. Received: {path} ({error})"
            ) from error

    def check_saved(self, path: Path) -> None:
        """Raises a `DataError` if the vocabulary in a file differs from this one."""
        saved = Vocabulary.load(path)
        rule = f"A model needs the vocabulary that it was trained with, {saved.size} words in {path}"
        require_data(saved.words == self.words, rule, f"another one of {self.size} words")


class _WordNumbers(dict[str, int]):
    """A lookup table that maps unknown words to the number of `<unk>`."""

    def __missing__(self, word: str) -> int:
        return self[UNKNOWN]


def number_text(lines: Lines, size: int | None = None, min_count: int = 1) -> tuple[np.ndarray, Vocabulary]:
    """Returns a training text as int32 numbers, and the vocabulary of its words.

    Every line ends with `<eos>`, and another one precedes the first word, so that the model can predict it. Words seen
    fewer than `min_count` times become `<unk>`, and so do those beyond the `size` most frequent, which include `<unk>`
    and `<eos>`. Equally frequent words are in order of appearance, after `<unk>` and `<eos>`.
    """
    seen: defaultdict[str, int] = defaultdict(None, {UNKNOWN: 0, END: 1})
    seen.default_factory = seen.__len__
    text = _collect(lines, seen)
    kept, ranks = _rank(_counts(text, len(seen)), size, min_count)
    for part in _chunks(text):
        part[:] = ranks[part]
    words = list(seen)
    return text, Vocabulary(words[number] for number in kept)


def _collect(lines: Lines, numbers: Mapping[str, int]) -> np.ndarray:
    words = chain([END], chain.from_iterable(chain(line, [END]) for line in lines))
    # One word at a time, so that memory is four bytes per token however long the text is.
    return np.fromiter(map(numbers.__getitem__, words), np.int32)


def _counts(text: np.ndarray, words: int) -> np.ndarray:
    counts = np.zeros(words, np.int64)
    for part in _chunks(text[1:]):
        counts += np.bincount(part, minlength=words)
    return counts


def _rank(counts: np.ndarray, size: int | None, min_count: int) -> tuple[np.ndarray, np.ndarray]:
    """The kept words by rank, and the rank of every word. `<unk>` is word 0, `<eos>` 1, the others as they appeared."""
    kept = _by_frequency(counts, 2 + np.flatnonzero(counts[2:] >= min_count))
    kept = kept if size is None else kept[: max(0, size - 2)]
    counts[0] = counts.sum() - counts[kept].sum() - counts[1]
    kept = _by_frequency(counts, np.sort(np.append(kept, [0, 1])))
    ranks = np.full(len(counts), np.flatnonzero(kept == 0)[0], np.int32)
    ranks[kept] = np.arange(len(kept))
    return kept, ranks


def _by_frequency(counts: np.ndarray, words: np.ndarray) -> np.ndarray:
    return words[np.argsort(-counts[words], kind="stable")]


def _chunks(text: np.ndarray) -> Iterator[np.ndarray]:
    return (text[first : first + CHUNK] for first in range(0, len(text), CHUNK))
