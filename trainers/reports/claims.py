"""The paper's claims, each with what was measured here and whether it holds; all verdicts are computed.

Here are those about warmup factors, which the library decides, and about gradients and update sizes, which simulations
and gradient analyses decide. Those about methods are in method_claims.py.
"""

import collections
import dataclasses
import enum
from collections.abc import Callable, Sequence

import numpy as np

from tfwarmup.factors import momentum_steps
from trainers.analysis.findings import EARLY, NEAR, correlations, early_correlation, first_lasting, settling
from trainers.figures.paper import BETAS, period
from trainers.reports.page import Block
from trainers.reports.tables import PageTable, plain_table
from trainers.results.folders import Series
from trainers.results.formats import per_cent
from trainers.results.methods import DRAWN
from trainers.results.paper import LEVEL, LONG_RUN, NOISY_FROM, SETTLED_AT, SETTLED_LEVEL, SETTLES_AT
from trainers.results.runs import Measured


class Holds(enum.Enum):
    """A word, and a sign so that nothing depends on a colour."""

    YES = ("yes", "✓")
    NO = ("no", "✗")
    UNKNOWN = ("inconclusive", "?")
    MISSING = ("not measured", "–")

    def __init__(self, word: str, sign: str) -> None:
        self.word, self.sign = word, sign


class Kind(enum.Enum):
    """What decides a claim. The kinds are counted separately, because a proof is not a measurement."""

    ARITHMETIC = "arithmetic"
    SIMULATION = "simulation"
    TRAINED = "trained models"


@dataclasses.dataclass(frozen=True)
class Claim:
    """One line of the page."""

    claim: str  # what the paper says, in short
    paper: str  # the paper's number or words
    kind: Kind = Kind.TRAINED  # what decides it
    measured: str = ""  # what was measured here, and in which run; or why nothing was
    criterion: str = ""  # the condition for the claim to hold
    verdict: Holds = Holds.MISSING  # whether it holds
    question: str = ""  # which question about methods it answers, one of `QUESTIONS`
    on: str = ""  # the task or the data that the answer is about

    def judged(self, measured: str, criterion: str, holds: bool | None) -> "Claim":
        """The claim with what was measured; None if that does not decide it."""
        verdict = Holds.UNKNOWN if holds is None else Holds.YES if holds else Holds.NO
        return dataclasses.replace(self, measured=measured, criterion=criterion, verdict=verdict)


@dataclasses.dataclass(frozen=True)
class Claims(Block):
    """All claims, and the table that is downloaded."""

    claims: Sequence[Claim]

    @property
    def table(self) -> PageTable:
        rows = [
            [each.claim, each.kind.value, each.paper, each.measured, each.criterion, each.verdict.word]
            for each in self.claims
        ]
        headings = ["claim", "decided by", "paper", "measured here", "criterion", "holds"]
        return plain_table("claims", "The paper's claims, and what was measured here", headings, rows)

    @property
    def summary(self) -> str:
        """The number of claims per verdict, separately for each kind."""
        return ". ".join(self._count(kind) for kind in Kind if any(claim.kind is kind for claim in self.claims)) + "."

    def _count(self, kind: Kind) -> str:
        counts = collections.Counter(claim.verdict for claim in self.claims if claim.kind is kind)
        results = ", ".join(f"{counts[verdict]} {verdict.word}" for verdict in Holds if counts[verdict])
        return f"Claims about {kind.value}: {results}"


# Evenly spaced in log(1 - beta_2), from the paper's 0.8 to beyond any practical value.
RHO_BETAS = [float(beta_2) for beta_2 in 1 - np.geomspace(0.2, 1e-6, 301)]
TRAINED = (0.98, 0.999)  # the smallest and the largest beta_2 that the paper trains with
NEARLY = 0.15
PHASES = Claim(
    "RAdam is four steps of momentum, then Adam with a fixed warmup: for 0.8 ≤ β₂ < 1, ρₜ ≤ 4 exactly when t ≤ 4.",
    "4 steps (its fact 1)",
    Kind.ARITHMETIC,
)
PERIODS = Claim(
    "The effective warmup periods of RAdam and of the two rules of thumb are nearly identical across all practical "
    "values of β₂.",
    "“nearly identical” (figure 3)",
    Kind.ARITHMETIC,
)


