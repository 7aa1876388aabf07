"""Time of the beam search with cached keys and values, and of the same search without a cache.

Both find the same translations of the same sources, and take every step, because the end is made unlikely. Without a
cache, the decoder reads all previous subwords again in each step; it also computes logits for the last one only, and
encodes the sources once. Command: `python -m benchmarks.beam_search`.
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

from benchmarks.timing import interleaved, milliseconds, print_goals, print_medians, ratio
from trainers.tasks.translation.beam_search import BeamSearch
from trainers.tasks.translation.config import EOS, TranslatorSizes
from trainers.tasks.translation.models import build_translation_model, padding_mask

VOCABULARY, SIZES = 8000, {"layers": 3, "width": 256, "heads": 4, "inner": 1024}
SOURCE_LENGTH, BEAM = 30, 4
GOAL = 0.2


class Cached(BeamSearch):
    """The search itself, with a model that never ends a translation early."""

    def logits(self, tokens, past, memory):
        logits, past = self._all_logits(tokens, past, memory)
        return logits - 1e4 * tf.one_hot(EOS, VOCABULARY), past

    def _all_logits(self, tokens, past, memory):
        return super().logits(tokens, past, memory)


class Uncached(Cached):
    """The same search, which keeps nothing from step to step."""

    def start(self, source):
        encoded, mask = self.model.encode(source), padding_mask(source)
        return (tf.repeat(encoded, self.beam, axis=0), tf.repeat(mask, self.beam, axis=0)), ()

    def _all_logits(self, tokens, past, memory):
        prefixes = tf.reshape(tokens, [-1, tf.shape(tokens)[2]])
        last = self.model.decode(prefixes, *memory)[:, -1]
        return tf.reshape(self.model.logits(last), [-1, self.beam, VOCABULARY]), past

    def follow(self, past, parents):
        return past


def random_sources(sentences):
    tokens = np.random.default_rng(0).integers(EOS + 1, VOCABULARY, (sentences, SOURCE_LENGTH)).astype("int32")
    tokens[:, -1] = EOS
    return tf.constant(tokens)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=8, help="sentences per batch")
    parser.add_argument("--length", type=int, default=50, help="subwords per translation, including the end")
    parser.add_argument("--rounds", type=int, default=7, help="measurements per search")
    arguments = parser.parse_args()
    keras.utils.set_random_seed(0)
    model, source = build_translation_model(VOCABULARY, TranslatorSizes(**SIZES)), random_sources(arguments.sentences)
    extra = arguments.length - SOURCE_LENGTH
    searches = {
        "cached": Cached(model, BEAM, extra_length=extra),
        "uncached": Uncached(model, BEAM, extra_length=extra),
    }
    found = {name: search(source)[0].numpy() for name, search in searches.items()}
    assert found["cached"].shape == (arguments.sentences, arguments.length)
    np.testing.assert_array_equal(found["cached"], found["uncached"])
    times = interleaved(
        {name: lambda search=search: milliseconds(lambda: search(source), 1) for name, search in searches.items()},
        arguments.rounds,
    )
    print(f"{arguments.sentences} sentences, beam {BEAM}, length {arguments.length}, {VOCABULARY} subwords, {SIZES}")
    print_medians(times)
    print(f"  cached, {arguments.sentences / np.median(times['cached']) * 1e3:.1f} sentences per second")
    print_goals([("time, cached / uncached", ratio(times, "cached", "uncached"), GOAL)])


if __name__ == "__main__":
    main()
