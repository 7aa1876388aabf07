"""Timing on a noisy machine: contenders take turns, and medians are compared."""

import statistics
import time
from collections.abc import Callable, Iterable


def milliseconds(function: Callable[[], object], repeats: int) -> float:
    """The mean duration of `repeats` calls."""
    start = time.perf_counter()
    for _ in range(repeats):
        function()
    return (time.perf_counter() - start) / repeats * 1e3


def interleaved(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Asks every contender for a duration, `rounds` times in turn."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, measure in contenders.items():
            times[name].append(measure())
    return times


def ratio(times: dict[str, list[float]], name: str, rival: str) -> float:
    """The median over the rounds of one contender's duration divided by its rival's in the same round."""
    return statistics.median(a / b for a, b in zip(times[name], times[rival], strict=True))


def print_medians(times: dict[str, list[float]], unit: str = "ms") -> None:
    width = max(map(len, times))
    for name, values in times.items():
        low, high = min(values), max(values)
        print(f"  {name:<{width}}  {statistics.median(values):9.2f} {unit}   ({low:.2f} to {high:.2f})")


def print_ratios(rows: Iterable[tuple[str, float]]) -> None:
    """Prints measured values that have no goal."""
    for text, value in rows:
        print(f"  {text:<66} {value:7.3f}")


def print_goals(rows: Iterable[tuple[str, float, float]]) -> None:
    """Prints measured values beside their goals."""
    for text, value, goal in rows:
        print(f"  {text:<66} {value:7.3f}   goal <= {goal:<5}  {'reached' if value <= goal else 'MISSED'}")
