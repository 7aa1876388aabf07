"""The paper's claims, each with what was measured here and whether it holds; all verdicts are computed."""

import dataclasses
import enum
from collections.abc import Iterable


class Holds(enum.Enum):
    """A sign and a word, so that nothing depends on a colour."""

    YES = ("yes", "✓")
    NO = ("no", "✗")
    UNKNOWN = ("inconclusive", "?")
    MISSING = ("not measured", "–")

    @property
    def word(self) -> str:
        return self.value[0]

    @property
    def sign(self) -> str:
        return self.value[1]


class Kind(enum.Enum):
    """What decides a claim. The kinds are counted separately, because a proof is not a measurement."""

    ARITHMETIC = "arithmetic"
    SIMULATION = "simulation"
    TRAINED = "trained models"


@dataclasses.dataclass(frozen=True)
class Claim:
    """One line of the page.

    Args:
        claim: What the paper says, in short.
        paper: The paper's number or words.
        measured: What was measured here, and in which run.
        criterion: The condition for the claim to hold.
        verdict: Whether it holds.
        kind: What decides it.
    """

    claim: str
    paper: str
    measured: str
    criterion: str
    verdict: Holds
    kind: Kind = Kind.TRAINED


def judged(claim: str, paper: str, measured: str, criterion: str, holds: bool) -> Claim:
    return Claim(claim, paper, measured, criterion, Holds.YES if holds else Holds.NO)


def not_measured(claim: str, paper: str, criterion: str, missing: str) -> Claim:
    return Claim(claim, paper, missing, criterion, Holds.MISSING)


def of_kind(kind: Kind, claims: Iterable[Claim]) -> list[Claim]:
    return [dataclasses.replace(claim, kind=kind) for claim in claims]
