"""The expected time of a reproduction, shown before it begins."""

from collections.abc import Mapping, Sequence

from trainers.reports.words import duration
from trainers.reproduction.steps import Step


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
