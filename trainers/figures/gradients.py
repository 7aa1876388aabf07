"""The paper's figure 1: gradient noise, correlation of the moments, and update magnitudes during training."""

import pathlib
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from trainers.analysis.findings import Series
from trainers.figures.look import PLAIN, draw_and_save, log_spaced, reference_line

PANELS = (
    ("gradient_cv_", "Coefficient of variation of the gradients", "standard deviation / |mean|"),
    ("moment_correlation", r"Correlation of $|m_t|$ and $\sqrt{v_t}$", "correlation"),
    ("update_", "Update magnitudes", r"|update|, units of $\alpha$"),
)
NOISY_FROM, SETTLED_AT, SETTLED_LEVEL = 50, 100, 0.15  # for the paper's network


def draw_gradients(
    folder: pathlib.Path, series: Series, caption: str = "One run.", name: str = "gradient_analysis"
) -> None:
    """Writes the figure as .svg, .png and .pdf, and its numbers as .csv."""
    shown = log_spaced(series)

    def draw(panels: list[Axes]) -> None:
        for axes, (column, title, label) in zip(panels, PANELS, strict=True):
            _draw_panel(axes, shown, column)
            axes.set(xscale="log", xlim=(1, max(2, shown["t"][-1])), xlabel="iteration t", ylabel=label)
            axes.set_title(title)
        noise, correlation, updates = panels
        _draw_noise_axis(noise)
        correlation.set_ylim(0, 1.05)
        reference_line(updates, f"the paper: {SETTLED_LEVEL} after {SETTLED_AT}", x=SETTLED_AT, y=SETTLED_LEVEL)
        updates.set_ylim(0, None)
        noise.legend(loc="upper left")
        updates.legend(loc="upper right")

    draw_and_save(folder, name, draw, series, caption=caption, panels=len(PANELS), width=11.5, height=3.7)


def _draw_panel(axes: Axes, series: Mapping[str, Any], name: str) -> None:
    t = series["t"]
    if f"{name}q25" in series:
        low, high = series[f"{name}q25"], series[f"{name}q75"]
        axes.fill_between(t, low, high, color=PLAIN, alpha=0.2, linewidth=0, label="25th to 75th percentile")
    axes.plot(t, series[name if name in series else f"{name}median"], color=PLAIN, label="median")


def _draw_noise_axis(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    reference_line(axes, f"the paper: above 1 from {NOISY_FROM} on", x=NOISY_FROM, y=1)
