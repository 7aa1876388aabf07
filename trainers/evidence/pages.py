"""Writes tables and verdicts into pages of documentation, so that they always match the runs."""

import pathlib
from collections.abc import Sequence

from trainers.evidence.analyses import analysis_table
from trainers.evidence.means import chosen_cells, overall_means
from trainers.evidence.parts import with_parts
from trainers.evidence.questions import Answer
from trainers.evidence.tables import answer_text, evidence_table
from trainers.reports.reading import Measured, Sweep
from trainers.sweeps.formats import markdown_table

LEFT_OUT = ("question", "95 % interval")  # a page is narrower than a file


def new_page(
    page: pathlib.Path,
    sweeps: Sequence[Sweep],
    analyses: Sequence[Measured],
    answers: Sequence[Answer],
    tuned: Sequence[str] = (),
) -> str:
    """The text of a page, with those of its parts that the runs determine made anew."""
    parts = {
        "verdicts": verdicts_markdown(answers, tuned),
        "means": overall_means(sweeps, answers, page),
        "cells": chosen_cells(sweeps),
        "analyses": markdown_table(analysis_table(analyses)),
    }
    return with_parts(page, parts)


def verdicts_markdown(answers: Sequence[Answer], tuned: Sequence[str] = ()) -> str:
    """A table of all differences, and a sentence for each verdict; then those about tuned and untuned warmups."""
    lines = evidence_table(answers)
    shown = [index for index, heading in enumerate(lines[0]) if heading not in LEFT_OUT]
    table = markdown_table([[line[index] for index in shown] for line in lines])
    return f"{table}\n\n" + "\n".join(f"- {text}" for text in [*map(answer_text, answers), *tuned])
