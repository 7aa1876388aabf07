"""Numbers in words are right in both languages, and those held out are never trained with."""

import pytest

from trainers.tasks.translation import number_words
from trainers.tasks.translation.number_words import ENGLISH, GERMAN, KINDS, is_held_out, number_pairs

UNITS = [
    *("null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"),
    *("dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"),
]
TENS = ["", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]


def german(number):
    """A number below a million, written from the rules of the language."""
    if number < 20:
        return UNITS[number]
    if number < 100:
        tens, units = divmod(number, 10)
        return f"{before(units)}und{TENS[tens]}" if units else TENS[tens]
    size, name = (1000, "tausend") if number >= 1000 else (100, "hundert")
    count, rest = divmod(number, size)
    return before(count) + name + (german(rest) if rest else "")


def before(number):
    """As it stands before another word: `ein`, not `eins`."""
    return german(number).removesuffix("s") if number % 100 == 1 else german(number)


def german_ordinal(number):
    irregular = {1: "erste", 3: "dritte", 7: "siebte", 8: "achte"}
    if number in (100, 1000):
        return german(number).removeprefix("ein") + "ste"
    last = number % 100
    if last in irregular:
        return german(number).removesuffix(german(last)) + irregular[last]
    return german(number) + ("te" if 0 < last < 20 else "ste")


def numbers_of(monkeypatch, count, seed, held_out):
    """The kinds and numbers behind the words."""
    with monkeypatch.context() as patch:
        patch.setattr(number_words, "in_words", lambda language, method, number: (method, number))
        return [english for english, _ in number_pairs(count, seed, held_out)]


def test_german_follows_the_rules_of_the_language():
    for number in [*range(2200), *range(2200, 10**6, 997), *range(101_000, 10**6, 100_000), 999_999]:
        assert number_words.in_words(GERMAN, "to_cardinal", number) == german(number)
        if number:
            assert number_words.in_words(GERMAN, "to_ordinal", number) == german_ordinal(number)


@pytest.mark.parametrize(
    ("kind", "number", "english", "translation"),
    [
        ("cardinal", 21, "twenty-one", "einundzwanzig"),
        ("cardinal", 1_201_974, "one million, two hundred and one thousand, nine hundred and seventy-four", None),
        ("cardinal", 2_000_000_001, "two billion and one", "zwei Milliarden eins"),
        ("ordinal", 101_000, "one hundred and one thousandth", "einhunderteintausendste"),
        ("year", 1984, "nineteen eighty-four", "neunzehnhundertvierundachtzig"),
        ("year", 1066, "ten sixty-six", "eintausendsechsundsechzig"),
        ("year", 2009, "two thousand and nine", "zweitausendneun"),
        ("euros", 10_101, "one hundred and one euro, one cent", "einhundertein Euro und ein Cent"),
        ("euros", 5, "zero euro, five cents", "null Euro und fünf Cent"),
    ],
)
def test_words_of_every_kind(kind, number, english, translation):
    method = KINDS[kind][2]
    assert number_words.in_words(ENGLISH, method, number) == english
    expected = translation or "eine Million zweihunderteintausendneunhundertvierundsiebzig"
    assert number_words.in_words(GERMAN, method, number) == expected


def test_a_number_held_out_is_never_trained_with_in_any_kind(monkeypatch):
    train = numbers_of(monkeypatch, 5000, 0, held_out=False)
    held_out = numbers_of(monkeypatch, 5000, 1, held_out=True)
    assert {method for method, _ in train} == {method for method, _ in held_out} == {row[2] for row in KINDS.values()}
    assert not {number for _, number in train} & {number for _, number in held_out}
    assert min(number for _, number in held_out) >= 100
    for half in (train, held_out):  # the same number does come in several kinds, or the above would say little
        assert len({number for _, number in half}) < len(half) - 100


def test_a_tenth_of_the_numbers_from_100_on_is_held_out():
    assert not any(map(is_held_out, range(100)))
    for first in (100, 1000, 10**6):
        assert 0.08 < sum(map(is_held_out, range(first, first + 5000))) / 5000 < 0.12


def test_numbers_are_of_every_magnitude(monkeypatch):
    train = numbers_of(monkeypatch, 3000, 0, held_out=False)
    digits = {kind: {len(str(number)) for method, number in train if method == KINDS[kind][2]} for kind in KINDS}
    assert digits == {
        "cardinal": {*range(1, 11)},
        "ordinal": {*range(1, 7)},
        "year": {4},
        "euros": {*range(1, 9)},
    }


def test_pairs_are_a_function_of_the_seed_and_differ_from_each_other():
    pairs = number_pairs(3000, 0, held_out=False)
    assert pairs == number_pairs(3000, 0, held_out=False)
    assert pairs[:10] == number_pairs(10, 0, held_out=False)
    assert pairs[:10] != number_pairs(10, 1, held_out=False)
    assert len({*pairs}) == len({english for english, _ in pairs}) == 3000


def test_no_word_of_a_held_out_number_is_new():
    def words(pairs):
        return {word for english, _ in pairs for word in english.replace("-", " ").replace(",", "").split()}

    assert words(number_pairs(500, 1, held_out=True)) <= words(number_pairs(3000, 0, held_out=False))
