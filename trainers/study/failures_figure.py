"""Where methods fail to train: a square for each method, learning rate and beta_2."""

import pathlib
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trainers.figures.look import in_one_look, picture, save, wide_and_narrow
from trainers.results.formats import value_text
from trainers.results.methods import style_of
from trainers.study.failures import Place, Trained

TRAINS, FAILS = "#E8F1EC", "#D55E00"
MOST_UPRIGHT = 4  # labels of learning rates that fit side by side below a panel


@in_one_look
def draw_failures(folder: pathlib.Path, trained: Trained) -> str:
    """Writes the figure and its numbers, and returns the name of the files."""
    name = f"failures_{trained.sweep.folder.name}"
    wide, narrow = _figures(trained)
    save(folder, name, wide, _numbers(trained), narrow)
    return name


@in_one_look
def failures_svg(trained: Trained) -> tuple[bytes, bytes]:
    """The figure as SVG, for the page and for phones."""
    wide, narrow = _figures(trained)
    return picture(wide, "svg"), picture(narrow, "svg")


def _figures(trained: Trained) -> tuple[Figure, Figure]:
    """The wide and the narrow figure, with a panel for each beta_2."""
    betas = sorted({beta_2 for _, beta_2 in trained.places})
    seeds = max(trained.count(method, place) for method in trained.methods for place in trained.places)
    return wide_and_narrow(
        lambda axes: _draw(axes, trained, betas),
        f"Runs that fail to train, of {seeds} seeds per square. {len(trained.sweep.results):,} runs.",
        panels=len(betas),
        width=1.9 * len(betas) + 1.5,
        height=0.26 * len(trained.methods) + 1.0,
    )


def _draw(axes: list[Axes], trained: Trained, betas: list[float]) -> None:
    for panel, beta_2 in zip(axes, betas, strict=True):
        rates = sorted({rate for rate, other in trained.places if other == beta_2})
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
    for panel in axes[1:]:
        place = panel.get_subplotspec()
        if place is not None and place.colspan.start:  # side by side: the names are on the left
            panel.set_yticklabels([])


def _square(panel: Axes, column: int, row: int, trained: Trained, method: str, place: Place) -> None:
    failed, count = trained.failed(method, place), trained.count(method, place)
    if failed is None:
        return
    shade: Any = FAILS if failed else TRAINS
    alpha = 0.35 + 0.65 * failed / count if failed else 1.0
    panel.barh(row, 0.92, left=column - 0.46, height=0.86, color=shade, alpha=alpha)
    if failed:
        panel.annotate(str(failed), (column, row), ha="center", va="center", fontsize=7)


def _numbers(trained: Trained) -> dict[str, list[Any]]:
    cells = [(method, place) for method in trained.methods for place in trained.places if trained.count(method, place)]
    return {
        "method": [method for method, _ in cells],
        "learning_rate": [place[0] for _, place in cells],
        "beta_2": [place[1] for _, place in cells],
        "failed": [trained.failed(*cell) for cell in cells],
        "runs": [trained.count(*cell) for cell in cells],
    }
