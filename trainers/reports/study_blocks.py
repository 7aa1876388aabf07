"""Blocks for the study in docs/dynamic_warmup.md: where methods fail, and how long a warmup must be."""

from collections.abc import Iterable

from trainers.reports.blocks import Block, Picture, Points, TableBlock, Text
from trainers.reports.tables import plain_table
from trainers.results.methods import style_of
from trainers.results.runs import Sweep
from trainers.study.checks import score
from trainers.study.conditions import DYNAMIC, conditions
from trainers.study.failures import Trained, has_losses, method_table
from trainers.study.failures_figure import failures_svg
from trainers.study.periods import can_judge, period_table


def study_blocks(number: int, sweep: Sweep) -> Iterable[Block]:
    """Blocks for a sweep with a dynamic warmup or with several periods of a tuned one; none for any other."""
    if not has_losses(sweep):
        return
    trained = Trained(sweep)
    if DYNAMIC in trained.runs:
        headings, *rows = method_table(trained)
        named = [[style_of(method).label, *others] for method, *others in rows]
        caption = "What each method reached, and where it trains"
        yield TableBlock(plain_table(f"sweep_{number}_study", caption, headings, named, labels=1))
        yield Points(conditions(trained))
    if can_judge(trained):
        headings, *rows = period_table(trained)
        caption = "Is untuned linear warmup long enough?"
        yield TableBlock(plain_table(f"sweep_{number}_periods", caption, headings, rows, labels=2))
    if found := score(trained):
        headings, *rows = found.table()
        caption = "Is the verdict of a warmup check right?"
        yield TableBlock(plain_table(f"sweep_{number}_checks", caption, headings, rows, labels=1))
        yield Text(found.text())
    if DYNAMIC in trained.runs or can_judge(trained):
        yield Text(f"A run fails to train if its validation loss ends above {trained.limit:.3f}, or if it diverges.")
        yield Picture(*failures_svg(trained), _in_words(trained))


def _in_words(trained: Trained) -> str:
    """Describes the picture, for readers who cannot see it."""
    failing = [
        f"{style_of(method).label} at learning rate {rate:g} and beta_2 {beta_2:g}: "
        f"{failed} of {trained.count(method, (rate, beta_2))}"
        for method in trained.methods
        for rate, beta_2 in trained.places
        if (failed := trained.failed(method, (rate, beta_2)))
    ]
    return f"Runs that fail to train. {'; '.join(failing) or 'None'}."
