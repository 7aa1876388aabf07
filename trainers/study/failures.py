"""Which runs of a sweep fail to train."""

import collections
import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from trainers.evidence.objectives import OBJECTIVES
from trainers.reports.reading import Sweep
from trainers.sweeps.cells import FIELDS, method_label
from trainers.sweeps.results import Result
from trainers.tasks.frequencies import UNIGRAM_LOSS

LOSS = "val_loss"
# The number of classes of image data sets, where it is known.
CLASSES = {"digits": 10, "mnist": 10, "emnist": 10, "emnist/digits": 10, "imagenette": 10, "imagenet2012": 1000}
RATE, BETA_2, _, SEED = FIELDS

# A learning rate and a beta_2.
Place = tuple[float, float]


def chance_loss(sweep: Sweep) -> float | None:
    """The loss of a model that has not learned to use its inputs; None if it is not known.

    It gives words their frequencies in the training text, if the runs of the sweep have recorded that loss, and
    otherwise all classes or words the same probability.
    """
    recorded = [result.metrics.get(UNIGRAM_LOSS) for result in sweep.results]
    if losses := [loss for loss in recorded if loss is not None]:
        return max(losses)
    known = (
        CLASSES if sweep.task == "image_classification" else {sweep.data: sweep.folder.config.get("vocabulary_size")}
    )
    count = known.get(sweep.data) if sweep.task in OBJECTIVES else None
    return math.log(count) if count else None


def has_losses(sweep: Sweep) -> bool:
    """Whether it can be decided which runs of a sweep fail: all losses are known, and there are no further axes."""
    done = [result for result in sweep.results if result.status == "done"]
    losses = all(result.metrics.get(LOSS) is not None for result in done)
    plain = set(sweep.table().row_names) == {RATE, BETA_2}
    return bool(done) and losses and plain and chance_loss(sweep) is not None


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
    def runs(self) -> Mapping[str, Mapping[Place, Mapping[Any, Result]]]:
        """The runs by method, place and seed."""
        found: dict[str, dict[Place, dict[Any, Result]]] = collections.defaultdict(
            lambda: collections.defaultdict(dict)
        )
        for result in self.sweep.results:
            place = result.values[RATE], result.values[BETA_2]
            found[method_label(result.values)][place][result.values[SEED]] = result
        return found

    @functools.cached_property
    def limit(self) -> float:
        means = [
            math.fsum(map(self.loss, runs.values())) / len(runs)
            for places in self.runs.values()
            for runs in places.values()
        ]
        return (min(means) + self.chance) / 2

    @property
    def methods(self) -> Sequence[str]:
        """The methods in the order of the sweep's table."""
        return [method for method in self.sweep.table().methods if method in self.runs]

    @property
    def places(self) -> Sequence[Place]:
        return sorted({place for places in self.runs.values() for place in places})

    def loss(self, run: Result) -> float:
        """The validation loss, limited to `chance`, which also counts for a run that diverged."""
        loss = run.metrics.get(LOSS)
        return min(loss, self.chance) if loss is not None and run.status == "done" else self.chance

    def fails(self, run: Result) -> bool:
        return self.loss(run) > self.limit

    def failed(self, method: str, place: Place) -> int | None:
        """How many seeds fail; None where nothing has been run."""
        runs = self.runs[method].get(place)
        return None if not runs else sum(map(self.fails, runs.values()))

    def count(self, method: str, place: Place) -> int:
        return len(self.runs[method].get(place, {}))
