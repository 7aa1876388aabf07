"""Beam search for the likeliest translations, of a batch of sources or of the lines of a text."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from trainers.tasks.translation.config import BOS, EOS, PAD
from trainers.tasks.translation.models import TranslationModel
from trainers.tasks.translation.subwords import Subwords

ROWS = 64  # sentences that are translated together
MOST_TOKENS = ROWS * 256  # per group of sentences, including padding

Search = Callable[[np.ndarray], np.ndarray]  # from sources [n, positions] to translations [n, positions]


class _Beams(NamedTuple):
    """The state between two steps, after `count` subwords.

    tokens: The live hypotheses, [batch, beam, 1 + count]; the first is `BOS`.
    log_p: Their log probabilities, [batch, beam], in descending order.
    best_tokens: The best hypothesis that has ended, [batch, count].
    best_score: Its score, [batch]; minus infinity while there is none.
    past: The decoder's cache of them.
    """

    tokens: Any
    log_p: Any
    best_tokens: Any
    best_score: Any
    past: Any


class BeamSearch:
    """Translates any number of batches with one compiled graph, whatever their shapes.

    A hypothesis is scored by log p / length ** length_penalty, where the length includes `EOS`, as in fairseq, with
    which the published numbers were computed. Of the `beam` likeliest candidates of a step, those that end with `EOS`
    are finished; the `beam` likeliest of the others stay live. The search ends when no live hypothesis could beat the
    best finished one, even if all its further subwords were certain. Fairseq stops earlier, at the `beam`-th finished
    hypothesis.

    A translation is at most `extra_length` subwords longer than its source, both including `EOS`; at that length, only
    `EOS` is allowed. It never contains `PAD` or `BOS`, and does not depend on the rest of the batch.

    Args:
        model: The translation model. Its weights may change between calls.
        beam: Live hypotheses per sentence; 1 without a length penalty is greedy search.
        length_penalty: >= 0; larger values favour longer translations.
        extra_length: >= 0; subwords by which a translation may be longer than its source.
    """

    def __init__(
        self, model: TranslationModel, beam: int = 4, length_penalty: float = 0.6, extra_length: int = 50
    ) -> None:
        self.model, self.beam, self.length_penalty, self.extra_length = model, beam, length_penalty, extra_length
        signature = [tf.TensorSpec([None, None], tf.int32)]
        # AutoGraph has nothing to convert here; turning it off halves the time to the first translation.
        self._compiled = tf.function(self._search, input_signature=signature, autograph=False)

    def __call__(self, source: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """The best translations of [batch, positions]: int32 [batch, length], and their scores, float32 [batch].

        Each translation has no `BOS`, ends with `EOS` and is padded with `PAD`.
        """
        tokens, scores = self._compiled(tf.cast(source, tf.int32))
        return tokens, scores

    def _search(self, source: Any) -> tuple[Any, Any]:
        longest = tf.reduce_sum(tf.cast(source != PAD, tf.int32), axis=1) + self.extra_length
        memory, past = self.start(source)
        state = self._first_state(tf.shape(source)[0], past)
        last: _Beams = tf.while_loop(
            lambda state: self._may_improve(state, longest),
            lambda state: (self._step(state, memory, longest),),
            (state,),
            # Some of the tensors grow.
            shape_invariants=(tf.nest.map_structure(lambda x: tf.TensorShape([None] * len(x.shape)), state),),
        )[0]
        lengths = tf.reduce_sum(tf.cast(last.best_tokens != PAD, tf.int32), axis=1)
        return last.best_tokens[:, : tf.reduce_max(lengths)], last.best_score

    def start(self, source: Any) -> tuple[Any, Any]:
        """The memory, which stays the same in all steps, and the past, which each step extends."""
        return self.model.start(source, self.beam)

    def logits(self, tokens: Any, past: Any, memory: Any) -> tuple[Any, Any]:
        """The logits [batch, beam, vocabulary] after the live hypotheses, and the past that includes them."""
        return self.model.step(tokens[:, :, -1], past, memory)

    def follow(self, past: Any, parents: Any) -> Any:
        """The past of new hypotheses, each of which continues an old one."""
        return past.follow(parents)

    def _first_state(self, batch: Any, past: Any) -> _Beams:
        return _Beams(
            tokens=tf.fill([batch, self.beam, 1], BOS),
            # All hypotheses are the same at first, so only one is extended.
            log_p=tf.repeat([[0.0] + [-np.inf] * (self.beam - 1)], batch, axis=0),
            best_tokens=tf.zeros([batch, 0], tf.int32),
            best_score=tf.fill([batch], -np.inf),
            past=past,
        )

    def _may_improve(self, state: _Beams, longest: Any) -> Any:
        # A log probability only falls, and the penalty favours the longest hypothesis.
        return tf.reduce_any(self.score(state.log_p[:, 0], longest) > state.best_score)

    def score(self, log_p: Any, length: Any) -> Any:
        return log_p / tf.cast(length, tf.float32) ** self.length_penalty

    def _step(self, state: _Beams, memory: Any, longest: Any) -> _Beams:
        count = tf.shape(state.tokens)[2]
        logits, past = self.logits(state.tokens, state.past, memory)
        log_p, parents, words = self._candidates(state.log_p, logits, count >= longest)
        best_tokens, best_score = self._best(state, log_p, parents, words)
        log_p, order = tf.math.top_k(tf.where(words == EOS, -np.inf, log_p), self.beam)
        parents, words = (tf.gather(x, order, batch_dims=1) for x in (parents, words))
        tokens = tf.concat([tf.gather(state.tokens, parents, batch_dims=1), words[:, :, None]], axis=2)
        return _Beams(tokens, log_p, best_tokens, best_score, self.follow(past, parents))

    def _candidates(self, log_p: Any, logits: Any, must_end: Any) -> tuple[Any, Any, Any]:
        """The likeliest continuations, at least `beam` of which do not end: log probabilities, parents and words."""
        vocabulary = tf.shape(logits)[2]
        words = tf.range(vocabulary)
        allowed = (words != PAD) & (words != BOS) & ((words == EOS) | ~must_end[:, None])
        all_log_p = tf.where(allowed[:, None], log_p[:, :, None] + tf.nn.log_softmax(logits), -np.inf)
        log_p, chosen = tf.math.top_k(tf.reshape(all_log_p, [-1, self.beam * vocabulary]), 2 * self.beam)
        return log_p, chosen // vocabulary, chosen % vocabulary

    def _best(self, state: _Beams, log_p: Any, parents: Any, words: Any) -> tuple[Any, Any]:
        """The better of the best hypothesis so far and the best of those that end here."""
        ending = tf.where(words == EOS, log_p, -np.inf)[:, : self.beam]
        which = tf.argmax(ending, axis=1)[:, None]
        score = self.score(tf.reduce_max(ending, axis=1), tf.shape(state.tokens)[2])
        parent = tf.gather(parents, which, batch_dims=1)
        tokens = tf.gather(state.tokens, parent, batch_dims=1)[:, 0, 1:]
        tokens = tf.pad(tokens, [[0, 0], [0, 1]], constant_values=EOS)
        better = score > state.best_score
        so_far = tf.pad(state.best_tokens, [[0, 0], [0, 1]], constant_values=PAD)
        return tf.where(better[:, None], tokens, so_far), tf.where(better, score, state.best_score)


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


def _padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    padded = np.full((len(rows), max(map(len, rows))), PAD, np.int32)
    for row, tokens in zip(padded, rows, strict=True):
        row[: len(tokens)] = tokens
    return padded
