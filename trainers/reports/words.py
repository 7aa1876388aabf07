"""Small words of the page: durations, numbers, paths."""

from typing import Any


def capitalised(text: str) -> str:
    """Unlike `str.capitalize` it leaves the rest as it is.

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


def number_text(value: Any) -> str:
    """
    >>> number_text(25000), number_text("many")
    ('25,000', 'many')
    """
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def per_cent(share: float, places: int = 0) -> str:
    """
    >>> per_cent(0.0338, 1)
    '3.4 %'
    """
    return f"{100 * share:.{places}f} %"


def without_places(value: Any) -> Any:
    """Where files lie on somebody's disk is nobody's business: of a path, its last name.

    >>> without_places("/home/me/wikitext-2"), without_places("digits")
    ('.../wikitext-2', 'digits')
    """
    is_path = isinstance(value, str) and value.startswith(("/", "~"))
    return f".../{value.rstrip('/').rpartition('/')[2]}" if is_path else value
