"""The claims about gradients and update sizes, decided by simulations and gradient analyses."""

from collections.abc import Sequence

import numpy as np

from trainers.analysis.findings import EARLY, NEAR, correlations, early_correlation, first_lasting, settling
from trainers.reports.claims import Claim, Holds, Kind, judged, not_measured, of_kind
from trainers.results.records import Series
from trainers.results.runs import Measured

AT = 40  # where the paper's simulation begins to settle
LEVEL, LONG_RUN = 0.16, 0.153
NOISE_FROM, SETTLES, SETTLED_LEVEL = 50, 100, 0.15  # for the paper's network
WITHIN = 2.0  # "about" n iterations: from half of n to twice n
CORRELATED = 0.9

FIRST = "Without warmup, the first update is α for every parameter, even at a local minimum."
DECAY = "Updates at a minimum only begin to settle after some 40 iterations, at a median of 0.16 α."
STATIONARY = "In the long run the median update at a minimum is 0.153 α."
START = "Early gradients are not zero-mean: their median coefficient of variation starts below 1."
NOISE = "The median coefficient of variation of the gradients consistently exceeds 1 only beyond iteration 50."
MOMENTS = "|m| and √v are extremely correlated."
SLOWER = "From a random start the updates fall more slowly than at a minimum: after about 100 iterations."
SETTLING = "From a random start, too, the median update settles around 0.15 α."
NO_SIMULATION = "no simulation of Adam without warmup (run python -m trainers.simulate)"
NO_ANALYSIS = "no gradient analysis (run python -m trainers.gradient_analysis)"


def update_claims(simulations: Sequence[Measured], analyses: Sequence[Measured]) -> list[Claim]:
    """Every claim for every run that can decide it; a claim without such a run is marked as not measured."""
    bare = [each for each in simulations if each.folder.config.get("warmup") == "none"]
    claims = [claim for each in bare for claim in simulation_claims(each, len(bare) > 1)]
    if not bare:
        claims += [
            not_measured(text, paper, "", NO_SIMULATION)
            for text, paper in ((FIRST, "1 α"), (DECAY, "40, 0.16 α"), (STATIONARY, "0.153 α"))
        ]
    claims = of_kind(Kind.SIMULATION, claims)
    simulated = settling(bare[0].series["t"], bare[0].series["median"])[0] if bare else None
    claims += [claim for each in analyses for claim in analysis_claims(each, simulated, len(analyses) > 1)]
    if not analyses:
        texts = ((START, "below 1"), (NOISE, "50"), (MOMENTS, "“extremely correlated”"), (SLOWER, "about 100"))
        claims += [not_measured(text, paper, "", NO_ANALYSIS) for text, paper in (*texts, (SETTLING, "around 0.15 α"))]
    return claims


def simulation_claims(run: Measured, named: bool) -> list[Claim]:
    series, where = run.series, f" ({run.folder.name})" if named else ""
    low, high = min(series["q05"][0], series["q25"][0]), series["q95"][0]
    first = judged(
        FIRST,
        "1 α",
        f"{_alphas(low, high)} (5th to 95th percentile){where}",
        "α to six digits for both percentiles",
        abs(low - 1) < 1e-6 and abs(high - 1) < 1e-6,
    )
    return [first, _decay(series, where), _stationary(series, where)]


def _decay(series: Series, where: str) -> Claim:
    criterion = "within 10 % of its final level between iterations 20 and 80, and 0.15 to 0.17 α at iteration 40"
    median, t = series["median"], series["t"]
    if len(t) < 10 * AT:
        return Claim(DECAY, "40, 0.16 α", f"only {len(t)} iterations{where}", criterion, Holds.UNKNOWN)
    level = _later_level(series)
    begins = first_lasting(t, [abs(value / level - 1) <= 0.1 for value in median])
    at = median[AT - 1]
    when = "never" if begins is None else f"from iteration {begins:.0f} on"
    measured = f"within 10 % of its final level {when}; {at:.4f} α at iteration 40{where}"
    return judged(DECAY, "40, 0.16 α", measured, criterion, _about(begins, AT) and abs(at - LEVEL) <= 0.01)


def _stationary(series: Series, where: str) -> Claim:
    level, criterion = _later_level(series), "0.148 to 0.158 α"
    count = len(series["t"])
    if count < 10 * AT:
        return Claim(STATIONARY, "0.153 α", f"only {count} iterations{where}", criterion, Holds.UNKNOWN)
    measured = f"{level:.4f} α, the mean over the second half of {count} iterations{where}"
    return judged(STATIONARY, "0.153 α", measured, criterion, abs(level - LONG_RUN) <= 0.005)


def analysis_claims(run: Measured, simulated: float | None, named: bool) -> list[Claim]:
    series, where = run.series, f" ({run.folder.name})" if named else ""
    return [*_noise(series, where), _moments(series, where), *_updates(series, simulated, where)]


def _noise(series: Series, where: str) -> list[Claim]:
    variation = series["gradient_cv_median"]
    lasting = first_lasting(series["t"], [value > 1 for value in variation])
    when = "does not stay above 1" if lasting is None else f"stays above 1 from iteration {lasting} on"
    return [
        judged(START, "below 1", f"starts at {variation[0]:.2f}{where}", "below 1", variation[0] < 1),
        judged(NOISE, "50", f"{when}{where}", "from an iteration between 25 and 100 on", _about(lasting, NOISE_FROM)),
    ]


def _moments(series: Series, where: str) -> Claim:
    mean = early_correlation(series)
    later = ", ".join(f"{value:.2f} at {t:.0f}" for t, value in correlations(series).items() if t > EARLY)
    measured = f"mean correlation of {mean:.3f} up to iteration {EARLY}{f', then {later}' if later else ''}{where}"
    return judged(MOMENTS, "“extremely correlated”", measured, f"at least {CORRELATED}", mean >= CORRELATED)


def _updates(series: Series, simulated: float | None, where: str) -> list[Claim]:
    settled, level = settling(series["t"], series["update_median"])
    whose, earlier = ("the paper's simulation", AT) if simulated is None else ("the simulation", simulated)
    return [
        judged(
            SLOWER,
            "about 100",
            f"within 20 % of the final level after {settled:.0f} iterations; {whose} takes {earlier:.0f}{where}",
            f"later than {whose}, and after 50 to 200 iterations",
            settled > earlier and _about(settled, SETTLES),
        ),
        judged(
            SETTLING,
            "around 0.15 α",
            f"{level:.3f} α, the mean over the second half of {series['t'][-1]:.0f} iterations{where}",
            f"between {SETTLED_LEVEL / NEAR:.3f} and {SETTLED_LEVEL * NEAR:.2f} α",
            SETTLED_LEVEL / NEAR <= level <= SETTLED_LEVEL * NEAR,
        ),
    ]


def _alphas(low: float, high: float) -> str:
    """
    >>> _alphas(1.0, 1.0000001), _alphas(0.9, 1.0)
    ('exactly α', '0.9 to 1 α')
    """
    ends = [f"{end:.6g}" for end in (low, high)]
    return "exactly α" if ends == ["1", "1"] else f"{' to '.join(ends)} α"


def _later_level(series: Series) -> float:
    return float(np.mean(series["median"][len(series["t"]) // 2 :]))


def _about(iteration: float | None, number: float) -> bool:
    return iteration is not None and number / WITHIN <= iteration <= number * WITHIN
