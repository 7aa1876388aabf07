"""Formats durations, shares and paths for the page."""

import re
from typing import Any

# An absolute path, or one below a home folder, inside a text.
_PATH = re.compile(r"(?<![\w.:/~])(?:~[\w-]*)?/(?:[^\s'\"<>|:,;()]+/)*([^\s'\"<>|:,;()/]+)/?")


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


def without_places(value: Any) -> Any:
    """A text without local folders: only the last part of every path is kept.

    >>> without_places("/home/me/wikitext-2"), without_places("digits"), without_places("2 / (1 - beta_2)")
    ('.../wikitext-2', 'digits', '2 / (1 - beta_2)')
    >>> without_places("failed: No such file: '/home/me/data/train.txt' (or ~/data)")
    "failed: No such file: '.../train.txt' (or .../data)"
    """
    return _PATH.sub(r".../\1", value) if isinstance(value, str) else value