def warmup_claims() -> list[Claim]:
    """The claims that are computed with the library, no run needed."""
    return [momentum_claim(momentum_steps), period_claim(gap)]


def momentum_claim(steps: Callable[[float], int]) -> Claim:
    """RAdam's first phase is four steps, whatever beta_2."""
    counts = {steps(beta_2) for beta_2 in RHO_BETAS}
    found = " or ".join(str(count) for count in sorted(counts))
    measured = f"{found} steps at {len(RHO_BETAS)} values of β₂ from 0.8 to 0.999999"
    return PHASES.judged(measured, "4 steps at each of them", counts == {4})


def period_claim(gap_at: Callable[[float], float]) -> Claim:
    """How far apart the effective warmup periods are, relative to the smallest."""
    widest = max(BETAS, key=gap_at)
    trained = max(gap_at(beta_2) for beta_2 in (*TRAINED, *(b for b in BETAS if TRAINED[0] < b < TRAINED[1])))
    return PERIODS.judged(
        f"{per_cent(gap_at(0.999), 1)} apart at 0.999, at most {per_cent(trained, 1)} from 0.98 to 0.999, and "
        f"{per_cent(gap_at(widest))} at β₂ = {widest:.4g}, the widest from 0.9 to 0.9999",
        f"at most {per_cent(NEARLY)} apart wherever the paper trains: β₂ from 0.98 to 0.999",
        trained <= NEARLY,
    )


def gap(beta_2: float) -> float:
    """The ratio of the largest effective period to the smallest, minus one."""
    periods = [period(name, beta_2) for name in DRAWN]
    return max(periods) / min(periods) - 1


WITHIN = 2.0  # "about" n iterations: from half of n to twice n
CORRELATED = 0.9

FIRST = Claim(
    "Without warmup, the first update is α for every parameter, even at a local minimum.", "1 α", Kind.SIMULATION
)
DECAY = Claim(
    "Updates at a minimum only begin to settle after some 40 iterations, at a median of 0.16 α.",
    "40, 0.16 α",
    Kind.SIMULATION,
)
STATIONARY = Claim("In the long run the median update at a minimum is 0.153 α.", "0.153 α", Kind.SIMULATION)
START = Claim("Early gradients are not zero-mean: their median coefficient of variation starts below 1.", "below 1")
NOISE = Claim(
    "The median coefficient of variation of the gradients consistently exceeds 1 only beyond iteration 50.", "50"
)
MOMENTS = Claim("|m| and √v are extremely correlated.", "“extremely correlated”")
SLOWER = Claim(
    "From a random start the updates fall more slowly than at a minimum: after about 100 iterations.", "about 100"
)
SETTLING = Claim("From a random start, too, the median update settles around 0.15 α.", "around 0.15 α")
NO_SIMULATION = "no simulation of Adam without warmup (run python -m trainers.simulate)"
NO_ANALYSIS = "no gradient analysis (run python -m trainers.gradient_analysis)"


def update_claims(simulations: Sequence[Measured], analyses: Sequence[Measured]) -> list[Claim]:
    """Every claim for every run that can decide it; a claim without such a run is marked as not measured."""
    bare = [each for each in simulations if each.folder.config.get("warmup") == "none"]
    simulated = settling(bare[0].series["t"], bare[0].series["median"])[0] if bare else None
    claims = [claim for each in bare for claim in simulation_claims(each, len(bare) > 1)]
    claims += [claim for each in analyses for claim in analysis_claims(each, simulated, len(analyses) > 1)]
    if not bare:
        claims = [dataclasses.replace(each, measured=NO_SIMULATION) for each in (FIRST, DECAY, STATIONARY)] + claims
    if not analyses:
        measured = (START, NOISE, MOMENTS, SLOWER, SETTLING)
        claims += [dataclasses.replace(each, measured=NO_ANALYSIS) for each in measured]
    return claims


