"""Every verdict in one table: to read, and as CSV."""

from collections.abc import Iterable, Mapping
from typing import Any

from trainers.evidence.comparison import judge
from trainers.evidence.differences import LEVELS, Difference
from trainers.evidence.findings import advice_text, margin_text, pair_text, places_of, verdict_text
from trainers.evidence.questions import Answer
from trainers.sweeps.formats import NOTHING, signed

HEADINGS = ("question", "task", "data", "from", "difference", "mean", "90 % interval", "95 % interval", "margin")
MORE = ("seeds", "cells", "this pair", "all pairs")


def evidence_table(answers: Iterable[Answer]) -> list[list[str]]:
    """Headings, then a row for every pair, with the verdict on it and on all pairs of its question."""
    lines = [[*HEADINGS, *MORE]]
    for answer in answers:
        for difference in answer.comparison.differences:
            lines.append(
                [
                    answer.question,
                    answer.task,
                    answer.data or NOTHING,
                    answer.source,
                    pair_text(difference.pair),
                    *_numbers(answer, difference),
                    margin_text(answer.comparison, answer.terms) or NOTHING,
                    str(difference.seeds),
                    str(difference.cells),
                    _pair_verdict(answer, difference) or NOTHING,
                    answer.comparison.verdict.value,
                ]
            )
    return lines


def answer_text(answer: Answer) -> str:
    """The verdict on the methods, and what would decide if it is inconclusive."""
    where = place_text(answer.task, answer.data, answer.source)
    advice = "" if answer.published else advice_text(answer.comparison, answer.terms)
    return f"{where}: {verdict_text(answer.comparison, answer.terms)} {advice}".rstrip()


def place_text(task: str, data: str, source: str) -> str:
    """Where an answer comes from.

    >>> place_text("language_modeling", "pydoc", "runs"), place_text("language_modeling", "", "runs")
    ('language_modeling, pydoc (runs)', 'language_modeling, runs')
    """
    return f"{task}, {data} ({source})" if data else f"{task}, {source}"


def _numbers(answer: Answer, difference: Difference) -> list[str]:
    if not difference.seeds:
        return [NOTHING] * 3
    places = places_of(difference, answer.comparison.margin)
    unit = f" {answer.terms.unit}" if answer.terms.unit else ""
    mean = signed(difference.mean, places) + unit
    if difference.seeds < 2:
        return [mean, NOTHING, NOTHING]
    ends = [[signed(end, places) for end in difference.interval(level)] for level in LEVELS]
    return [mean, *(f"{low} to {high}" for low, high in ends)]


def evidence_columns(answers: Iterable[Answer]) -> Mapping[str, list[Any]]:
    """The columns of the table as lists, with all digits."""
    rows = [_record(answer, difference) for answer in answers for difference in answer.comparison.differences]
    names = list(rows[0]) if rows else []
    return {name: [row[name] for row in rows] for name in names}


def _pair_verdict(answer: Answer, difference: Difference) -> str:
    """The verdict on one pair by its interval alone, whether or not runs failed or are missing."""
    margin = answer.comparison.margin
    return judge([difference], margin).value if margin and difference.seeds > 1 else ""


def _record(answer: Answer, difference: Difference) -> dict[str, Any]:
    comparison = answer.comparison
    tested = difference.seeds > 1
    (low, high), (lower, higher) = (difference.interval(level) if tested else (None, None) for level in LEVELS)
    return {
        "question": answer.question,
        "task": answer.task,
        "data": answer.data,
        "source": answer.source,
        "first": difference.pair[0],
        "second": difference.pair[1],
        "unit": answer.terms.unit,
        "better": answer.direction,
        "mean": difference.mean,
        "standard_error": difference.error,
        "degrees_of_freedom": difference.freedom,
        "low_90": low,
        "high_90": high,
        "low_95": lower,
        "high_95": higher,
        "margin": comparison.margin,
        "seeds": difference.seeds,
        "cells": difference.cells,
        "pair": _pair_verdict(answer, difference),
        "verdict": comparison.verdict.value,
        "failed": len(comparison.failed),
        "missing": comparison.missing,
        "seeds_needed": comparison.plan.seeds,
    }
