"""The four sentences on top of the page: each says what the claims say."""

import pytest

from trainers.reports.answer import answer
from trainers.reports.claims import Claim, Holds
from trainers.reports.claims_sweeps import NEEDED
from trainers.results.runs import Runs

YES, NO, UNKNOWN, MISSING = Holds.YES, Holds.NO, Holds.UNKNOWN, Holds.MISSING


def claims(text, *verdicts):
    return [Claim(text, "", "", "", verdict) for verdict in verdicts]


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        ([YES, YES], "Adam without warmup was worse in 2 of 2 sweeps."),
        ([NO], "Adam without warmup was not worse in 1 of 1 sweep."),
        ([YES, UNKNOWN, NO], "Adam without warmup was worse in 1, not worse in 1 and undecided in 1 of 3 sweeps."),
        ([MISSING], "Adam without warmup was not among these runs."),
    ],
)
def test_the_need_for_warmup_is_told_by_the_number_of_sweeps(verdicts, sentence):
    assert answer(Runs(), claims(f"{NEEDED[0]} On digits.", *verdicts))[2] == sentence


def test_methods_are_called_equal_only_where_that_was_shown():
    found = [
        *claims("Language modelling: a and b do equally well.", YES),
        *claims("Image classification: a and b do equally well.", UNKNOWN),
        *claims("Machine translation: a and b do equally well.", NO),
    ]
    assert answer(Runs(), found)[1] == (
        "Untuned linear warmup, untuned exponential warmup and RAdam do equally well in language modelling; they "
        "differ in machine translation; they cannot be ranked or called equal with the runs of image classification."
    )
    assert answer(Runs(), [])[1].endswith("were not compared in these runs.")
