"""Says which step is running and how long is left."""

import time
from collections.abc import Sequence
from typing import Any

from tqdm import tqdm

from trainers.reproduction.steps import Step

LAYOUT = "{desc} |{bar:20}| about {remaining} left"


class Progress:
    """A line on a terminal; a line a step anywhere else. Counted in the seconds that the steps are known to take.

    Args:
        steps: All of them.
        finished: Those that are done already.
        terminal: Whether there is one; found out by default.
    """

    def __init__(self, steps: Sequence[Step], finished: Sequence[Step], terminal: bool | None = None) -> None:
        self.steps, self._before = list(steps), sum(step.seconds for step in finished)
        total = sum(step.seconds for step in steps)
        # No smoothing: the pace is that of all steps so far, since some are estimated better than others.
        hidden = None if terminal is None else not terminal
        self._bar = tqdm(total=total, initial=self._before, bar_format=LAYOUT, smoothing=0, disable=hidden)
        self._began = time.monotonic()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: Any) -> None:
        self._bar.close()

    def show(self, step: Step, done: tuple[int, int, str] | None) -> None:
        """The step that is running, and how far it is."""
        detail = f": {done[0]} of {done[1]} {done[2]}" if done else ""
        self._bar.set_description_str(f"{self._place(step)}{detail}", refresh=False)
        self._bar.n = self._before + (step.seconds * done[0] / done[1] if done else 0)
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
