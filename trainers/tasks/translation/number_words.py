"""Numbers in English and German words: an endless parallel corpus, generated with `num2words`.

German puts the units before the tens ("einundzwanzig") and writes a number below a million as one word, so there is
more to learn than a list of words.
"""

import random
import zlib
from collections.abc import Callable
from typing import Any

from num2words.lang_DE import Num2Word_DE
from num2words.lang_EN import Num2Word_EN

DIGITS = 10  # of the longest number
YEARS = (1000, 2100)  # before, num2words says "einshundert"; after, hundreds that nobody says
ALWAYS_SEEN = 100  # smaller numbers teach the words themselves and are never held out
HELD_OUT = 10  # one in this many other numbers is held out


def number_pairs(count: int, seed: int, held_out: bool) -> list[tuple[str, str]]:
    """Generates `count` different pairs of an English text and the same text in German.

    The texts are cardinals, ordinals, years and amounts in euros, given as a number of cents. Whether a number is held
    out depends neither on its kind nor on the seed, so the two parts have no number in common.

    >>> number_pairs(2, seed=0, held_out=True)
    [('one euro, fifteen cents', 'ein Euro und fünfzehn Cent'), ('one thousand and four', 'eintausendvier')]
    """
    generator = random.Random(seed)
    # Two kinds can have the same words: the number 1000 and the year.
    pairs: dict[tuple[str, str], None] = {}
    seen = set()
    while len(pairs) < count:
        [kind] = generator.choices(list(KINDS), [share for share, *_ in KINDS.values()])
        _, draw, method = KINDS[kind]
        number = draw(generator)
        if is_held_out(number) == held_out and (kind, number) not in seen:
            seen.add((kind, number))
            pairs[in_words(ENGLISH, method, number), in_words(GERMAN, method, number)] = None
    return list(pairs)


def is_held_out(number: int) -> bool:
    return number >= ALWAYS_SEEN and zlib.crc32(b"%d" % number) % HELD_OUT == 0


def in_words(language: Any, method: str, number: int) -> str:
    words: str = getattr(language, method)(number)
    # num2words 0.5 says "einhunderteinstausend", and makes the same mistake in all such thousands.
    return words.replace("einstausend", "eintausend")


def _any_magnitude(first: int, digits: int) -> Callable[[random.Random], int]:
    """Returns a function that draws numbers >= `first`; all lengths up to `digits` digits are equally likely."""

    def draw(generator: random.Random) -> int:
        end = 10 ** generator.randint(1, digits)
        return generator.randrange(max(first, end // 10 if end > 10 else 0), end)

    return draw


def _quick(language: Any) -> Any:
    """Removes the names of larger numbers from a language: num2words tries all of them for each part of a number."""
    for value in [value for value in language.cards if value > 10**DIGITS]:
        del language.cards[value]
    return language


ENGLISH, GERMAN = _quick(Num2Word_EN()), _quick(Num2Word_DE())
# The relative frequency of each kind, its numbers, and the method of num2words.
KINDS: dict[str, tuple[int, Callable[[random.Random], int], str]] = {
    "cardinal": (4, _any_magnitude(0, DIGITS), "to_cardinal"),
    "ordinal": (3, _any_magnitude(1, 6), "to_ordinal"),  # from a million on, "Million" loses its capital
    "year": (1, lambda generator: generator.randrange(*YEARS), "to_year"),
    "euros": (2, _any_magnitude(0, 8), "to_currency"),
}
