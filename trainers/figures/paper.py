"""The paper's figures: gradients during training (1), update magnitudes at a minimum (2), warmups over beta_2 (3).

Each is drawn into axes once, for files and for the page.
"""

import functools
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from tfwarmup import effective_warmup_period, warmups
from tfwarmup.analysis.simulation import QUANTILES, Magnitudes
from trainers.figures.inline import Chart, chart
from trainers.figures.look import PLAIN, draw_and_save, log_spaced, reference_line
from trainers.results.folders import Series
from trainers.results.methods import DRAWN, STYLES, style_of
from trainers.results.paper import LONG_RUN, NOISY_FROM, SETTLED_AT, SETTLED_LEVEL

PANELS = (
    ("gradient_cv_", "Coefficient of variation of the gradients", "standard deviation / |mean|"),
    ("moment_correlation", r"Correlation of $|m_t|$ and $\sqrt{v_t}$", "correlation"),
    ("update_", "Update magnitudes", r"|update|, units of $\alpha$"),
)


def draw_gradients(
    folder: pathlib.Path, series: Series, caption: str = "One run.", name: str = "gradient_analysis"
) -> None:
    """Writes the figure as .svg, .png and .pdf, and its numbers as .csv."""
    draw_and_save(folder, name, _panels(series), series, caption=caption, width=11.5, height=3.7)


def gradient_charts(name: str, series: Series) -> list[Chart]:
    """The panels of the figure for the page."""
    return [chart(f"{name}-{number}", draw) for number, draw in enumerate(_panels(series))]


def _panels(series: Series) -> list[Callable[[Axes], None]]:
    shown = log_spaced(series)
    return [functools.partial(_draw_panel, shown, *panel) for panel in PANELS]


def _draw_panel(series: Mapping[str, Any], name: str, title: str, label: str, axes: Axes) -> None:
    t = series["t"]
    if f"{name}q25" in series:
        low, high = series[f"{name}q25"], series[f"{name}q75"]
        axes.fill_between(t, low, high, color=PLAIN, alpha=0.2, linewidth=0, label="25th to 75th percentile")
    axes.plot(t, series[name if name in series else f"{name}median"], color=PLAIN, label="median")
    axes.set(xscale="log", xlim=(1, max(2, t[-1])), xlabel="iteration t", ylabel=label)
    axes.set_title(title)
    if title == PANELS[0][1]:
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        reference_line(axes, f"the paper: above 1 from {NOISY_FROM} on", x=NOISY_FROM, y=1)
        axes.legend(loc="upper left")
    elif title == PANELS[1][1]:
        axes.set_ylim(0, 1.05)
    else:
        reference_line(axes, f"the paper: {SETTLED_LEVEL} after {SETTLED_AT}", x=SETTLED_AT, y=SETTLED_LEVEL)
        axes.set_ylim(0, None)
        axes.legend(loc="upper right")


def draw_magnitudes(folder: pathlib.Path, magnitudes: Magnitudes, warmup: str, caption: str = "") -> None:
    """Writes update_magnitudes.svg, .png, .pdf and .csv."""
    numbers = {name: getattr(magnitudes, name) for name in ("t", *QUANTILES)}
    panels = [lambda axes: _draw_magnitudes(axes, numbers, warmup)]
    draw_and_save(folder, "update_magnitudes", panels, numbers, caption=caption or "One simulation.")


def magnitudes_chart(name: str, numbers: Mapping[str, Any], warmup: str) -> Chart:
    """The figure for the page."""
    return chart(name, lambda axes: _draw_magnitudes(axes, numbers, warmup))


def _draw_magnitudes(axes: Axes, numbers: Mapping[str, Any], warmup: str) -> None:
    colour = PLAIN if warmup == "none" else style_of(warmup).colour
    shown = log_spaced(numbers)
    t = shown["t"]
    for low, high, alpha, label in (
        ("q05", "q95", 0.15, "5th to 95th percentile"),
        ("q25", "q75", 0.3, "25th to 75th percentile"),
    ):
        axes.fill_between(t, shown[low], shown[high], color=colour, alpha=alpha, linewidth=0, label=label)
    axes.plot(t, shown["median"], color=colour, label="median")
    if warmup == "none":
        reference_line(axes, f"the paper, in the long run: {LONG_RUN}", y=LONG_RUN)
    axes.set(xscale="log", xlabel="iteration t", ylabel=r"update magnitude, units of $\alpha$")
    axes.set(xlim=(1, max(2, t[-1])), ylim=(0, None))
    method = "Adam" if warmup == "none" else style_of(warmup).label
    axes.set_title(f"Updates at a simulated local minimum: {method}")
    axes.legend(loc="best")


