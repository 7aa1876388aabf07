"""All sweeps of a study side by side: whether the dynamic warmup meets its conditions, and how often methods fail."""

from collections.abc import Iterable, Sequence

from trainers.evidence.differences import LEVELS
from trainers.results.formats import NOTHING, distinct, signed
from trainers.results.methods import method_title
from trainers.results.tasks import data_title
from trainers.study.conditions import DynamicJudgement, NotWorse, judge_dynamic
from trainers.study.failures import Trained

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
    judged = (
        (title, len(each.places), judge_dynamic(each)) for title, each in zip(_titles(studied), studied, strict=True)
    )
    return [list(CONDITION_HEADINGS), *(_condition_row(title, cells, found) for title, cells, found in judged if found)]


def failure_table(studied: Sequence[Trained]) -> list[list[str]]:
    """Headings, then for each method the share of failed runs in each sweep."""
    methods = sorted(dict.fromkeys(method for trained in studied for method in trained.methods), key=_tuned)
    rows = ([method_title(method), *(_failed_runs_text(each, method) for each in studied)] for method in methods)
    return [["failed runs", *_titles(studied)], *rows]


def _condition_row(title: str, cells: int, found: DynamicJudgement) -> list[str]:
    judged = [each for each in found.not_worse if each.can_judge]
    return [
        title,
        f"{len(found.safe)} of {cells}",
        str(len(found.failing)),
        "; ".join(map(_in_short, judged)) or NOTHING,
        "; ".join(each.margin.text for each in judged if each.margin) or NOTHING,
        _conditions_verdict(found),
    ]


def _conditions_verdict(found: DynamicJudgement) -> str:
    if not found.failing and not all(each.can_judge for each in found.not_worse):
        return "not judged"
    return "met" if found.met else "**not met**"


def _in_short(judged: NotWorse) -> str:
    low, high = judged.found.interval(LEVELS[0])
    unit = judged.trained.sweep.objective.unit
    return f"{signed(judged.found.mean, 2)} {unit} ({signed(low, 2)} to {signed(high, 2)})"


def _failed_runs_text(trained: Trained, method: str) -> str:
    runs = [run for seeds in trained.runs[method].values() for run in seeds.values()] if method in trained.runs else []
    return f"{sum(map(trained.fails, runs))} of {len(runs)}" if runs else NOTHING


def _tuned(method: str) -> tuple[bool, float]:
    """Sorts tuned warmups to the end: by period, as "linear 20", then by share, as "linear 5 %"."""
    _, _, tuned = method.partition(" ")
    return tuned.endswith(" %"), float(tuned.removesuffix(" %") or 0)


def _titles(studied: Sequence[Trained]) -> list[str]:
    titles = [
        data_title(trained.sweep.folder.config) + (", clipped" if _is_clipped(trained) else "") for trained in studied
    ]
    return distinct(titles, [trained.sweep.folder.name for trained in studied])


def _is_clipped(trained: Trained) -> bool:
    return trained.sweep.folder.config.get("global_clipnorm") is not None
