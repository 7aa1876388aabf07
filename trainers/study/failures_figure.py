"""Where methods fail to train: a square for each method, learning rate and beta_2."""

import functools
import itertools
import pathlib
from typing import Any

from matplotlib.axes import Axes

from trainers.figures.inline import Chart, chart
from trainers.figures.look import draw_and_save
from trainers.results.formats import value_text
from trainers.results.methods import style_of
from trainers.study.failures import Place, Trained

TRAINS, FAILS = "#E8F1EC", "#D55E00"
MOST_UPRIGHT = 4  # labels of learning rates that fit side by side below a panel


def draw_failures(folder: pathlib.Path, trained: Trained) -> str:
    """Writes the figure and its numbers, and returns the name of the files."""
    name, betas = f"failures_{trained.sweep.folder.name}", trained.betas
    seeds = max(count for _, count in trained.counts.values())
    draw_and_save(
        folder,
        name,
        [functools.partial(_draw, trained, beta_2) for beta_2 in betas],
        _numbers(trained),
        caption=f"Runs that fail to train, of {seeds} seeds per square. {len(trained.sweep.runs):,} runs.",
        width=1.9 * len(betas) + 1.5,
        height=0.26 * len(trained.methods) + 1.0,
    )
    return name


def failure_charts(name: str, trained: Trained) -> list[Chart]:
    """The panels of the figure for the page."""
    left = 0.4 + 0.075 * max(len(style_of(method).label) for method in trained.methods)
    size, margins = (4.6, 0.22 * len(trained.methods) + 0.7), (left, 0.1, 0.65, 0.05)
    charts = []
    for number, beta_2 in enumerate(trained.betas):
        draw, label = functools.partial(_draw, trained, beta_2), _in_words(trained, beta_2)
        charts.append(chart(f"{name}-{number}", draw, size=size, margins=margins, label=label))
    return charts


def _in_words(trained: Trained, beta_2: float) -> str:
    cells = itertools.product(trained.methods, (place for place in trained.places if place[1] == beta_2))
    failing = [failure_text(trained, *cell) for cell in cells if trained.failed(*cell)]
    return f"Runs that fail to train. {'; '.join(failing) or f'None at beta_2 {beta_2:g}'}."


def _draw(trained: Trained, beta_2: float, panel: Axes) -> None:
    rates = [rate for rate, other in trained.places if other == beta_2]
    panel.set_title(f"$\\beta_2$ = {value_text(beta_2)}")
    labels = [value_text(rate) for rate in rates]
    panel.set_xticks(range(len(rates)), labels, rotation=90 if len(rates) > MOST_UPRIGHT else 0)
    panel.set_yticks(range(len(trained.methods)), [style_of(method).label for method in trained.methods])
    panel.set_xlim(-0.5, len(rates) - 0.5)
    panel.set_ylim(len(trained.methods) - 0.5, -0.5)
    panel.set_xlabel("Learning rate")
    panel.grid(visible=False)
    for column, rate in enumerate(rates):
        for row, method in enumerate(trained.methods):
            _square(panel, column, row, trained, method, (rate, beta_2))
    place = panel.get_subplotspec()
    if place is not None and place.colspan.start:  # side by side: the names are on the left
        panel.set_yticklabels([])


def _square(panel: Axes, column: int, row: int, trained: Trained, method: str, place: Place) -> None:
    failed, count = trained.failed(method, place), trained.count(method, place)
    if failed is None:
        return
    shade: Any = FAILS if failed else TRAINS
    alpha = 0.35 + 0.65 * failed / count if failed else 1.0
    (square,) = panel.barh(row, 0.92, left=column - 0.46, height=0.86, color=shade, alpha=alpha)
    square.set_label(failure_text(trained, method, place))
    if failed:
        panel.annotate(str(failed), (column, row), ha="center", va="center", fontsize=7)


def failure_text(trained: Trained, method: str, place: Place) -> str:
    """How many runs of a method fail at a learning rate and a beta_2, in words."""
    rate, beta_2 = place
    failed, count = trained.failed(method, place), trained.count(method, place)
    return f"{style_of(method).label} at learning rate {rate:g} and beta_2 {beta_2:g}: {failed} of {count}"


def _numbers(trained: Trained) -> dict[str, list[Any]]:
    cells = [cell for cell in itertools.product(trained.methods, trained.places) if trained.count(*cell)]
    return {
        "method": [method for method, _ in cells],
        "learning_rate": [place[0] for _, place in cells],
        "beta_2": [place[1] for _, place in cells],
        "failed": [trained.failed(*cell) for cell in cells],
        "runs": [trained.count(*cell) for cell in cells],
    }
