"""Formats numbers and lists for readers: the one place that decides digits, for terminal, files and page."""

import collections
import decimal
import itertools
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

NOTHING = "\N{EN DASH}"


def value_text(value: object) -> str:
    """A hyperparameter; a float below 0.1 as 3e-4.

    >>> [value_text(value) for value in (3e-4, 0.0015, 0.1, 0.999, 1, "radam")]
    ['3e-4', '1.5e-3', '0.1', '0.999', '1', 'radam']
    """
    if not isinstance(value, float) or not 0 < abs(value) < 0.1:
        return str(value)
    number = decimal.Decimal(repr(value)).normalize()
    return f"{number.scaleb(-number.adjusted())}e{number.adjusted()}"


def decimals(scale: float | None) -> int:
    """How many decimals to show of numbers that spread by `scale`: two digits of it up to 3.5, one above that.

    >>> [decimals(scale) for scale in (0.12, 0.04, 0.0031, 25.0)]
    [2, 2, 4, 0]
    """
    if not scale:
        return 1
    leading = scale / 10.0 ** math.floor(math.log10(scale))
    return significant(scale, 2 if leading < 3.55 else 1)


def significant(value: float, digits: int) -> int:
    """How many decimals show this many digits of a value.

    >>> significant(0.0342, 2), significant(123.4, 2)
    (3, 0)
    """
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 1


def fixed(value: float, places: int) -> str:
    return f"{round(value, places) + 0.0:.{places}f}"  # + 0.0: no -0.00


def rounded(value: float) -> str:
    """A number to read: four digits, and no decimals from 1,000 on. slider.js has the same rule.

    >>> [rounded(value) for value in (1033.3246, 25000, 0.01731244, 4, 0.5, 1.25e-5)]
    ['1,033', '25,000', '0.01731', '4', '0.5', '1.25e-5']
    """
    if isinstance(value, int) or abs(value) >= 999.95:
        return f"{value:,.0f}"
    return re.sub(r"e-0(\d)", r"e-\1", f"{value:.4g}")


def signed(value: float, places: int) -> str:
    """A number with its sign, including a plus.

    >>> signed(0.126, 2), signed(-0.001, 2)
    ('+0.13', '+0.00')
    """
    return f"{round(value, places) + 0.0:+.{places}f}"


def p_text(p: float) -> str:
    """A p value, with two digits.

    >>> [p_text(p) for p in (0.0004, 0.0123, 0.04996, 0.553, 1.0)]
    ['p < 0.001', 'p = 0.012', 'p = 0.05', 'p = 0.55', 'p = 1']
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "run"), counted(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(names: Sequence[str]) -> str:
    """
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def ranges(integers: Iterable[int]) -> str:
    """Ascending integers in the form that a flag takes.

    >>> ranges([1, 2, 3, 7]), ranges([5])
    ('1-3,7', '5')
    """
    groups = itertools.groupby(enumerate(integers), key=lambda pair: pair[1] - pair[0])
    parts = ([integer for _, integer in group] for _, group in groups)
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """A table for a terminal; the first line has the headings."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def markdown_table(lines: Sequence[Sequence[str]]) -> str:
    """A table for a page; the first line has the headings.

    >>> print(markdown_table([["method", "error"], ["radam", "5.1"]]))
    | method | error |
    | --- | --- |
    | radam | 5.1 |
    """
    headings, *rows = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([headings, f"|{' --- |' * len(lines[0])}", *rows])


def distinct(titles: Sequence[str], sources: Sequence[str], kinds: Sequence[Any] | None = None) -> list[str]:
    """Titles, each followed by its source where another one, of the same kind if there are kinds, is the same.

    >>> distinct(["MNIST", "EMNIST", "MNIST"], ["a", "b", "c"])
    ['MNIST, a', 'EMNIST', 'MNIST, c']
    """
    keys = [*zip(titles, kinds or titles, strict=True)]
    counts = collections.Counter(keys)
    return [
        f"{title}, {source}" if counts[key] > 1 else title
        for title, source, key in zip(titles, sources, keys, strict=True)
    ]


def upper_first(text: str) -> str:
    """
    >>> upper_first("small Transformer, WikiText-2")
    'Small Transformer, WikiText-2'
    """
    return text[:1].upper() + text[1:]


def duration(seconds: float | None) -> str:
    """
    >>> duration(42.4), duration(3660), duration(None)
    ('42 s', '1 h 01 min', '')
    """
    if seconds is None:
        return ""
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def per_cent(share: float, places: int = 0) -> str:
    """
    >>> per_cent(0.0338, 1)
    '3.4 %'
    """
    return f"{100 * share:.{places}f} %"


# An absolute path, or one below a home folder, inside a text.
_PATH = re.compile(r"(?<![\w.:/~])(?:~[\w-]*)?/(?:[^\s'\"<>|:,;()]+/)*([^\s'\"<>|:,;()/]+)/?")


def without_places(value: Any) -> Any:
    """A text without local folders: only the last part of every path is kept.

    >>> without_places("/home/me/wikitext-2"), without_places("digits"), without_places("2 / (1 - beta_2)")
    ('.../wikitext-2', 'digits', '2 / (1 - beta_2)')
    >>> without_places("failed: No such file: '/home/me/data/train.txt' (or ~/data)")
    "failed: No such file: '.../train.txt' (or .../data)"
    """
    return _PATH.sub(r".../\1", value) if isinstance(value, str) else value
