"""A report on the warmup of a run: plain numbers, and three lines of text."""

import dataclasses
from collections.abc import Mapping

import numpy as np

# "Settled" is within a fifth of the later level, as in the paper's figure and in docs/analyses.md.
TOLERANCE = 0.2
# The number of measurements that a spike is compared with.
WINDOW = 20
LOSS_SPIKE, GRADIENT_SPIKE = 1.5, 3.0


@dataclasses.dataclass(frozen=True)
class WarmupReport:
    """Numbers about the warmup of a run.

    Attributes:
        warmup: A description of the warmup.
        updates: The number of updates of the run.
        factor_sum: The sum of 1 - omega_t over the updates: the number of full updates that the warmup cost.
        share: That sum as a share of the updates.
        full_from: The first measured update from which on omega_t stays >= 0.99; `None` if there is none.
        later_rms: The mean of `update_rms` over the second half of the updates: its final level.
        largest_rms: The largest size of an update, warmup factor included, as a multiple of the final level.
        settled: The first measured update whose `update_rms` is within 20 % of the final level, or below it.
        loss_spikes: Updates whose loss is more than 1.5 times the median of the 20 measurements before it.
        gradient_spikes: Updates whose gradients have an RMS of more than 3 times the median of the 20 before.
        suggestions: Periods of a linear warmup to try next, by source: "rule" is 2 / (1 - beta_2), "settled" is where
            the updates settled, "dynamic" is where a dynamic warmup ended.
    """

    warmup: str
    updates: int
    factor_sum: float
    share: float
    full_from: int | None
    later_rms: float
    largest_rms: float
    settled: int | None
    loss_spikes: tuple[int, ...]
    gradient_spikes: tuple[int, ...]
    suggestions: dict[str, float]

    @classmethod
    def of(
        cls,
        history: Mapping[str, np.ndarray],
        warmup: str,
        rule_period: float | None,
        dynamic_end: int | None,
        beginning: int | None = None,
    ) -> "WarmupReport":
        """Makes the report of measurements at updates `t`: `update_rms`, `warmup_factor`, `gradient_rms`, `batch_loss`.

        `beginning` is the number of updates before the run; without it, the first measured update is its first.
        """
        t, size, factor = history["t"], history["update_rms"], history["warmup_factor"]
        last, beginning = int(t[-1]), int(t[0]) - 1 if beginning is None else beginning
        weights = np.diff(t, prepend=beginning)  # the updates that a measurement stands for
        missing = float(np.sum((1 - factor) * weights))
        later = _mean(size[t > (beginning + last) / 2])
        settled = _first(t, size <= (1 + TOLERANCE) * later)
        found = {"rule": rule_period, "settled": settled, "dynamic": dynamic_end}
        return cls(
            warmup=warmup,
            updates=last - beginning,
            factor_sum=missing,
            share=missing / (last - beginning),
            full_from=_first(t, np.minimum.accumulate(factor[::-1])[::-1] >= 0.99),
            later_rms=later,
            largest_rms=_largest(size * factor) / later if later else float("nan"),
            settled=settled,
            loss_spikes=_spikes(t, history["batch_loss"], LOSS_SPIKE),
            gradient_spikes=_spikes(t, history["gradient_rms"], GRADIENT_SPIKE),
            suggestions={name: float(period) for name, period in found.items() if period is not None},
        )

    def lines(self) -> list[str]:
        """The report in three lines."""
        full = (
            "never at the full rate" if self.full_from is None else f"at the full rate from update {self.full_from:,}"
        )
        settled = "not settled" if self.settled is None else f"settled from update {self.settled:,} on"
        periods = ", ".join(f"{period:,.0f} ({_SOURCES[name]})" for name, period in self.suggestions.items())
        return [
            f"warmup: {self.warmup}; {full}; it cost as much as {self.factor_sum:,.1f} of {self.updates:,} full "
            f"updates ({self.share:.1%})",
            f"updates: the largest was {self.largest_rms:.2f} times the final level of {self.later_rms:.3f} alpha; "
            f"{settled}; loss spikes: {_listed(self.loss_spikes)}; gradient spikes: {_listed(self.gradient_spikes)}",
            f"to try next: linear warmup over {periods}" if periods else "to try next: no suggestion",
        ]


_SOURCES = {
    "rule": "2 / (1 - beta_2)",
    "settled": "where the updates settled",
    "dynamic": "where the dynamic warmup ended",
}


def _spikes(t: np.ndarray, values: np.ndarray, times: float) -> tuple[int, ...]:
    """The updates whose value exceeds `times` the median of the measurements before it, or is not finite."""
    found = []
    for place in range(WINDOW, len(t)):
        before = values[place - WINDOW : place]
        usual = np.median(before[np.isfinite(before)]) if np.isfinite(before).any() else np.nan
        is_lost = not np.isfinite(values[place]) and np.isfinite(before).all()
        if is_lost or values[place] > times * usual > 0:
            found.append(int(t[place]))
    return tuple(found)


def _first(t: np.ndarray, holds: np.ndarray) -> int | None:
    return int(t[np.argmax(holds)]) if holds.any() else None


def _mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else float("nan")


def _largest(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else float("nan")


def _listed(updates: tuple[int, ...], most: int = 5) -> str:
    """The number of spikes, and the first few of them.

    >>> _listed(()), _listed((7, 9))
    ('none', '2 (updates 7, 9)')
    """
    if not updates:
        return "none"
    more = ", ..." if len(updates) > most else ""
    return f"{len(updates)} (updates {', '.join(map(str, updates[:most]))}{more})"
