"""The paper's claims, each with what was measured here and whether it holds; no verdict is written down beforehand."""

import dataclasses
import enum


class Verdict(enum.Enum):
    """A sign and a word, so that nothing depends on a colour."""

    YES = ("yes", "✓")
    NO = ("no", "✗")
    UNKNOWN = ("cannot be told", "?")
    MISSING = ("not measured", "–")

    @property
    def word(self) -> str:
        return self.value[0]

    @property
    def sign(self) -> str:
        return self.value[1]


@dataclasses.dataclass(frozen=True)
class Claim:
    """One line of the page.

    Args:
        claim: What the paper says, in short.
        paper: Its number or its words.
        measured: The same here; which run it is from.
        criterion: When it would hold.
        verdict: Whether it does.
    """

    claim: str
    paper: str
    measured: str
    criterion: str
    verdict: Verdict


def judged(claim: str, paper: str, measured: str, criterion: str, holds: bool) -> Claim:
    return Claim(claim, paper, measured, criterion, Verdict.YES if holds else Verdict.NO)


def not_measured(claim: str, paper: str, criterion: str, missing: str) -> Claim:
    return Claim(claim, paper, missing, criterion, Verdict.MISSING)
