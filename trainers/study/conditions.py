"""Whether the conditions that were fixed before the study are met."""

from collections.abc import Iterable

from trainers.evidence.differences import LEVELS, Difference
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
    margin = trained.sweep.terms.margin
    found = difference(trained, LINEAR, DYNAMIC, safe)
    if margin is None or found.seeds < 2:
        yield f"{DYNAMIC} - {LINEAR}: nothing to judge."
        return
    means = [value for place in safe for value in _values(trained, place)]
    size = margin.absolute(sum(means) / len(means))
    sign = 1 if trained.sweep.objective.direction == "min" else -1
    low, high = found.interval(LEVELS[0])
    worst = high if sign > 0 else -low
    met = "condition met" if worst < size else "condition not met"
    yield f"{_difference_text(trained, found, LEVELS[0])} there, margin {margin.text}: {met}."


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
