"""Subwords shared by two languages, learned from a text by byte pair encoding and saved with the run."""

import hashlib
import io
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from trainers.results.layout import SUBWORDS
from trainers.system.errors import DataError
from trainers.system.files import atomic_file
from trainers.tasks.files import require_data
from trainers.tasks.translation.config import BOS, EOS, PAD, UNK
from trainers.tasks.translation.parallel_text import Pair

MODEL, FACTS = f"{SUBWORDS}.model", f"{SUBWORDS}.json"
MOST_SENTENCES = 4_000_000  # to learn subwords from; of a larger text, every second, third, ... pair
LONGEST = 2**16  # bytes; longer sentences are not used to learn subwords
SETTINGS: dict[str, Any] = {
    "model_type": "bpe",
    # Rare characters are encoded as bytes: nothing is unknown, and those of a large text do not use up its subwords.
    "byte_fallback": True,
    "character_coverage": 0.9999,
    # Not NFKC, the default: translations are compared with references that are not normalised.
    "normalization_rule_name": "identity",
    "pad_id": PAD,
    "unk_id": UNK,
    "bos_id": BOS,
    "eos_id": EOS,
    "max_sentence_length": LONGEST,
    "num_threads": 16,  # recorded in the model, so it must not depend on the machine
    "minloglevel": 2,
}


class Subwords:
    """A joint vocabulary of subwords. `decode` is the inverse of `encode`.

    Only white space is not preserved: any amount of any kind becomes one space, and so does U+2581, sentencepiece's own
    space mark.
    """

    def __init__(self, model: bytes, text: str) -> None:
        """`model` is a serialised sentencepiece model, and `text` the fingerprint of its training text."""
        self.model, self.text = model, text
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise DataError(f"Subwords must be a model of sentencepiece. Received: {len(model)} bytes") from error

    @classmethod
    def train(cls, pairs: Sequence[Pair], size: int) -> "Subwords":
        """Learns from both sides of the pairs; the same pairs give the same subwords."""
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_sentences(pairs), model_writer=model, vocab_size=size, **SETTINGS
            )
        except RuntimeError as error:
            reason = " ".join(str(error).split())  # tells the size that suits the text
            rule = "`vocabulary_size` must be one that sentencepiece can learn from the training text"
            raise DataError(f"{rule}. Received: vocabulary_size={size} ({reason})") from error
        return cls(model.getvalue(), text_fingerprint(pairs))

    @property
    def size(self) -> int:
        return int(self._processor.vocab_size())

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.model).hexdigest()

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """The numbers of each sentence, without `BOS` and `EOS`."""
        plain = [_one_space(sentence) for sentence in sentences]
        numbers: list[list[int]] = self._processor.encode(plain, num_threads=os.cpu_count() or 1)
        return numbers

    def encode_with_end(self, sentences: Sequence[str]) -> list[list[int]]:
        """The numbers of each sentence, ending with `EOS`."""
        return [[*numbers, EOS] for numbers in self.encode(sentences)]

    def decode(self, numbers: Iterable[Sequence[int]]) -> list[str]:
        """Sentences from their numbers, each up to its first `EOS`."""
        return [self._processor.decode(_before_eos(sentence)) for sentence in numbers]

    def save(self, folder: Path) -> None:
        """Writes the model and its fingerprints."""
        facts = {"fingerprint": self.fingerprint, "size": self.size, "text": self.text}
        # The facts are written last: where they exist, the model is complete.
        for name, content in ((MODEL, self.model), (FACTS, json.dumps(facts, indent=2).encode())):
            with atomic_file(folder / name) as file:
                file.write(content)

    @classmethod
    def load(cls, folder: Path) -> "Subwords":
        """Reads the subwords that `save` wrote."""
        try:
            model, facts = (folder / MODEL).read_bytes(), json.loads((folder / FACTS).read_bytes())
            fingerprint, text = facts["fingerprint"], facts["text"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"The subwords of a model must be in its folder. Received: {folder} ({error!r})") from error
        same = hashlib.sha256(model).hexdigest() == fingerprint
        require_data(same, f"{MODEL} must be what {FACTS} says", f"another fingerprint in {folder}")
        return cls(model, text)


def kept_or_trained(folder: Path | None, pairs: Sequence[Pair], size: int) -> Subwords:
    """Loads the subwords in a folder, or trains new ones if there are none. Writes nothing.

    Raises a `DataError` if those in the folder have another size or were trained with other pairs.
    """
    if folder is None or not (folder / FACTS).exists():
        return Subwords.train(pairs, size)
    kept = Subwords.load(folder)
    rule = "A model needs the subwords that it was trained with"
    require_data(kept.size == size, f"{rule}, {kept.size} in {folder / MODEL}", f"vocabulary_size={size}")
    same = kept.text == text_fingerprint(pairs)
    require_data(same, f"{rule}, those in {folder / MODEL}", f"another training text, {len(pairs)} pairs")
    return kept


def text_fingerprint(pairs: Iterable[Pair]) -> str:
    """A hash of all sentences."""
    digest = hashlib.sha256()
    for source, target in pairs:
        digest.update(f"{source}\n{target}\n".encode())
    return digest.hexdigest()


def _sentences(pairs: Sequence[Pair]) -> Iterator[str]:
    every = max(1, -(-2 * len(pairs) // MOST_SENTENCES))
    return (_one_space(sentence) for number in range(0, len(pairs), every) for sentence in pairs[number])


def _one_space(sentence: str) -> str:
    return " ".join(sentence.split())


def _before_eos(numbers: Sequence[int]) -> list[int]:
    return list(itertools.takewhile(lambda number: number != EOS, map(int, numbers)))
