"""What can keep a run from its end, apart from a config that no run can start with (`ConfigError`)."""


class DataError(ValueError):
    """Data that cannot be used, with a message that says what to do."""


class DivergedError(Exception):
    """The loss is not a number any more."""

    status = "diverged"


class IncompleteError(Exception):
    """Work that has ended without all that was planned. The message says how much is lacking.

    Args:
        lacking: What is lacking, "1 failed, 2 missing" say.
        said: What there is, for the user to read.
        advice: Why, and how to go on.
    """

    status = "incomplete"

    def __init__(self, lacking: str, said: str = "", advice: str = "") -> None:
        super().__init__(lacking)
        self.said, self.advice = said, advice
