"""The length of a run, and where it pauses."""

import bisect
import dataclasses
from collections.abc import Iterator, Sequence

from trainers.engine.config import Config
from trainers.engine.data import Feed, Source
from trainers.engine.flags import INTEGERS, ConfigError, require


@dataclasses.dataclass(frozen=True)
class Plan:
    """The length of a run."""

    steps_per_epoch: int
    total_steps: int

    @classmethod
    def of(cls, config: Config, source: Source, feed: Feed) -> "Plan":
        steps = source.steps_per_epoch(feed)
        if steps == 0:
            raise ConfigError(
                f"--{config.batch_flag} must not exceed what there is to train on, {source.size} examples. "
                f"Received: {config.global_batch}"
            )
        plan = cls(steps, config.steps or steps * config.epochs)
        require(plan.total_steps in INTEGERS, "--epochs must be fewer than 2^63 updates", config.epochs)
        written = plan.checkpoints(config.checkpoint_every)
        require(config.average <= written, f"--average must be at most the run's {written} checkpoints", config.average)
        return plan

    def segments(self, start: int, intervals: Sequence[int], stops: Sequence[int] = ()) -> Iterator[tuple[int, int]]:
        """(first, last) steps between two records: at multiples of intervals, ends of epochs, sorted stops."""
        while start < self.total_steps:
            multiples = [(start // every + 1) * every for every in intervals]
            following = bisect.bisect_right(stops, start)
            end = min([*multiples, *stops[following : following + 1], self.total_steps, self.epoch_end(start)])
            yield start, end
            start = end

    def epoch_end(self, step: int) -> int:
        return (step // self.steps_per_epoch + 1) * self.steps_per_epoch

    def is_epoch_end(self, step: int) -> bool:
        return step % self.steps_per_epoch == 0 or step == self.total_steps

    def checkpoints(self, every: int) -> int:
        """The number of checkpoints that the run writes: one per `every` steps, or per epoch, and one at its end."""
        return -(-self.total_steps // (every or self.steps_per_epoch))
