"""The source of the runs of a grid."""

from collections.abc import Iterable

from trainers.sweeps.cells import Cell
from trainers.sweeps.results import Result


class GridSource:
    """Hands out cells in their order.

    keras-tuner's own grid derives the next cell from those that have ended: it forgets some after a kill, and hands out
    only one at a time, however many workers there are.
    """

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._waiting = {cell.name: cell for cell in cells}
        self.total: int | None = len(self._waiting)

    def next(self) -> Cell | None:
        return self._waiting.pop(next(iter(self._waiting))) if self._waiting else None

    def take(self, name: str) -> Cell | None:
        return self._waiting.pop(name, None)

    def ended(self, cell: Cell, result: Result | None) -> None:
        """Does nothing: the next cell does not depend on results."""