# From 0.9 to 0.9999, evenly spaced in log(1 - beta_2).
BETAS = tuple(1 - np.logspace(-1, -4, 61))
COMPUTED = "Computed from the formulas; no runs."
LAST = 100_000  # updates, on the axis of the page


def draw_factors(folder: pathlib.Path, beta_2: float, updates: int) -> None:
    """Writes factors.svg, .png, .pdf and .csv: omega_t of the three methods at one beta_2."""
    t = np.arange(1, updates + 1)
    factors = {name: warmups.get(name, beta_2=beta_2)(t) for name in DRAWN}
    periods = {name: effective_warmup_period(name, beta_2=beta_2) for name in DRAWN}
    labels = [f"{STYLES[name].label} (effective period {periods[name]:.1f})" for name in DRAWN]

    def draw(axes: Axes) -> None:
        _draw_factors(axes, t, factors, labels)
        axes.set(xlim=(0, updates))
        axes.set_title(rf"Three warmups of Adam at $\beta_2$ = {beta_2:g}")
        axes.legend(loc="lower right")

    draw_and_save(folder, "factors", [draw], {"t": t, **factors}, caption=COMPUTED)


def factors_chart(beta_2: float) -> Chart:
    """The factors for the page, over a logarithmic axis; slider.js replaces the curves for another beta_2."""
    t = log_spaced({"t": np.arange(1, LAST + 1)})["t"]
    factors = {name: warmups.get(name, beta_2=beta_2)(t) for name in DRAWN}

    def draw(axes: Axes) -> None:
        _draw_factors(axes, t, factors, [STYLES[name].label for name in DRAWN])
        axes.set(xscale="log", xlim=(1, LAST))
        axes.axvspan(1, 4.5, color="#555555", alpha=0.15, linewidth=0)  # RAdam's momentum steps, whatever beta_2
        axes.legend(loc="upper left", bbox_to_anchor=(0.14, 1))

    return chart("factors", draw, "The three factors at one β₂")


def _draw_factors(axes: Axes, t: Any, factors: Mapping[str, Any], labels: Sequence[str]) -> None:
    for name, label in zip(DRAWN, labels, strict=True):
        axes.plot(t, factors[name], STYLES[name].dash, color=STYLES[name].colour, label=label)
    axes.set(xlabel="update t", ylabel=r"warmup factor $\omega_t$", ylim=(0, 1.05))


def draw_effective_periods(folder: pathlib.Path) -> None:
    """Writes effective_warmup.svg, .png, .pdf and .csv: the full updates that each method costs, over beta_2."""
    numbers = {"beta_2": BETAS, **{name: [period(name, beta_2) for beta_2 in BETAS] for name in DRAWN}}
    draw_and_save(folder, "effective_warmup", [_draw_periods], numbers, caption=COMPUTED)


def periods_chart() -> Chart:
    """The effective periods for the page."""
    return chart("periods", _draw_periods)


def _draw_periods(axes: Axes) -> None:
    across = 1 - np.array(BETAS)
    for name in DRAWN:
        style = STYLES[name]
        axes.plot(across, [period(name, beta) for beta in BETAS], style.dash, color=style.colour, label=style.label)
    axes.set(xscale="log", yscale="log", xlabel=r"$\beta_2$")
    axes.set(ylabel=r"effective period $\sum_t (1 - \omega_t)$, updates")
    axes.set_xlim(0.1, 1e-4)
    axes.set_xticks([0.1, 0.01, 0.001, 0.0001], ["0.9", "0.99", "0.999", "0.9999"])
    axes.fmt_xdata = lambda value: f"{1 - value:.4g}"
    axes.set_title("Effective warmup periods of the three methods")
    axes.legend(loc="upper left")


@functools.cache
def period(method: str, beta_2: float) -> float:
    """An effective warmup period, cached because a page shows most of them more than once."""
    return effective_warmup_period(method, beta_2=float(beta_2))
