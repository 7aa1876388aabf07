"""Formats durations, numbers and paths for the page."""

import re
from typing import Any

# An absolute path, or one below a home folder, inside a text.
_PATH = re.compile(r"(?<![\w.:/~])(?:~[\w-]*)?/(?:[^\s'\"<>|:,;()]+/)*([^\s'\"<>|:,;()/]+)/?")


def capitalised(text: str) -> str:
    """Capitalises the first letter and, unlike `str.capitalize`, leaves the rest unchanged.

    >>> capitalised("validation BLEU")
    'Validation BLEU'
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


def rounded(value: float) -> str:
    """Rounds a number for the page, as in scales.js: four digits, and no decimals from 1,000 on.

    >>> [rounded(value) for value in (1033.3246, 25000, 0.01731244, 4, 0.5, 1.25e-5)]
    ['1,033', '25,000', '0.01731', '4', '0.5', '1.25e-5']
    """
    if isinstance(value, int) or abs(value) >= 999.95:
        return f"{value:,.0f}"
    return re.sub(r"e-0(\d)", r"e-\1", f"{value:.4g}")


def number_text(value: Any) -> str:
    """
    >>> number_text(25000), number_text("many")
    ('25,000', 'many')
    """
    return rounded(value) if isinstance(value, int | float) else str(value)


def per_cent(share: float, places: int = 0) -> str:
    """
    >>> per_cent(0.0338, 1)
    '3.4 %'
    """
    return f"{100 * share:.{places}f} %"


def without_places(value: Any) -> Any:
    """A text without local folders: only the last part of every path is kept.

    >>> without_places("/home/me/wikitext-2"), without_places("digits"), without_places("2 / (1 - beta_2)")
    ('.../wikitext-2', 'digits', '2 / (1 - beta_2)')
    >>> without_places("failed: No such file: '/home/me/data/train.txt' (or ~/data)")
    "failed: No such file: '.../train.txt' (or .../data)"
    """
    return _PATH.sub(r".../\1", value) if isinstance(value, str) else value
