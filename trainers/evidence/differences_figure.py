"""The main figure: differences between methods with their intervals, beside the margin."""

import dataclasses
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from trainers.evidence.comparison import Verdict, judge
from trainers.evidence.differences import LEVELS, Difference
from trainers.evidence.findings import difference_text, margin_text
from trainers.evidence.questions import FIRST_STEPS, NO_WARMUP, Answer
from trainers.evidence.tables import evidence_columns
from trainers.figures.inline import ON_PAGE, TITLED, Chart, inline
from trainers.figures.look import COLUMN, COLUMN_WIDTH, PLAIN, in_one_look, save
from trainers.results.formats import counted, distinct, upper_first
from trainers.results.methods import style_of

# Colour, marker and label: nothing depends on colour alone.
LOOKS = {
    Verdict.EQUIVALENT: (PLAIN, "o", "90 % interval inside the margin"),
    Verdict.DIFFERENT: ("#D55E00", "D", "wholly outside"),
    Verdict.INCONCLUSIVE: ("#666666", "s", "across the margin"),
}
WIDEST = 4.0  # margins to either side of zero; an arrow marks what reaches farther


@dataclasses.dataclass(frozen=True)
class Layout:
    """Sizes in inches, font sizes in points; only a wide figure has room for the numbers."""

    width: float
    row: float
    head: float
    letters: float
    marker: float
    legend_columns: int
    wide: bool


SCREEN = Layout(9.5, 0.23, 0.34, 9, 5.5, 5, True)
PAPER = Layout(COLUMN_WIDTH, 0.135, 0.34, 6, 3.5, 2, False)
PHONE = dataclasses.replace(PAPER, width=3.0)  # on a screen of 360 pixels its letters are about 10 pixels high


def shown_answers(answers: Sequence[Answer]) -> list[Answer]:
    """The answers with an interval, without the control, whose differences are many margins wide."""
    return [
        answer
        for answer in answers
        if answer.question != NO_WARMUP and answer.comparison.margin and any(d.seeds > 1 for d in _drawn(answer))
    ]


@in_one_look
def draw_differences(folder: pathlib.Path, answers: Sequence[Answer]) -> None:
    """Writes differences.svg, .png, .pdf and .csv: a row for each task, data set and pair, in margins."""
    screen = differences_figure(answers)
    with matplotlib.rc_context(COLUMN):
        save(folder, "differences", screen, evidence_columns(answers), differences_figure(answers, PAPER))


def differences_charts(answers: Sequence[Answer], label: str) -> tuple[Chart, Chart]:
    """The figure for the page: for a screen and for a phone."""
    with matplotlib.rc_context(ON_PAGE):
        wide = _inline("differences", differences_figure(answers), label)
    with matplotlib.rc_context({**COLUMN, **{name: ON_PAGE[name] for name in ON_PAGE.keys() - COLUMN.keys()}}):
        return wide, _inline("differences-narrow", differences_figure(answers, PHONE), label)


def _inline(name: str, figure: Figure, label: str) -> Chart:
    svg = inline(name, figure, label)
    bold = re.sub(r"\$\\bf\{(\w+)\}\$", r'<tspan font-weight="bold">\1</tspan>', svg)
    return Chart(bold.replace(r"\$", "$"))


def differences_figure(answers: Sequence[Answer], layout: Layout = SCREEN) -> Figure:
    shown = shown_answers(answers)
    rows = sum(len(_drawn(answer)) for answer in shown)
    height = 1.2 + layout.head * len(shown) + layout.row * rows
    figure = Figure(figsize=(layout.width, height), layout="constrained")
    axes = figure.subplots()
    reach = _reach(shown)
    axes.axvspan(-1, 1, color=PLAIN, alpha=0.1, linewidth=0)
    axes.axvline(0, color="#555555", linewidth=1)
    height, ticks = 0.0, []
    for answer, title in zip(shown, _distinct_titles(shown), strict=True):
        height += layout.head
        _heading(axes, _heading_text(answer, title, layout), height, layout)
        for difference in _drawn(answer):
            height += layout.row
            _row(axes, answer, difference, height, reach, layout)
            ticks.append((height, _name(difference, layout)))
    axes.set(xlim=(-reach, reach), ylim=(height + 0.6 * layout.row, 0.3 * layout.head))
    axes.set_yticks([at for at, _ in ticks], [name for _, name in ticks])
    axes.tick_params(axis="y", length=0, pad=layout.marker)  # room for an arrow at the edge
    axes.grid(axis="y", visible=False)
    _titles(figure, axes, layout)
    _legend(figure, any(answer.published for answer in shown), layout)
    return figure


def _titles(figure: Figure, axes: Axes, layout: Layout) -> None:
    title = "Do the methods differ by more than would matter?"
    below = ("difference in units of the margin", "to the right the method named first is worse")
    if layout.wide:
        axes.set_title(title)
        axes.set_xlabel("; ".join(below))
    else:  # both are wider than the axes
        figure.suptitle(title, x=0.012, ha="left", fontsize="medium")
        axes.set_xlabel(";\n".join(below), loc="right")


