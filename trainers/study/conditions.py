"""Whether the conditions that were fixed before the study are met."""

import dataclasses
from collections.abc import Iterable, Sequence

from trainers.evidence.differences import LEVELS, Difference
from trainers.results.formats import counted, signed, value_text
from trainers.results.tasks import LANGUAGE, OBJECTIVES, TRANSLATION, Margin, margin_of
from trainers.study.failures import Place, Trained, cell_at, difference

LINEAR, DYNAMIC, ROOT, GI_ADAM = "untuned_linear", "dynamic", "root", "gi_adam"


@dataclasses.dataclass(frozen=True)
class NotWorse:
    """Whether the dynamic warmup is shown not to be worse than untuned linear warmup by more than a margin.

    Args:
        trained: The runs, with the objective that is compared.
        found: The difference over the cells in which untuned linear warmup trains with all seeds.
        margin: The largest difference that does not matter; None if none is known.
        size: The same in the unit of the objective.
    """

    trained: Trained
    found: Difference
    margin: Margin | None
    size: float

    @property
    def can_judge(self) -> bool:
        return self.margin is not None and self.found.seeds > 1

    @property
    def met(self) -> bool:
        if not self.can_judge:
            return False
        low, high = self.found.interval(LEVELS[0])
        worst = high if self.trained.sweep.objective.direction == "min" else -low
        return worst < self.size

    def text(self) -> str:
        if not self.can_judge or self.margin is None:
            return f"{DYNAMIC} - {LINEAR}: nothing to judge."
        difference_text = _difference_text(self.trained, self.found, LEVELS[0])
        return f"{difference_text} there, margin {self.margin.text}: {_met(self.met)}."


@dataclasses.dataclass(frozen=True)
class DynamicJudgement:
    """The two conditions of the dynamic warmup in one sweep.

    Args:
        safe: The cells in which untuned linear warmup trains with all seeds.
        failing: Those of them in which the dynamic warmup fails with at least one seed.
        not_worse: The comparisons over the safe cells, one for each objective.
    """

    safe: Sequence[Place]
    failing: Sequence[Place]
    not_worse: Sequence[NotWorse]

    @property
    def met(self) -> bool:
        return not self.failing and all(each.met for each in self.not_worse)

    def texts(self) -> Iterable[str]:
        where = f"where {LINEAR} trains with all seeds ({counted(len(self.safe), 'cell')})"
        if self.failing:
            yield f"{DYNAMIC} fails {where} at {_listed(self.failing)}: {_met(False)}."
        else:
            yield f"{DYNAMIC} fails in no cell {where}: {_met(True)}."
        yield from (each.text() for each in self.not_worse)


def conditions(trained: Trained) -> list[str]:
    """A sentence for every condition that can be judged with the methods of a sweep."""
    judgement = judge_dynamic(trained)
    return [*(judgement.texts() if judgement else ()), *_gradient_init(trained)]


def judge_dynamic(trained: Trained) -> DynamicJudgement | None:
    """The dynamic warmup must not fail where untuned linear warmup trains, nor be worse by the margin there."""
    if not {LINEAR, DYNAMIC} <= {*trained.runs}:
        return None
    safe = [place for place in trained.places if trained.failed(LINEAR, place) == 0]
    failing = [place for place in safe if trained.failed(DYNAMIC, place)]
    return DynamicJudgement(safe, failing, [_not_worse(judged, margin, safe) for judged, margin in _criteria(trained)])


def _not_worse(trained: Trained, margin: Margin | None, places: Sequence[Place]) -> NotWorse:
    means = [value for place in places for value in _values(trained, place)]
    size = margin.absolute(sum(means) / len(means)) if margin and means else 0.0
    return NotWorse(trained, difference(trained, LINEAR, DYNAMIC, places), margin, size)


def _met(is_met: bool) -> str:
    return "condition met" if is_met else "condition not met"


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


def _values(trained: Trained, place: Place) -> list[float]:
    return list(cell_at(trained, LINEAR, place).values.values())


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
