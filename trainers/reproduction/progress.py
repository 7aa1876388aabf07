"""Says which step is running and how long is left."""

import time
from collections.abc import Sequence
from typing import Any

from tqdm import tqdm

from trainers.reproduction.steps import Step

LAYOUT = "about {left} left |{bar:10}| {place}"  # what is cut off on a narrow terminal is the end
TRUSTED = 60  # seconds: until about that much is done, the pace is rather taken to be the known one


class _Bar(tqdm):
    """A bar whose layout has two more fields."""

    left, place = "", ""

    @property
    def format_dict(self) -> dict[str, Any]:
        return {**super().format_dict, "left": self.left, "place": self.place}


class Progress:
    """A line on a terminal; a line a step anywhere else. Counted in the seconds that the steps are known to take.

    Args:
        steps: All of them.
        finished: Those that are done already.
        terminal: Whether there is one; found out by default.
    """

    def __init__(self, steps: Sequence[Step], finished: Sequence[Step], terminal: bool | None = None) -> None:
        self.steps = list(steps)
        self._total = sum(step.seconds for step in steps)
        self._found = self._before = sum(step.seconds for step in finished)
        hidden = None if terminal is None else not terminal
        self._bar = _Bar(total=self._total, initial=self._before, bar_format=LAYOUT, disable=hidden)
        self._opened = self._began = time.monotonic()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: Any) -> None:
        self._bar.close()

    def show(self, step: Step, done: tuple[int, int, str] | None) -> None:
        """The step that is running, and how far it is."""
        known = self._before + (step.seconds * done[0] / done[1] if done else 0)
        pace = (time.monotonic() - self._opened + TRUSTED) / (known - self._found + TRUSTED)
        self._bar.left = tqdm.format_interval((self._total - known) * pace)
        self._bar.place = self._place(step) + (f": {done[0]} of {done[1]} {done[2]}" if done else "")
        self._bar.n = known
        self._bar.refresh()

    def begin(self, step: Step) -> None:
        self._began = time.monotonic()
        if self._bar.disable:
            self._say(f"{self._place(step)} ...")
        self.show(step, None)

    def end(self, step: Step, failed: str = "") -> None:
        self._before += step.seconds
        self._say(f"{self._place(step)}: {failed or f'done in {time.monotonic() - self._began:.0f} s'}")

    def _place(self, step: Step) -> str:
        return f"{self.steps.index(step) + 1} of {len(self.steps)}, {step.title}"

    def _say(self, text: str) -> None:
        self._bar.write(text)
