"""What can keep a run from its end, apart from a config that no run can start with (`ConfigError`)."""


class DataError(ValueError):
    """Data that cannot be used, with a message that says what to do."""


class DivergedError(Exception):
    """The loss is not a number any more."""

    status = "diverged"