def simulation_claims(run: Measured, named: bool) -> list[Claim]:
    series, where = run.series, f" ({run.folder.name})" if named else ""
    low, high = min(series["q05"][0], series["q25"][0]), series["q95"][0]
    first = FIRST.judged(
        f"{_alphas(low, high)} (5th to 95th percentile){where}",
        "α to six digits for both percentiles",
        abs(low - 1) < 1e-6 and abs(high - 1) < 1e-6,
    )
    return [first, *_settled(series, where)]


def _settled(series: Series, where: str) -> list[Claim]:
    median, t = series["median"], series["t"]
    decay = "within 10 % of its final level between iterations 20 and 80, and 0.15 to 0.17 α at iteration 40"
    stationary = "0.148 to 0.158 α"
    if len(t) < 10 * SETTLES_AT:
        few = f"only {len(t)} iterations{where}"
        return [DECAY.judged(few, decay, None), STATIONARY.judged(few, stationary, None)]
    level = float(np.mean(median[len(t) // 2 :]))
    begins = first_lasting(t, [abs(value / level - 1) <= 0.1 for value in median])
    at = median[SETTLES_AT - 1]
    when = "never" if begins is None else f"from iteration {begins:.0f} on"
    return [
        DECAY.judged(
            f"within 10 % of its final level {when}; {at:.4f} α at iteration 40{where}",
            decay,
            _about(begins, SETTLES_AT) and abs(at - LEVEL) <= 0.01,
        ),
        STATIONARY.judged(
            f"{level:.4f} α, the mean over the second half of {len(t)} iterations{where}",
            stationary,
            abs(level - LONG_RUN) <= 0.005,
        ),
    ]


def analysis_claims(run: Measured, simulated: float | None, named: bool) -> list[Claim]:
    series, where = run.series, f" ({run.folder.name})" if named else ""
    return [*_noise(series, where), _moments(series, where), *_updates(series, simulated, where)]


def _noise(series: Series, where: str) -> list[Claim]:
    variation = series["gradient_cv_median"]
    lasting = first_lasting(series["t"], [value > 1 for value in variation])
    when = "does not stay above 1" if lasting is None else f"stays above 1 from iteration {lasting} on"
    return [
        START.judged(f"starts at {variation[0]:.2f}{where}", "below 1", variation[0] < 1),
        NOISE.judged(f"{when}{where}", "from an iteration between 25 and 100 on", _about(lasting, NOISY_FROM)),
    ]


def _moments(series: Series, where: str) -> Claim:
    mean = early_correlation(series)
    later = ", ".join(f"{value:.2f} at {t:.0f}" for t, value in correlations(series).items() if t > EARLY)
    measured = f"mean correlation of {mean:.3f} up to iteration {EARLY}{f', then {later}' if later else ''}{where}"
    return MOMENTS.judged(measured, f"at least {CORRELATED}", mean >= CORRELATED)


def _updates(series: Series, simulated: float | None, where: str) -> list[Claim]:
    settled, level = settling(series["t"], series["update_median"])
    whose, earlier = ("the paper's simulation", SETTLES_AT) if simulated is None else ("the simulation", simulated)
    return [
        SLOWER.judged(
            f"within 20 % of the final level after {settled:.0f} iterations; {whose} takes {earlier:.0f}{where}",
            f"later than {whose}, and after 50 to 200 iterations",
            settled > earlier and _about(settled, SETTLED_AT),
        ),
        SETTLING.judged(
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


def _about(iteration: float | None, number: float) -> bool:
    return iteration is not None and number / WITHIN <= iteration <= number * WITHIN
