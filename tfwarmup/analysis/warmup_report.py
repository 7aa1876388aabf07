"""A report on the warmup of a run: plain numbers, and three lines of text."""

import dataclasses
import math
from collections.abc import Callable, Mapping

import numpy as np

# "Settled" is within a fifth of the later level, as in the paper's figure and in docs/analyses.md.
TOLERANCE = 0.2
# The number of measurements that a spike is compared with.
WINDOW = 20
LOSS_SPIKE, GRADIENT_SPIKE = 1.5, 3.0
# The verdict, fitted on the development runs of docs/dynamic_warmup.md: a warmup is too short if the mean size of
# WINDOW updates falls below this share of the size of noise, while the loss is above this share of its first value.
# Updates so small come from gradients that contradict each other: the steps are too long for the loss. Later, when a
# model has learned its data by heart, updates become small for another reason.
NOISE_SHARE, LOSS_SHARE = 0.47, 0.1
LOSS_WINDOW = 10
TOO_SHORT = "too short"
FULL = 0.99  # from this factor on, the rate is called full


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
        noise_rms: The size of an update if the gradients are noise, sqrt((1 - beta_1) / (1 + beta_1)).
        smallest_rms: The smallest mean of 20 consecutive values of `update_rms`, as a multiple of `noise_rms`, while
            the loss (a median of 10) is above a tenth of its first value. `None` unless every update was measured from
            the first one on, and the first loss is positive and stays above a tenth for 20 updates.
        lost_from: The first measured update of those at the end that are not finite: the run is lost from there on.
            `None` if the last one is finite.
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
    noise_rms: float
    smallest_rms: float | None
    lost_from: int | None
    suggestions: dict[str, float]

    @classmethod
    def of(
        cls,
        history: Mapping[str, np.ndarray],
        warmup: str,
        rule_period: float | None,
        dynamic_end: int | None,
        beta_1: float,
        beginning: int | None = None,
    ) -> "WarmupReport":
        """Makes the report of measurements at updates `t`: `update_rms`, `warmup_factor`, `gradient_rms`, `batch_loss`.

        `beginning` is the number of updates before the run; without it, the first measured update is its first.
        """
        t, size, factor = history["t"], history["update_rms"], history["warmup_factor"]
        last, beginning = int(t[-1]), int(t[0]) - 1 if beginning is None else beginning
        weights = np.diff(t, prepend=beginning)  # the updates that a measurement stands for
        missing = float(np.sum((1 - factor) * weights))
        later = _of_finite(np.mean, size[t > (beginning + last) / 2])
        settled = _first(t, size <= (1 + TOLERANCE) * later)
        noise = math.sqrt((1 - beta_1) / (1 + beta_1))
        found = {"rule": rule_period, "settled": settled, "dynamic": dynamic_end}
        return cls(
            warmup=warmup,
            updates=last - beginning,
            factor_sum=missing,
            share=missing / (last - beginning),
            full_from=_first(t, np.minimum.accumulate(factor[::-1])[::-1] >= FULL),
            later_rms=later,
            largest_rms=_of_finite(np.max, size * factor) / later if later else math.nan,
            settled=settled,
            loss_spikes=_spikes(t, history["batch_loss"], LOSS_SPIKE),
            gradient_spikes=_spikes(t, history["gradient_rms"], GRADIENT_SPIKE),
            noise_rms=noise,
            smallest_rms=_smallest(t, size / noise, history["batch_loss"]),
            # At a factor of 0, a momentum step of RAdam, the size is not defined.
            lost_from=_first(t, np.logical_and.accumulate((~np.isfinite(size) & (factor > 0))[::-1])[::-1]),
            suggestions={name: float(period) for name, period in found.items() if period is not None},
        )

    @property
    def verdict(self) -> str | None:
        """`"too short"` if `smallest_rms` is below 0.47, and `None` otherwise.

        docs/dynamic_warmup.md says how often "too short" is right. `None` does not mean that the warmup is long enough:
        on Transformers the check misses many that are too short.
        """
        return TOO_SHORT if self.smallest_rms is not None and is_too_short(self.smallest_rms) else None

    def lines(self) -> list[str]:
        """The report in three lines."""
        full = (
            "never at the full rate" if self.full_from is None else f"at the full rate from update {self.full_from:,}"
        )
        periods = ", ".join(f"{period:,.0f} ({_SOURCES[name]})" for name, period in self.suggestions.items())
        return [
            f"warmup: {self._verdict_text()}{self.warmup}; {full}; it cost as much as {self.factor_sum:,.1f} of "
            f"{self.updates:,} full updates ({self.share:.1%})",
            f"updates: {self._updates_text()}; loss spikes: {_listed(self.loss_spikes)}; gradient spikes: "
            f"{_listed(self.gradient_spikes)}",
            f"to try next: {self._advice(periods)}",
        ]

    def _verdict_text(self) -> str:
        is_lost = self.verdict is None and self.lost_from is not None  # its updates until then say nothing
        if self.smallest_rms is None or is_lost:
            return ""
        found = self.verdict or f"no sign that it is {TOO_SHORT}"
        return f"{found} (updates fell to {self.smallest_rms:.2f} times the size of noise; limit {NOISE_SHARE}); "

    def _updates_text(self) -> str:
        if self.lost_from is not None:
            return f"not finite from update {self.lost_from:,} on"
        settled = "not settled" if self.settled is None else f"settled from update {self.settled:,} on"
        return f"the largest was {self.largest_rms:.2f} times the final level of {self.later_rms:.3f} alpha; {settled}"

    def _advice(self, periods: str) -> str:
        finite = ["finite inputs"] if self.lost_from is not None else []
        gentler = ["a lower learning rate or a longer warmup"] if finite or self.verdict == TOO_SHORT else []
        linear = [f"linear warmup over {periods}"] if periods else []
        return "; ".join([*finite, *gentler, *linear]) or "no suggestion"


def is_too_short(smallest_rms: float) -> bool:
    """Whether `WarmupReport.smallest_rms` shows that the warmup was too short."""
    return smallest_rms < NOISE_SHARE


_SOURCES = {
    "rule": "2 / (1 - beta_2)",
    "settled": "where the updates settled",
    "dynamic": "where the dynamic warmup ended",
}


def _smallest(t: np.ndarray, size: np.ndarray, loss: np.ndarray) -> float | None:
    """The smallest mean of WINDOW sizes while the loss is above LOSS_SHARE of its first value."""
    if t[0] != 1 or len(t) < WINDOW or np.any(np.diff(t) != 1) or not loss[0] > 0:
        return None
    levels = [np.median(loss[max(0, end - LOSS_WINDOW) : end]) for end in range(1, len(t) + 1)]
    low = np.array(levels) < LOSS_SHARE * loss[0]
    windows = (slice(start, start + WINDOW) for start in range(len(t) - WINDOW + 1))
    means = [_of_finite(np.mean, size[window]) for window in windows if not low[window].any()]
    known = [mean for mean in means if np.isfinite(mean)]
    return min(known) if known else None


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


def _of_finite(function: Callable[[np.ndarray], float], values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(function(finite)) if finite.size else math.nan


def _listed(updates: tuple[int, ...], most: int = 5) -> str:
    """The number of spikes, and the first few of them.

    >>> _listed(()), _listed((7, 9))
    ('none', '2 (updates 7, 9)')
    """
    if not updates:
        return "none"
    more = ", ..." if len(updates) > most else ""
    return f"{len(updates)} (updates {', '.join(map(str, updates[:most]))}{more})"
