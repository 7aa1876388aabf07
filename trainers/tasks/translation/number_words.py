"""Numbers in English and in German words: a parallel corpus without end that `num2words` writes.

German says the units before the tens, "einundzwanzig", and writes a number below a million as one word: what is to be
learned is more than a list of words.
"""

import random
import zlib
from collections.abc import Callable
from typing import Any

from num2words.lang_DE import Num2Word_DE
from num2words.lang_EN import Num2Word_EN

from trainers.engine.errors import DataError

DIGITS = 10  # of the longest number
YEARS = (1000, 2100)  # num2words says "einshundert" before, and hundreds that nobody says after
ALWAYS_SEEN = 100  # numbers below teach the words themselves and are never held out
HELD_OUT = 10  # one of so many others is


def number_pairs(count: int, seed: int, held_out: bool) -> list[tuple[str, str]]:
    """So many different pairs of a text in English and the same in German.

    Cardinals, ordinals, years and amounts in euros, whose number is that of the cents. A number is held out or is not,
    whatever its kind and the seed: the two halves have no number in common.

    >>> number_pairs(2, seed=0, held_out=True)
    [('one euro, fifteen cents', 'ein Euro und fünfzehn Cent'), ('one thousand and four', 'eintausendvier')]
    """
    if count < 1:
        raise DataError(f"`count` must be > 0. Received: count={count}")
    generator = random.Random(seed)
    # The words of two kinds can be the same: a thousand, and the year.
    pairs: dict[tuple[str, str], None] = {}
    seen = set()
    while len(pairs) < count:
        [kind] = generator.choices(list(KINDS), [share for share, *_ in KINDS.values()])
        _, draw, method = KINDS[kind]
        number = draw(generator)
        if is_held_out(number) == held_out and (kind, number) not in seen:
            seen.add((kind, number))
            pairs[_words(ENGLISH, method, number), _words(GERMAN, method, number)] = None
    return list(pairs)


def is_held_out(number: int) -> bool:
    return number >= ALWAYS_SEEN and zlib.crc32(b"%d" % number) % HELD_OUT == 0


def _words(language: Any, method: str, number: int) -> str:
    words: str = getattr(language, method)(number)
    # num2words 0.5 says "einhunderteinstausend", and so for every such thousand.
    return words.replace("einstausend", "eintausend")


def _any_magnitude(first: int, digits: int) -> Callable[[random.Random], int]:
    """Draws a number, from `first` on, of any number of digits up to `digits` with the same probability."""

    def draw(generator: random.Random) -> int:
        end = 10 ** generator.randint(1, digits)
        return generator.randrange(max(first, end // 10 if end > 10 else 0), end)

    return draw


def _quick(language: Any) -> Any:
    """A language without the numbers beyond ours: it looks at each of them for each part of a number."""
    for value in [value for value in language.cards if value > 10**DIGITS]:
        del language.cards[value]
    return language


ENGLISH, GERMAN = _quick(Num2Word_EN()), _quick(Num2Word_DE())
# How often a kind is drawn, its numbers, and what num2words calls it.
KINDS: dict[str, tuple[int, Callable[[random.Random], int], str]] = {
    "cardinal": (4, _any_magnitude(0, DIGITS), "to_cardinal"),
    "ordinal": (3, _any_magnitude(1, 6), "to_ordinal"),  # from a million on, "Million" loses its capital
    "year": (1, lambda generator: generator.randrange(*YEARS), "to_year"),
    "euros": (2, _any_magnitude(0, 8), "to_currency"),
}
