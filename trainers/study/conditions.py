"""Whether the conditions that were fixed before the study are met, in each sweep and side by side."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from trainers.evidence.differences import LEVELS, Difference
from trainers.evidence.findings import pair_text
from trainers.results.formats import NOTHING, counted, distinct, signed, value_text
from trainers.results.methods import method_title
from trainers.results.tasks import LANGUAGE, OBJECTIVES, TRANSLATION, Margin, data_title, margin_of
from trainers.study.failures import Place, Trained

LINEAR, DYNAMIC, ROOT, GI_ADAM = "untuned_linear", "dynamic", "root", "gi_adam"


class NotWorse(NamedTuple):
    """Whether the dynamic warmup is not worse than untuned linear warmup by more than a margin, where that trains."""

    sentence: str  # the difference and its interval, the margin, and whether the condition is met
    met: bool | None = None  # whether it is; None if there is nothing to judge
    difference: str = ""  # the difference and its interval, in short
    margin: str = ""  # the largest difference that does not matter


class DynamicJudgement(NamedTuple):
    """The two conditions of the dynamic warmup in one sweep."""

    safe: Sequence[Place]  # the cells in which untuned linear warmup trains with all seeds
    failing: Sequence[Place]  # those of them in which the dynamic warmup fails with at least one seed
    not_worse: Sequence[NotWorse]  # the comparisons over the safe cells, one for each objective


def conditions(trained: Trained) -> list[str]:
    """A sentence for every condition that can be judged with the methods of a sweep."""
    judged, sentences = judge_dynamic(trained), list(_gradient_init(trained))
    if judged is None:
        return sentences
    where = f"where {LINEAR} trains with all seeds ({counted(len(judged.safe), 'cell')})"
    at = "; ".join(f"rate {value_text(rate)}, beta_2 {value_text(beta_2)}" for rate, beta_2 in judged.failing)
    fails = f"fails {where} at {at}: condition not met." if at else f"fails in no cell {where}: condition met."
    return [f"{DYNAMIC} {fails}", *(each.sentence for each in judged.not_worse), *sentences]


def judge_dynamic(trained: Trained) -> DynamicJudgement | None:
    """The dynamic warmup must not fail where untuned linear warmup trains, nor be worse by the margin there."""
    if not {LINEAR, DYNAMIC} <= {*trained.methods}:
        return None
    safe = [place for place in trained.places if trained.failed(LINEAR, place) == 0]
    failing = [place for place in safe if trained.failed(DYNAMIC, place)]
    return DynamicJudgement(safe, failing, [_not_worse(judged, margin, safe) for judged, margin in _criteria(trained)])


def _not_worse(trained: Trained, margin: Margin | None, places: Sequence[Place]) -> NotWorse:
    found = trained.difference(LINEAR, DYNAMIC, places)
    table, objective = trained.sweep.table(), trained.sweep.objective
    if margin is None or found.seeds < 2:
        return NotWorse(f"{pair_text(found.pair)}: nothing to judge.")
    low, high = found.interval(LEVELS[0])
    values = table.values(LINEAR)[[table.rows.index(place) for place in places]]
    met = (high if objective.direction == "min" else -low) < margin.absolute(float(np.nanmean(values)))
    sentence = f"{_difference_text(trained, found, LEVELS[0])} there, margin {margin.text}: condition"
    short = f"{signed(found.mean, 2)} {objective.unit} ({signed(low, 2)} to {signed(high, 2)})"
    return NotWorse(f"{sentence} {'' if met else 'not '}met.", met, short, margin.text)


def _criteria(trained: Trained) -> Iterable[tuple[Trained, Margin | None]]:
    """The objective of the task; for translators also the perplexity, by the margin of language models.

    After a few hundred updates the BLEU of a translator is near 0, where hardly any difference exceeds the margin.
    """
    sweep, perplexity = trained.sweep, OBJECTIVES[LANGUAGE]
    yield trained, sweep.terms.margin
    done = sweep.runs[sweep.runs.status == "done"]
    if sweep.task == TRANSLATION and perplexity.metric in done and done[perplexity.metric].notna().all():
        by_perplexity = dataclasses.replace(sweep, objective=perplexity, runs=done)
        yield Trained(by_perplexity), margin_of(LANGUAGE, sweep.data)


def _gradient_init(trained: Trained) -> Iterable[str]:
    """Gradient initialisation must beat its control; otherwise it is only a schedule."""
    if not {ROOT, GI_ADAM} <= {*trained.methods}:
        return
    found = trained.difference(ROOT, GI_ADAM, trained.places)
    if found.seeds < 2:
        return
    low, high = found.interval(LEVELS[1])
    better = high < 0 if trained.sweep.objective.direction == "min" else low > 0
    met = f"{GI_ADAM} beats its control" if better else f"{GI_ADAM} counts as a schedule"
    yield f"{_difference_text(trained, found, LEVELS[1])} over all cells in which both are done: {met}."


def _difference_text(trained: Trained, found: Difference, level: float) -> str:
    mean, low, high = (signed(value, 2) for value in (found.mean, *found.interval(level)))
    unit = trained.sweep.objective.unit
    return f"{pair_text(found.pair)}: {mean} {unit}, {100 * level:.0f} % interval {low} to {high}"


# Names of sweeps that the dynamic warmup was designed on, and that therefore do not judge it, begin with this.
DEVELOPMENT = "development"
CONDITION_HEADINGS = (
    "data",
    "cells where untuned linear trains",
    "dynamic fails there in",
    "dynamic - untuned linear there (90 % interval)",
    "margin",
    "conditions",
)


def judging(compared: Iterable[Trained]) -> list[Trained]:
    """The sweeps that the dynamic warmup was not designed on; those with clipping come last."""
    kept = [trained for trained in compared if not trained.sweep.folder.name.startswith(DEVELOPMENT)]
    return sorted(kept, key=_is_clipped)


def condition_table(studied: Sequence[Trained]) -> list[list[str]]:
    """Headings, then a row for each sweep with a dynamic and an untuned linear warmup."""
    rows = map(_condition_row, _titles(studied), studied)
    return [list(CONDITION_HEADINGS), *filter(None, rows)]


def failure_table(studied: Sequence[Trained]) -> list[list[str]]:
    """Headings, then for each method the share of failed runs in each sweep."""
    methods = sorted(dict.fromkeys(method for trained in studied for method in trained.methods), key=_tuned)
    rows = ([method_title(method), *(each.failed_text(method) for each in studied)] for method in methods)
    return [["failed runs", *_titles(studied)], *rows]


def _condition_row(title: str, trained: Trained) -> list[str] | None:
    found = judge_dynamic(trained)
    if found is None:
        return None
    judged = [each for each in found.not_worse if each.met is not None]
    verdict = "met" if not found.failing and all(each.met for each in judged) else "**not met**"
    return [
        title,
        f"{len(found.safe)} of {len(trained.places)}",
        str(len(found.failing)),
        "; ".join(each.difference for each in judged) or NOTHING,
        "; ".join(each.margin for each in judged) or NOTHING,
        verdict if found.failing or judged == found.not_worse else "not judged",
    ]


def _tuned(method: str) -> tuple[bool, float]:
    """Sorts tuned warmups to the end: by period, as "linear 20", then by share, as "linear 5 %"."""
    _, _, tuned = method.partition(" ")
    return tuned.endswith(" %"), float(tuned.removesuffix(" %") or 0)


def _titles(studied: Sequence[Trained]) -> list[str]:
    titles = [data_title(each.sweep.folder.config) + ", clipped" * _is_clipped(each) for each in studied]
    return distinct(titles, [each.sweep.folder.name for each in studied])


def _is_clipped(trained: Trained) -> bool:
    return trained.sweep.folder.config.get("global_clipnorm") is not None
