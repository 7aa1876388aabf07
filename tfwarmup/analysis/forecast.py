"""What a warmup will do to a run whose length is known, before the run is made."""

import bisect
from typing import Any, NamedTuple

import keras

from tfwarmup import checks, compat, warmups
from tfwarmup.analysis.warmup_report import FULL
from tfwarmup.schedules import warmup_schedules
from tfwarmup.warmups import Warmup


class Forecast(NamedTuple):
    """A warmup in the next updates of an optimizer."""

    warmup: Warmup
    made: int  # the updates that it has behind it
    updates: int  # those to come
    rate: float | None  # without the warmup; `None` if that is a schedule

    @property
    def left(self) -> float | None:
        """The rest of the warmup, in updates; `None` if it cannot be known in advance."""
        try:
            return max(self.warmup.length - self.made, 0.0)
        except ValueError:  # a function of t without a period, or a dynamic warmup
            return None

    def __str__(self) -> str:
        name = next((name for name, cls in warmups.WARMUPS.items() if type(self.warmup) is cls), "custom")
        head = f"{name.replace('_', ' ')} warmup"
        if self.left == 0:
            return f"{head}: over before the next {self.updates:,} updates"
        if isinstance(self.warmup, warmups.Dynamic):
            return f"{head} in {self.updates:,} updates: its end depends on them"
        over = "in" if self.left is None else f"over {self.left:,.0f} of"
        return f"{head} {over} {self.updates:,} updates: {self._end()}"

    def _end(self) -> str:
        full = "the full rate" if self.rate is None else f"{self.rate:.3g}"
        last = float(self.warmup(float(self.made + self.updates)))
        if last < FULL:
            end = f"{last:.1%} of it" if self.rate is None else f"{last * self.rate:.3g}"
            return f"never reaches {full} (ends at {end})"
        to_come = range(1, self.updates + 1)
        first = bisect.bisect_left(to_come, FULL, key=lambda t: float(self.warmup(float(self.made + t))))
        return f"at {full} from update {to_come[first]:,} on"


def forecasts(optimizer: Any, updates: int) -> list[Forecast]:
    """A forecast for each warmup of an optimizer with one learning rate."""
    made, rate = compat.updates_made(optimizer), compat.known_rate(optimizer)
    found = [(schedule.warmup, schedule.start, schedule.learning_rate) for schedule in warmup_schedules(rate)]
    if hasattr(optimizer, "warmup_start"):
        found.append((optimizer.warmup, int(compat.number(optimizer.warmup_start)), rate))
    return [
        Forecast(warmup, made - start, updates, base if isinstance(base, float) else None)
        for warmup, start, base in found
        if not isinstance(warmup, warmups.NoWarmup)
    ]


def describe(optimizer: Any, updates: int) -> str:
    """Says in one line what the warmup of an optimizer will do in its next updates.

    Args:
        optimizer: Any Keras optimizer. Each member of a `MultiOptimizer` gets a line.
        updates: The number of updates to come, see `updates_of`.

    >>> from tfwarmup import Adam
    >>> describe(Adam(1e-3, warmup="linear", period=2000), updates=470)
    'linear warmup over 2,000 of 470 updates: never reaches 0.001 (ends at 0.000235)'
    """
    checks.integer("updates", updates, least=1)
    members = compat.checked_members(optimizer)
    return "\n".join(" and ".join(map(str, forecasts(member, updates))) or "no warmup" for member in members)


def updates_of(data: Any, batch_size: int | None = None, epochs: int = 1, accumulation: int = 1) -> int:
    """Counts the updates that `fit` makes.

    Args:
        data: What `fit` gets: an array or a structure of arrays, or batches with a length, such as a `tf.data.Dataset`,
            a `PyDataset` or a torch `DataLoader`. Or the number of examples.
        batch_size: The batch size, for arrays and numbers. By default 32, as in `fit`.
        epochs: The number of epochs.
        accumulation: The optimizer's `gradient_accumulation_steps`, if it has any.

    >>> updates_of(1500, batch_size=32, epochs=10), updates_of(1500, epochs=10, accumulation=4)
    (470, 117)
    """
    first = keras.tree.flatten(data)[0] if isinstance(data, (tuple, list, dict)) else data
    shape = tuple(getattr(first, "shape", ()))  # a number of numpy has an empty one
    if checks.is_number(first) or shape:
        examples = shape[0] if shape else checks.integer("data", first, least=1)
        batches = -(-examples // checks.integer("batch_size", 32 if batch_size is None else batch_size, least=1))
    elif batch_size is not None:
        raise ValueError(f"`batch_size` is for arrays: batches have theirs. Received: batch_size={batch_size!r}")
    else:
        try:
            batches = getattr(data, "num_batches", None) or len(data)
        except TypeError as error:  # it has no length, as a generator, or no end, as a repeated dataset
            rule = "`data` must have a length: count its batches yourself"
            raise ValueError(f"{rule}. Received: data={checks.shown(data)}") from error
    steps = int(batches) * checks.integer("epochs", epochs, least=1)
    return steps // checks.integer("accumulation", accumulation, least=1)
