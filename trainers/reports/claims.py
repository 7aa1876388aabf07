"""The paper's claims, each with what was measured here and whether it holds; no verdict is written down beforehand."""

import dataclasses
import enum
from collections.abc import Iterable


class Verdict(enum.Enum):
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
    """What a claim is decided by: they are counted apart, as a proof and a measurement are not the same."""

    ARITHMETIC = "arithmetic"
    SIMULATION = "simulation"
    TRAINED = "trained models"


@dataclasses.dataclass(frozen=True)
class Claim:
    """One line of the page.

    Args:
        claim: What the paper says, in short.
        paper: Its number or its words.
        measured: The same here; which run it is from.
        criterion: When it would hold.
        verdict: Whether it does.
        kind: What decides it.
    """

    claim: str
    paper: str
    measured: str
    criterion: str
    verdict: Verdict
    kind: Kind = Kind.TRAINED


def judged(claim: str, paper: str, measured: str, criterion: str, holds: bool) -> Claim:
    return Claim(claim, paper, measured, criterion, Verdict.YES if holds else Verdict.NO)


def not_measured(claim: str, paper: str, criterion: str, missing: str) -> Claim:
    return Claim(claim, paper, missing, criterion, Verdict.MISSING)


def of_kind(kind: Kind, claims: Iterable[Claim]) -> list[Claim]:
    return [dataclasses.replace(claim, kind=kind) for claim in claims]
