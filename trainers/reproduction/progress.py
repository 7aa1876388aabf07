"""Shows how long a reproduction takes: before it begins, and while its steps run."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from tqdm import tqdm

from trainers.reproduction.steps import Step
from trainers.results.formats import duration


def outlook(steps: Sequence[Step], shares: Mapping[str, float], without_data: Sequence[Step]) -> str:
    """A line for each step, with its time on two cores and how much of it is done; then the sum.

    Args:
        steps: The steps that will run.
        shares: The share of each step that is already done, 0 to 1, by its name.
        without_data: The steps that cannot run, because `--data` lacks their data.
    """
    lines = [_line(step, shares.get(step.name, 0.0)) for step in steps]
    total = sum(step.seconds for step in steps)
    left = sum(step.seconds * (1 - shares.get(step.name, 0.0)) for step in steps)
    lines.append(f"On two cores: {duration(total)} in total, {duration(left)} of it remaining.")
    if without_data:
        names = ", ".join(step.name for step in without_data)
        lines.append(f"Skipped, because --data lacks their data: {names}.")
    return "\n".join(lines)


def _line(step: Step, share: float) -> str:
    state = "done" if share == 1 else f"{100 * share:.0f} % done" if share else ""
    return f"  {step.name:18} {duration(step.seconds):>10}  {step.title}{f' ({state})' if state else ''}"


LAYOUT = "about {left} left |{bar:10}| {place}"  # a narrow terminal cuts off the end
TRUSTED = 60  # seconds of work until the measured pace counts as much as the planned one


class _Bar(tqdm):
    """A progress bar with two more fields in its layout."""

    left, place = "", ""

    @property
    def format_dict(self) -> dict[str, Any]:
        return {**super().format_dict, "left": self.left, "place": self.place}


class StepProgress:
    """A progress bar on a terminal; one line per step elsewhere. Progress is in planned seconds.

    Args:
        steps: All steps.
        shares: The share of each step that is already done, 0 to 1, by its name.
        terminal: Whether there is a terminal; detected by default.
    """

    def __init__(self, steps: Sequence[Step], shares: Mapping[str, float], terminal: bool | None = None) -> None:
        self.steps = list(steps)
        self._shares = {step.name: shares.get(step.name, 0.0) for step in steps}
        self._total = sum(step.seconds for step in steps)
        self._found = self._known()
        hidden = None if terminal is None else not terminal
        self._bar = _Bar(total=self._total, initial=self._found, bar_format=LAYOUT, disable=hidden)
        self._opened = self._began = time.monotonic()

    def __enter__(self) -> "StepProgress":
        return self

    def __exit__(self, *_: Any) -> None:
        self._bar.close()

    def show(self, step: Step, done: tuple[int, int, str] | None) -> None:
        """Shows the running step and its progress."""
        if done:
            self._shares[step.name] = done[0] / done[1]
        known = self._known()
        pace = (time.monotonic() - self._opened + TRUSTED) / (known - self._found + TRUSTED)
        self._bar.left = tqdm.format_interval((self._total - known) * pace)
        self._bar.place = self._place(step) + (f": {done[0]} of {done[1]} {done[2]}" if done else "")
        self._bar.n = known
        self._bar.refresh()

    def begin(self, step: Step) -> None:
        self._began = time.monotonic()
        if self._bar.disable:
            self._bar.write(f"{self._place(step)} ...")
        self.show(step, None)

    def end(self, step: Step, failed: str = "") -> None:
        self._shares[step.name] = 1.0
        self._bar.write(f"{self._place(step)}: {failed or f'done in {time.monotonic() - self._began:.0f} s'}")

    def _known(self) -> float:
        """The work done, in planned seconds."""
        return sum(step.seconds * self._shares[step.name] for step in self.steps)

    def _place(self, step: Step) -> str:
        return f"{self.steps.index(step) + 1} of {len(self.steps)}, {step.title}"