def _drawn(answer: Answer) -> list[Difference]:
    return [difference for difference in answer.comparison.differences if difference.seeds > 1]


def _distinct_titles(shown: Sequence[Answer]) -> list[str]:
    """The title of each answer, with the name of its sweep where others of its question have the same."""
    kinds = [answer.question for answer in shown]
    return distinct([answer.title for answer in shown], [answer.source for answer in shown], kinds)


def _heading(axes: Axes, words: str, height: float, layout: Layout) -> None:
    """Writes the task, the data and the verdict, from the left edge of the figure."""
    place = (0.012, height - (0 if layout.wide else 0.2 * layout.head))
    text = axes.annotate(words, place, xycoords=("figure fraction", "data"), va="center")
    text.set(fontsize=layout.letters, in_layout=False)  # otherwise the axes would shrink to make room for it
    text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})


def _heading_text(answer: Answer, title: str, layout: Layout) -> str:
    first = _drawn(answer)[0]
    what = "RAdam's first steps, " if answer.question == FIRST_STEPS else ""
    name = upper_first(f"{what}{title}")
    whose = "the paper's table: " if answer.published else ""
    sizes = f"{counted(first.cells, 'cell')}, {counted(first.seeds, 'seed')}"
    margin = margin_text(answer.comparison)
    name = name.replace("$", r"\$")  # not a formula
    verdict, details = rf"$\bf{{{answer.comparison.verdict.value}}}$", f"({whose}{sizes}, margin {margin})"
    return f"{name} {details}: {verdict}" if layout.wide else f"{name}: {verdict}\n{details}"


def _name(difference: Difference, layout: Layout) -> str:
    labels = [style_of(method).label for method in difference.pair]
    if not layout.wide:
        labels = [label.removeprefix("Untuned ").removeprefix("RAdam (").removesuffix(")") for label in labels]
    return f"{labels[1]} − {labels[0]}"


def _scaled(answer: Answer, *values: float) -> list[float]:
    """Values in units of the margin, in ascending order, with the sign chosen so that larger is worse."""
    sign = 1 if answer.comparison.direction == "min" else -1
    return sorted(sign * value / (answer.comparison.margin or 1.0) for value in values)


def _reach(shown: Sequence[Answer]) -> float:
    ends = [end for answer in shown for each in _drawn(answer) for end in _scaled(answer, *each.interval(LEVELS[1]))]
    return min(WIDEST, max([1.5, *(1.1 * abs(end) for end in ends)]))


def _row(axes: Axes, answer: Answer, difference: Difference, height: float, reach: float, layout: Layout) -> None:
    """Draws both intervals and the mean, and writes the numbers in their own unit on the right."""
    margin = answer.comparison.margin or 1.0
    colour, marker, _ = LOOKS[judge([difference], margin)]
    text = difference_text(difference, margin, answer.comparison.terms.unit)
    label = f"{TITLED}{_name(difference, SCREEN)}: {text}"
    for level, width in zip(LEVELS, (0.47 * layout.marker, 0.18 * layout.marker), strict=True):
        low, high = _scaled(answer, *difference.interval(level))
        axes.plot([max(low, -reach), min(high, reach)], [height, height], color=colour, linewidth=width, label=label)
    for end, beyond, arrow in ((-reach, low < -reach, "<"), (reach, high > reach, ">")):  # of the wider interval
        if beyond:
            axes.plot(end, height, arrow, color=colour, markersize=layout.marker, clip_on=False)
    [mean] = _scaled(answer, difference.mean)
    if abs(mean) <= reach:
        inside = "white" if answer.published else colour
        axes.plot(mean, height, marker, color=colour, markerfacecolor=inside, markersize=layout.marker, label=label)
    if layout.wide:
        axes.annotate(text, (1.025, height), xycoords=("axes fraction", "data"), va="center", fontsize=8.5)


def _legend(figure: Figure, published: bool, layout: Layout) -> None:
    thick: Any = {"markersize": layout.marker, "linewidth": 0.47 * layout.marker}
    looks: list[Any] = [
        {"color": colour, "marker": mark, "label": word, **thick} for colour, mark, word in LOOKS.values()
    ]
    looks.append({"color": "#666666", "linewidth": 1, "label": "thin: 95 % interval"})
    hollow = {"color": PLAIN, "marker": "o", "markerfacecolor": "white", "label": "hollow: the paper's", **thick}
    handles = [Line2D([], [], **look) for look in (*looks, *([hollow] if published else []))]
    letters = layout.letters - 0.5 if layout.wide else layout.letters
    figure.legend(handles=handles, loc="outside lower center", ncols=layout.legend_columns, fontsize=letters)
