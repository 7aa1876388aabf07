"""Whether the conditions that were fixed before the study are met."""

import dataclasses
from collections.abc import Iterable, Sequence

from trainers.evidence.differences import LEVELS, Difference
from trainers.evidence.margins import LANGUAGE, TRANSLATION, Margin, margin_of
from trainers.evidence.objectives import OBJECTIVES
from trainers.study.failures import Place, Trained
from trainers.study.measures import difference
from trainers.sweeps.formats import counted, signed, value_text

LINEAR, DYNAMIC, ROOT, GI_ADAM = "untuned_linear", "dynamic", "root", "gi_adam"


def conditions(trained: Trained) -> list[str]:
    """A sentence for every condition that can be judged with the methods of a sweep."""
    return [*_dynamic(trained), *_gradient_init(trained)]


def _dynamic(trained: Trained) -> Iterable[str]:
    """The dynamic warmup must not fail where untuned linear warmup trains, nor be worse by the margin there."""
    if not {LINEAR, DYNAMIC} <= {*trained.runs}:
        return
    safe = [place for place in trained.places if trained.failed(LINEAR, place) == 0]
    failing = [place for place in safe if trained.failed(DYNAMIC, place)]
    where = f"where {LINEAR} trains with all seeds ({counted(len(safe), 'cell')})"
    if failing:
        yield f"{DYNAMIC} fails {where} at {_listed(failing)}: condition not met."
    else:
        yield f"{DYNAMIC} fails in no cell {where}: condition met."
    for judged, margin in _criteria(trained):
        yield _not_worse(judged, margin, safe)


def _not_worse(trained: Trained, margin: Margin | None, places: Sequence[Place]) -> str:
    """Whether the dynamic warmup is shown not to be worse than untuned linear warmup by the margin."""
    found = difference(trained, LINEAR, DYNAMIC, places)
    if margin is None or found.seeds < 2:
        return f"{DYNAMIC} - {LINEAR}: nothing to judge."
    means = [value for place in places for value in _values(trained, place)]
    size = margin.absolute(sum(means) / len(means))
    low, high = found.interval(LEVELS[0])
    worst = high if trained.sweep.objective.direction == "min" else -low
    met = "condition met" if worst < size else "condition not met"
    return f"{_difference_text(trained, found, LEVELS[0])} there, margin {margin.text}: {met}."


def _criteria(trained: Trained) -> Iterable[tuple[Trained, Margin | None]]:
    """The objective of the task; for translators also the perplexity, by the margin of language models.

    After a few hundred updates the BLEU of a translator is near 0, where hardly any difference exceeds the margin.
    """
    sweep, perplexity = trained.sweep, OBJECTIVES[LANGUAGE]
    yield trained, sweep.terms.margin
    done = [run for run in sweep.results if run.status == "done"]
    if sweep.task == TRANSLATION and all(run.metrics.get(perplexity.metric) is not None for run in done):
        results = tuple(dataclasses.replace(run, objective=run.metrics[perplexity.metric]) for run in done)
        by_perplexity = dataclasses.replace(sweep, objective=perplexity, results=results)
        yield Trained(by_perplexity), margin_of(LANGUAGE, sweep.data)


def _values(trained: Trained, place: Place) -> list[float]:
    shown = trained.sweep.objective.shown
    runs = trained.runs[LINEAR][place].values()
    return [shown(run.objective) for run in runs if run.objective is not None]


def _gradient_init(trained: Trained) -> Iterable[str]:
    """Gradient initialisation must beat its control; otherwise it is only a schedule."""
    if not {ROOT, GI_ADAM} <= {*trained.runs}:
        return
    found = difference(trained, ROOT, GI_ADAM, trained.places)
    if found.seeds < 2:
        return
    low, high = found.interval(LEVELS[1])
    better = high < 0 if trained.sweep.objective.direction == "min" else low > 0
    met = f"{GI_ADAM} beats its control" if better else f"{GI_ADAM} counts as a schedule"
    yield f"{_difference_text(trained, found, LEVELS[1])} over all cells in which both are done: {met}."


def _difference_text(trained: Trained, found: Difference, level: float) -> str:
    low, high = found.interval(level)
    unit = trained.sweep.objective.unit
    first, second = found.pair
    interval = f"{100 * level:.0f} % interval {signed(low, 2)} to {signed(high, 2)}"
    return f"{second} - {first}: {signed(found.mean, 2)} {unit}, {interval}"


def _listed(places: Iterable[Place]) -> str:
    return "; ".join(f"rate {value_text(rate)}, beta_2 {value_text(beta_2)}" for rate, beta_2 in places)
