"""Which runs of a sweep fail to train, and what each method reaches."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from pandas import DataFrame

from trainers.evidence.differences import Difference, difference_of
from trainers.evidence.summary import cell_text
from trainers.results.formats import NOTHING, fixed, value_text
from trainers.results.methods import FIELDS
from trainers.results.results_csv import LABEL, TRIAL
from trainers.results.runs import Sweep
from trainers.results.table import Cell
from trainers.results.tasks import OBJECTIVES
from trainers.tasks.language.ngrams import UNIGRAM_LOSS

LOSS = "val_loss"
# The number of classes of image data sets, where it is known.
CLASSES = {"digits": 10, "mnist": 10, "emnist": 10, "emnist/digits": 10, "imagenette": 10, "imagenet2012": 1000}
RATE, BETA_2, *_ = FIELDS

# A learning rate and a beta_2.
Place = tuple[float, float]


def chance_loss(sweep: Sweep) -> float | None:
    """The loss of a model that has not learned to use its inputs; None if it is not known.

    It gives words their frequencies in the training text, if the runs of the sweep have recorded that loss, and
    otherwise all classes or words the same probability.
    """
    if UNIGRAM_LOSS in sweep.runs and sweep.runs[UNIGRAM_LOSS].notna().any():
        return float(sweep.runs[UNIGRAM_LOSS].max())
    known = (
        CLASSES if sweep.task == "image_classification" else {sweep.data: sweep.folder.config.get("vocabulary_size")}
    )
    count = known.get(sweep.data) if sweep.task in OBJECTIVES else None
    return math.log(count) if count else None


def has_losses(sweep: Sweep) -> bool:
    """Whether it can be decided which runs of a sweep fail: all losses are known, and there are no further axes."""
    done = sweep.runs[sweep.runs.status == "done"]
    losses = LOSS in done and done[LOSS].notna().all()
    plain = sweep.table().row_names == (RATE, BETA_2)
    return bool(len(done)) and bool(losses) and plain and chance_loss(sweep) is not None


@dataclasses.dataclass(frozen=True)
class Trained:
    """The runs of a sweep, each of which trained or failed.

    A run fails if it diverges, or if its validation loss ends above the limit: half way between the best mean loss of
    the sweep and the loss of a model that has not learned to use its inputs.
    """

    sweep: Sweep

    @functools.cached_property
    def chance(self) -> float:
        """The loss of a model that has not learned to use its inputs."""
        loss = chance_loss(self.sweep)
        assert loss is not None, "see `has_losses`"
        return loss

    @functools.cached_property
    def runs(self) -> DataFrame:
        """The method, place, trial and loss of each run. No loss exceeds `chance`, which also counts for lost runs."""
        runs = self.sweep.runs
        loss = runs[LOSS].astype(float).where(runs.status == "done").fillna(self.chance).clip(upper=self.chance)
        places = list(zip(runs[RATE], runs[BETA_2], strict=True))
        return DataFrame({"method": runs[LABEL], "place": places, "trial": runs[TRIAL], "loss": loss})

    @functools.cached_property
    def limit(self) -> float:
        return (float(self.runs.groupby(["method", "place"]).loss.mean().min()) + self.chance) / 2

    @functools.cached_property
    def counts(self) -> Mapping[tuple[str, Place], tuple[int, int]]:
        """How many runs of each method and place fail, and how many there are."""
        fails = (self.runs.loss > self.limit).groupby([self.runs.method, self.runs.place]).agg(["sum", "size"])
        return {at: (int(failed), int(count)) for at, failed, count in fails.itertuples(name=None)}

    @functools.cached_property
    def methods(self) -> Sequence[str]:
        """The methods in the order of the sweep's table."""
        ran = {*self.runs.method}
        return [method for method in self.sweep.table().methods if method in ran]

    @functools.cached_property
    def places(self) -> Sequence[Place]:
        return sorted({*self.runs.place})

    @functools.cached_property
    def betas(self) -> Sequence[float]:
        return sorted({beta_2 for _, beta_2 in self.places})

    def cell(self, method: str, place: Place) -> Cell:
        """The runs at a place, in the unit of the objective."""
        return self.sweep.table().cell(place, method)

    def failed(self, method: str, place: Place) -> int | None:
        """How many seeds fail; None where nothing has been run."""
        return self.counts.get((method, place), (None, 0))[0]

    def count(self, method: str, place: Place) -> int:
        return self.counts.get((method, place), (None, 0))[1]

    def failed_text(self, method: str) -> str:
        found = [count for (name, _), count in self.counts.items() if name == method]
        return " of ".join(str(sum(each)) for each in zip(*found, strict=True)) or NOTHING

    def difference(self, first: str, second: str, places: Iterable[Place]) -> Difference:
        """second - first in the unit of the objective, over seeds, averaged over some places."""
        table = self.sweep.table()
        rows = [table.rows.index(place) for place in places]
        return difference_of((first, second), *(table.values(method)[rows] for method in (first, second)))


METHOD_HEADINGS = ("method", "best cell", "default cell", "largest rate without failures", "failed runs", "mean loss")


def method_table(trained: Trained) -> list[list[str]]:
    """Headings, then a row for each method."""
    return [list(METHOD_HEADINGS), *(_row(trained, method) for method in trained.methods)]


def _row(trained: Trained, method: str) -> list[str]:
    return [
        method,
        _best(trained, method),
        value_with_spread(trained, method, default_place(trained)),
        "; ".join(_largest_rates(trained, method)),
        trained.failed_text(method),
        fixed(float(trained.runs.loss[trained.runs.method == method].mean()), 3),
    ]


def default_place(trained: Trained) -> Place:
    """The smallest rate with the largest beta_2."""
    return min(rate for rate, _ in trained.places), trained.betas[-1]


def _best(trained: Trained, method: str) -> str:
    best = trained.sweep.table([method]).best()
    if best is None:
        return NOTHING
    rate, beta_2 = best[0]
    return f"{value_with_spread(trained, method, (rate, beta_2))} at {value_text(rate)}, {value_text(beta_2)}"


def value_with_spread(trained: Trained, method: str, place: Place) -> str:
    cell = trained.cell(method, place)
    return cell_text(cell, cell.runs, 2) if cell.runs else NOTHING


def _largest_rates(trained: Trained, method: str) -> Iterable[str]:
    """For each beta_2, the largest rate up to which no seed fails."""
    for beta_2 in trained.betas:
        places = [place for place in trained.places if place[1] == beta_2 and trained.count(method, place)]
        trains = [*itertools.takewhile(lambda place: not trained.failed(method, place), places)]
        yield f"{value_text(trains[-1][0]) if trains else NOTHING} ({value_text(beta_2)})"
