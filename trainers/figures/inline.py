"""Figures inside a page, as SVG whose text is text, whose values are in titles, and whose colours are the page's."""

import dataclasses
import html
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatterSciNotation, NullLocator

from trainers.figures.look import SETTINGS, picture
from trainers.results.formats import rounded

# Mathtext becomes an element for each letter, so the page has none. A fixed height of titles saves a second layout.
ON_PAGE: Any = {
    **SETTINGS,
    "axes.titley": 1.0,
    "svg.fonttype": "none",
    "text.parse_math": False,
    **{f"{axis}tick.{kind}.size": 0 for axis in "xy" for kind in ("major", "minor")},
}
IN_WORDS = {
    r"$\alpha$": "α",
    r"$\beta_2$": "β₂",
    r"$\omega_t$": "ω",
    r"$|m_t|$": "|m|",
    r"$\sqrt{v_t}$": "√v",
    r"$\sum_t (1 - \omega_t)$": "Σ (1 − ω)",
}
SIZE = (4.6, 3.0)  # inches
MARGINS = (0.72, 0.3, 0.5, 0.1)  # left, right, bottom, top
TITLED = "_:"  # what follows in a label is a title that no legend shows
MOST_VALUES = 12  # per curve: those that are shown under the pointer and in the table of numbers
MOST_COLUMNS = 8  # of the table of numbers

Draw = Callable[[Axes], None]
# Values of a curve at about even distances: x, y, and their place in the picture, across and up.
Values = Sequence[Sequence[float]]


@dataclasses.dataclass(frozen=True)
class Chart:
    """A figure of the page, and a few values of each of its curves as a table."""

    svg: str
    title: str = ""
    headings: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def chart(
    name: str,
    draw: Draw,
    title: str = "",
    size: tuple[float, float] = SIZE,
    margins: tuple[float, float, float, float] = MARGINS,
    label: str = "",
) -> Chart:
    """Draws one panel for the page.

    Args:
        name: A name that is unique on the page.
        draw: Draws into the axes, as for a file.
        title: The title; by default that of the axes.
        size: Width and height in inches.
        margins: Left, right, bottom and top of the axes, in inches. They are fixed, because matplotlib takes twice as
            long if it has to find them.
        label: What a screen reader says; by default, where every curve begins and ends.
    """
    with matplotlib.rc_context(ON_PAGE):
        figure = Figure(figsize=size, dpi=72, frameon=False)
        (width, height), (left, right, bottom, top) = size, margins
        box = (left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height)
        axes = figure.add_axes(box)
        draw(axes)
        axes.autoscale_view()  # else it would happen after the values have got their places
        _plain(axes)
        title = title or _in_words(axes.get_title("left"))
        axes.set_title("")
        # Curves with a label: reference lines are drawn in a mixed transform.
        lines = [line for line in axes.get_lines() if line.get_transform() == axes.transData]
        curves = [line for line in lines if not str(line.get_label()).startswith("_")]
        label = label or _description(title, axes, curves)
        values = {line: _values(line, axes) for line in curves}
        svg = inline(name, figure, label, _hits(axes, values), _frame(axes))
    headings, rows = _numbers(axes, values)
    return Chart(svg, title, headings, rows)


def inline(name: str, figure: Figure, label: str, more: str = "", frame: str = "") -> str:
    """The SVG element of a figure, in which labels are titles.

    Args:
        name: A name that is unique on the page.
        figure: A figure, drawn in the look of `ON_PAGE`.
        label: What a screen reader says in place of the figure.
        more: Further elements at its end.
        frame: The ends of its axes, for scripts.
    """
    titles: dict[str, str] = {}
    for artist in (artist for axes in figure.axes for artist in (*axes.lines, *axes.patches, *axes.collections)):
        if re.match(f"[^_]|{TITLED}", str(artist.get_label())):
            name_of_title = f"title_{len(titles)}"
            artist.set_gid(name_of_title)
            titles[name_of_title] = str(artist.get_label()).removeprefix(TITLED)
    with matplotlib.rc_context({"svg.hashsalt": name}):  # clip paths and markers have names of their own on a page
        text = picture(figure, "svg").decode()
    text = re.sub(r">\s+<", "><", text[text.index('<g id="figure') : text.rindex("</svg>")])
    text = re.sub("<[^>]*>", lambda tag: _short_tag(tag[0], titles), text)
    size = " ".join(f"{72 * inches:g}" for inches in figure.get_size_inches())
    opening = f'<svg viewBox="0 0 {size}" data-frame="{frame}" role="img" aria-label="{html.escape(label)}">'
    return f"{opening}{text}{more}</svg>"


