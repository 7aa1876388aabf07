"""How many steps to run in one call of the graph: enough to be fast, few enough to react to a signal soon."""

import time

SECONDS = 1.0  # per call


class Pace:
    """Chooses the number of steps per call from the time that steps take."""

    def __init__(self) -> None:
        self._steps = 1  # nothing is known yet

    def steps(self, left: int) -> int:
        """The number of steps in the next call, at most `left`."""
        return min(self._steps, left)

    def took(self, steps: int, seconds: float) -> None:
        self._steps = max(1, int(steps * SECONDS / max(seconds, 1e-6)))


class Speed:
    """Examples per second between two records. The first step of a process, which compiles, is left out."""

    def __init__(self) -> None:
        self._first = True
        self.restart()

    def restart(self) -> None:
        self._weight, self._seconds = 0.0, 0.0

    def took(self, weight: float, seconds: float) -> None:
        if not self._first:
            self._weight, self._seconds = self._weight + weight, self._seconds + seconds
        self._first = False

    @property
    def per_second(self) -> float | None:
        """`None` if there was only a first step."""
        return self._weight / self._seconds if self._seconds else None


class Clock:
    """The wall time of a run, without pauses between its processes, and when the next checkpoint is due."""

    def __init__(self, checkpoint_minutes: float) -> None:
        self._interval = 60 * checkpoint_minutes
        self.restart(0.0)

    def restart(self, seconds: float) -> None:
        """Restarts the clock for a run that has already taken `seconds`."""
        self._began = self._saved = time.monotonic()
        self._before = seconds

    @property
    def seconds(self) -> float:
        return self._before + time.monotonic() - self._began

    def saved(self) -> None:
        self._saved = time.monotonic()

    @property
    def is_checkpoint_due(self) -> bool:
        return bool(self._interval) and time.monotonic() - self._saved >= self._interval
