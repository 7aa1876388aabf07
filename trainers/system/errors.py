"""Errors that end a program early, each with what a user must change."""

from typing import Any


class DataError(ValueError):
    """Data that cannot be used, with a message that says what to do."""


class DivergedError(Exception):
    """The loss is no longer finite, or updates have stopped."""

    status = "diverged"


class IncompleteError(Exception):
    """Work that has ended without all that was planned. The message says what is missing.

    Args:
        lacking: What is missing, such as "1 failed, 2 missing".
        said: The results so far, for the user to read.
        advice: The reason, and how to continue.
    """

    status = "incomplete"

    def __init__(self, lacking: str, said: str = "", advice: str = "") -> None:
        super().__init__(lacking)
        self.said, self.advice = said, advice


class ConfigError(ValueError):
    """A value that no run can start with: the rule, then the value received."""


def require(holds: Any, rule: str, received: Any) -> None:
    """Raises `ConfigError` with the rule and the value received unless the rule holds."""
    if not holds:
        raise ConfigError(f"{rule}. Received: {received!r}")
