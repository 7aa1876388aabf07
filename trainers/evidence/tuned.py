"""What a tuned period gains over the untuned warmups, in sweeps that have both."""

from collections.abc import Iterable, Sequence

from trainers.evidence.margins import Margin
from trainers.evidence.questions import terms_of
from trainers.evidence.tables import place_text
from trainers.reports.reading import Sweep
from trainers.sweeps.tuned import duels
from trainers.sweeps.tuned_findings import tuned_findings


def tuned_texts(sweeps: Iterable[Sweep], margins: Sequence[Margin] = ()) -> list[str]:
    """A sentence for every sweep, tuned warmup and untuned rule."""
    return [text for sweep in sweeps for text in _texts(sweep, margins)]


def _texts(sweep: Sweep, margins: Sequence[Margin]) -> Iterable[str]:
    table = sweep.table()
    for finding in tuned_findings(table, duels(table, sweep.results), terms_of(sweep, margins)):
        yield f"{place_text(sweep.task, sweep.subject, sweep.folder.name)}: {finding}"
