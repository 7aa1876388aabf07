"""The paper's observations on its figure 1, made on the measurements of a run."""

import itertools
from collections.abc import Sequence

import numpy as np

from trainers.results.folders import Series

# An update magnitude has settled when it is first within this factor of its later level.
NEAR = 1.2
# The iterations that count as the start, and one long after it: where the embedded analysis ends.
EARLY = 20
LATER = 400


def findings(series: Series) -> list[str]:
    """A line for each of the paper's observations: this run's numbers, then the paper's."""
    return [_noise(series), _moments(series), _update_sizes(series)]


def _noise(series: Series) -> str:
    lasting = first_lasting(series["t"], [value > 1 for value in series["gradient_cv_median"]])
    here = "does not stay above 1" if lasting is None else f"stays above 1 from iteration {lasting} on"
    return f"gradient noise: the median coefficient of variation {here} (paper: about 50)"


def _moments(series: Series) -> str:
    first, mean = series["moment_correlation"][0], early_correlation(series)
    later = ", ".join(f"{value:.2f} at {t:.0f}" for t, value in correlations(series).items())
    return (
        f"moments: the correlation of |m| and sqrt(v) is {first:.2f} at first and {mean:.2f} on average up to "
        f"iteration {EARLY}, then {later} (paper: extremely correlated)"
    )


def early_correlation(series: Series) -> float:
    """The mean correlation of |m| and sqrt(v) at the start.

    >>> early_correlation({"t": [1, 20, 21], "moment_correlation": [1.0, 0.5, 0.0]})
    0.75
    """
    early = np.asarray(series["t"]) <= EARLY
    return float(np.nanmean(np.asarray(series["moment_correlation"])[early]))


def correlations(series: Series, moments: Sequence[float] = (EARLY, LATER)) -> dict[float, float]:
    """The correlation of |m| and sqrt(v) at the last measurements up to some iterations, and at the end.

    >>> correlations({"t": [1, 19, 21, 300], "moment_correlation": [1.0, 0.9, 0.8, 0.5]}, moments=(20, 400))
    {19: 0.9, 300: 0.5}
    """
    t = series["t"]
    places = [sum(moment <= wanted for moment in t) - 1 for wanted in (*moments, t[-1])]
    return {t[place]: series["moment_correlation"][place] for place in places}


def _update_sizes(series: Series) -> str:
    settled, level = settling(series["t"], series["update_median"])
    return (
        f"update sizes: the median starts at {series['update_median'][0]:.2f} alpha and settles after {settled} "
        f"iterations around {level:.2f} alpha (paper: 1, about 100, 0.15)"
    )


def first_lasting(t: Sequence[float], holds: Sequence[bool]) -> float | None:
    """The first t from which a condition holds at every measured t; None if it does not hold at the last.

    >>> first_lasting([1, 2, 4, 8], [True, False, True, True])
    4
    """
    held = [*itertools.takewhile(lambda pair: pair[1], zip(reversed(t), reversed(holds), strict=True))]
    return held[-1][0] if held else None


def settling(t: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """When falling values first come within 20 % of their later level, and that level: the second half's mean.

    >>> settling([1, 2, 4, 8, 10], [1.0, 0.6, 0.21, 0.19, 0.21])
    (4, 0.2)
    """
    moments, numbers = np.asarray(t), np.asarray(values)
    level = float(numbers[moments > moments[-1] / 2].mean())
    return t[int(np.argmax(numbers <= NEAR * level))], level
