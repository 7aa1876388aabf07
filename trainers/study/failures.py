"""Which runs of a sweep fail to train, and what each method reaches."""

import collections
import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainers.evidence.differences import Difference, difference_of
from trainers.evidence.summary import cell_text
from trainers.results.formats import NOTHING, fixed, value_text
from trainers.results.methods import FIELDS
from trainers.results.results_csv import LABEL
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
Run = Mapping[str, Any]  # a row of the data frame of a sweep


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
    def runs(self) -> Mapping[tuple[str, Place], Sequence[Run]]:
        """The runs by method and place."""
        found: dict[tuple[str, Place], list[Run]] = collections.defaultdict(list)
        for run in self.sweep.runs.to_dict("records"):
            found[run[LABEL], (run[RATE], run[BETA_2])].append(run)
        return dict(found)

    @functools.cached_property
    def limit(self) -> float:
        return (min(map(self.mean_loss, self.runs.values())) + self.chance) / 2

    @functools.cached_property
    def methods(self) -> Sequence[str]:
        """The methods in the order of the sweep's table."""
        ran = {method for method, _ in self.runs}
        return [method for method in self.sweep.table().methods if method in ran]

    @functools.cached_property
    def places(self) -> Sequence[Place]:
        return sorted({place for _, place in self.runs})

    def runs_of(self, method: str) -> Sequence[Run]:
        return [run for (name, _), runs in self.runs.items() if name == method for run in runs]

    def cell(self, method: str, place: Place) -> Cell:
        """The runs at a place, in the unit of the objective."""
        return self.sweep.table().cell(place, method)

    def loss(self, run: Run) -> float:
        """The validation loss, limited to `chance`, which also counts for a run that diverged."""
        loss = run.get(LOSS)
        return min(loss, self.chance) if loss is not None and run["status"] == "done" else self.chance

    def mean_loss(self, runs: Sequence[Run]) -> float:
        return math.fsum(map(self.loss, runs)) / len(runs)

    def fails(self, run: Run) -> bool:
        return self.loss(run) > self.limit

    def failed(self, method: str, place: Place) -> int | None:
        """How many seeds fail; None where nothing has been run."""
        runs = self.runs.get((method, place))
        return None if not runs else sum(map(self.fails, runs))

    def count(self, method: str, place: Place) -> int:
        return len(self.runs.get((method, place), ()))

    def failed_text(self, method: str) -> str:
        runs = self.runs_of(method)
        return f"{sum(map(self.fails, runs))} of {len(runs)}" if runs else NOTHING

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
        fixed(trained.mean_loss(trained.runs_of(method)), 3),
    ]


def default_place(trained: Trained) -> Place:
    """The smallest rate with the largest beta_2."""
    return min(rate for rate, _ in trained.places), max(beta_2 for _, beta_2 in trained.places)


def _best(trained: Trained, method: str) -> str:
    cells = {place: trained.cell(method, place) for place in trained.places}
    most = max(cell.n for cell in cells.values())
    means = {place: cell.mean for place, cell in cells.items() if cell.n == most and cell.mean is not None}
    if not means:
        return NOTHING
    sign = 1 if trained.sweep.objective.direction == "min" else -1
    place = min(means, key=lambda at: (sign * means[at], at))
    return f"{value_with_spread(trained, method, place)} at {value_text(place[0])}, {value_text(place[1])}"


def value_with_spread(trained: Trained, method: str, place: Place) -> str:
    cell = trained.cell(method, place)
    return cell_text(cell, cell.runs, 2) if cell.runs else NOTHING


def _largest_rates(trained: Trained, method: str) -> Iterable[str]:
    """For each beta_2, the largest rate up to which no seed fails."""
    for beta_2 in sorted({beta_2 for _, beta_2 in trained.places}):
        largest = None
        for rate in sorted(rate for name, (rate, other) in trained.runs if (name, other) == (method, beta_2)):
            if trained.failed(method, (rate, beta_2)):
                break
            largest = rate
        yield f"{NOTHING if largest is None else value_text(largest)} ({value_text(beta_2)})"
