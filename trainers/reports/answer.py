"""The top of the page: what was found, in four sentences."""

from collections.abc import Sequence

from trainers.reports.blocks import Points, Section
from trainers.reports.claims import Claim, Holds
from trainers.reports.claims_sweeps import NEEDED, TITLES
from trainers.reports.run_sections import total
from trainers.results.formats import counted
from trainers.results.runs import Runs

ADVICE = (
    "Use untuned linear warmup, over 2 / (1 − β₂) updates: the paper recommends it, it works with any Adam, and it has "
    "nothing to tune."
)


def answer(runs: Runs, claims: Sequence[Claim]) -> list[str]:
    """Returns the four sentences."""
    return [ADVICE, _sameness(runs, claims), _need(claims), _scale(runs)]


def answer_section(runs: Runs, claims: Sequence[Claim]) -> Section:
    """The answer; the figure of all differences is in the next section."""
    return Section("answer", "The answer", [Points(answer(runs, claims))])


def _sameness(runs: Runs, claims: Sequence[Claim]) -> str:
    """What the sweeps say about the three untuned methods."""
    names = {title: title.lower() for title, _ in TITLES.values()} | {sweep.task: sweep.task for sweep in runs.sweeps}
    subject = "Untuned linear warmup, untuned exponential warmup and RAdam"
    parts = []
    for verdict, words in (
        (Holds.YES, "do equally well in"),
        (Holds.NO, "differ in"),
        (Holds.UNKNOWN, "cannot be ranked or called equal with the runs of"),
    ):
        titles = (claim.claim.partition(":")[0] for claim in claims if claim.verdict is verdict)
        found = [names[title] for title in titles if title in names]
        if found:
            parts.append(f"{words} {_listed(found)}")
    return f"{subject} {'; they '.join(parts)}." if parts else f"{subject} were not compared in these runs."


def _need(claims: Sequence[Claim]) -> str:
    """What the sweeps say about Adam without warmup."""
    judged = [
        claim.verdict for claim in claims if claim.claim.startswith(NEEDED[0]) and claim.verdict is not Holds.MISSING
    ]
    if not judged:
        return "Adam without warmup was not among these runs."
    words = {Holds.YES: "worse", Holds.NO: "not worse", Holds.UNKNOWN: "undecided"}
    counts = [f"{word} in {judged.count(verdict)}" for verdict, word in words.items() if verdict in judged]
    return f"Adam without warmup was {_listed(counts)} of {counted(len(judged), 'sweep')}."


def _scale(runs: Runs) -> str:
    return (
        f"These results are from {total(runs)}; the paper trained on ImageNet, WikiText-103 and WMT16 with eight GPUs, "
        "and its results are shown for reference."
    )


def _listed(names: Sequence[str]) -> str:
    """
    >>> _listed(["a", "b", "a"]), _listed(["a", "b", "c"])
    ('a and b', 'a, b and c')
    """
    names = list(dict.fromkeys(names))
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