def _short_tag(tag: str, titles: Mapping[str, str]) -> str:
    """A tag as the page needs it: names become titles or go, and colours are variables.

    >>> _short_tag('<g id="title_1">', {"title_1": "RAdam, seed 1"}), _short_tag('<g id="patch_1">', {})
    ('<g><title>RAdam, seed 1</title>', '<g>')
    >>> _short_tag('<path d="M 1.26 20.04 L 3.5 7 z" style="fill: #ffffff"/>', {})
    '<path d="M1.3 20L3.5 7z" style="fill: var(--cffffff, #ffffff)"/>'
    """
    if found := re.fullmatch(r'<g id="([\w.]+)"(/?)>', tag):
        name, empty = found.groups()
        return f"<g><title>{html.escape(titles[name])}</title>" if name in titles else "" if empty else "<g>"
    tag = re.sub(r' font-family: [^;"]*;?|; stroke-linecap: square| transform="rotate\(-0 [^"]*"', "", tag)
    if path := re.search(r'(?<= d=")[^"]*', tag):  # one digit after the point: no screen shows more
        parts = [part if part.isalpha() else f"{float(part):.1f}".removesuffix(".0") for part in path[0].split()]
        tag = tag.replace(path[0], re.sub(r" ?([A-Za-z]) ?", r"\1", " ".join(parts)))
    return re.sub(r"#[0-9a-f]{6}\b", lambda colour: f"var(--c{colour[0][1:]}, {colour[0]})", tag)


def _frame(axes: Axes) -> str:
    """Left, right, bottom and top of the axes in the units of the SVG, which counts from the top."""
    box, height = axes.bbox, axes.figure.bbox.height
    return " ".join(f"{end:.1f}" for end in (box.x0, box.x1, height - box.y0, height - box.y1))


def _plain(axes: Axes) -> None:
    """Replaces mathtext, and draws neither the background nor ticks without a label."""
    legend = axes.get_legend()
    for text in (axes.xaxis.label, axes.yaxis.label, *(legend.get_texts() if legend else ())):
        text.set_text(_in_words(text.get_text()))
    axes.patch.set_visible(False)
    for axis in (axes.xaxis, axes.yaxis):
        if isinstance(axis.get_major_formatter(), LogFormatterSciNotation):  # writes mathtext
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter("{x:,g}")


def _in_words(text: str) -> str:
    for formula, words in IN_WORDS.items():
        text = text.replace(formula, words)
    return text


def _values(line: Line2D, axes: Axes) -> Values:
    data = np.asarray(line.get_xydata(), float)
    if not len(data):
        return []
    places = axes.transData.transform(data)
    across = places[:, 0]
    chosen = np.unique(np.searchsorted(across, np.linspace(across[0], across[-1], MOST_VALUES)))
    shown = chosen[np.isfinite(places[chosen]).all(axis=1)]
    return np.hstack([data, places])[shown].tolist()  # type: ignore[no-any-return]


def _x_text(axes: Axes, x: float) -> str:
    return axes.fmt_xdata(x) if axes.fmt_xdata else rounded(x)


def _hits(axes: Axes, values: Mapping[Line2D, Values]) -> str:
    """Invisible circles at some values of each curve: the pointer shows their titles."""
    height = axes.figure.bbox.height
    circles = [
        f'<circle cx="{across:.1f}" cy="{height - up:.1f}" r="6"><title>'
        f"{html.escape(f'{line.get_label()}: {rounded(y)} at {_x_text(axes, x)}')}</title></circle>"
        for line, found in values.items()
        for x, y, across, up in found
    ]
    return f'<g class="values">{"".join(circles)}</g>'


def _numbers(axes: Axes, values: Mapping[Line2D, Values]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Headings and rows of the table of numbers; nothing where there are too many curves."""
    if not 0 < len(values) <= MOST_COLUMNS:
        return (), ()
    headings = [axes.get_xlabel(), *(str(line.get_label()) for line in values)]
    columns = [{x: rounded(y) for x, y, *_ in found} for found in values.values()]
    places = {x: across for found in values.values() for x, _, across, _ in found}
    rows = [
        [_x_text(axes, x), *(column.get(x, "") for column in columns)] for x in sorted(places, key=places.__getitem__)
    ]
    return headings, rows


def _description(title: str, axes: Axes, curves: Sequence[Line2D]) -> str:
    """For readers who cannot see the figure: where every curve begins and ends."""
    told = [f"{title}. {axes.get_ylabel()} over {axes.get_xlabel()}."]
    for line in curves if len(curves) <= MOST_COLUMNS else ():
        known = [(x, y) for x, y in np.asarray(line.get_xydata(), float).tolist() if np.isfinite(y)]
        ends = ", ".join(f"{rounded(y)} at {_x_text(axes, x)}" for x, y in (known[:1] + known[-1:]))
        told.append(f"{line.get_label()}: {ends or 'no values'}.")
    return " ".join(told)
