"""Paths in messages."""

import os
from pathlib import Path


def shown(path: str | Path) -> str:
    """A path as one line of plain text, whatever bytes its name has.

    >>> shown("two\\nlines.jpg"), shown(os.fsdecode(b"caf\\xe9.jpg"))
    ('two\\\\nlines.jpg', 'caf\\\\xe9.jpg')
    """
    text = os.fsencode(path).decode(errors="backslashreplace")
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
