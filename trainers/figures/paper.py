"""The paper's figures: gradients during training (1), update magnitudes at a minimum (2), warmups over beta_2 (3)."""

import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from tfwarmup import effective_warmup_period, warmups
from tfwarmup.analysis.simulation import QUANTILES, Magnitudes
from trainers.figures.look import PLAIN, draw_and_save, log_spaced, reference_line
from trainers.results.methods import DRAWN, STYLES
from trainers.results.records import Series

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


LONG_RUN = 0.153  # the paper's median, in units of alpha


def draw_magnitudes(folder: pathlib.Path, magnitudes: Magnitudes, warmup: str, caption: str = "") -> None:
    """Writes update_magnitudes.svg, .png, .pdf and .csv."""
    colour = PLAIN if warmup == "none" else STYLES[warmup].colour
    numbers = {name: getattr(magnitudes, name) for name in ("t", *QUANTILES)}
    shown = log_spaced(numbers)
    t = shown["t"]

    def draw(panels: list[Axes]) -> None:
        (axes,) = panels
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
        method = "Adam" if warmup == "none" else STYLES[warmup].label
        axes.set_title(f"Updates at a simulated local minimum: {method}")
        axes.legend(loc="best")

    draw_and_save(folder, "update_magnitudes", draw, numbers, caption=caption or "One simulation.")


# From 0.9 to 0.9999, evenly spaced in log(1 - beta_2).
BETAS = 1 - np.logspace(-1, -4, 61)
COMPUTED = "Computed from the formulas; no runs."


def draw_factors(folder: pathlib.Path, beta_2: float, updates: int) -> None:
    """Writes factors.svg, .png, .pdf and .csv: omega_t of the three methods at one beta_2."""
    t = np.arange(1, updates + 1)
    factors = {name: warmups.get(name, beta_2=beta_2)(t) for name in DRAWN}
    periods = {name: effective_warmup_period(name, beta_2=beta_2) for name in DRAWN}

    def draw(panels: list[Axes]) -> None:
        (axes,) = panels
        for name in DRAWN:
            style = STYLES[name]
            label = f"{style.label} (effective period {periods[name]:.1f})"
            axes.plot(t, factors[name], style.dash, color=style.colour, label=label)
        axes.set(xlabel="update t", ylabel=r"warmup factor $\omega_t$", xlim=(0, updates), ylim=(0, 1.05))
        axes.set_title(rf"Three warmups of Adam at $\beta_2$ = {beta_2:g}")
        axes.legend(loc="lower right")

    draw_and_save(folder, "factors", draw, {"t": t, **factors}, caption=COMPUTED)


def draw_effective_periods(folder: pathlib.Path) -> None:
    """Writes effective_warmup.svg, .png, .pdf and .csv: the full updates that each method costs, over beta_2."""
    periods = {
        name: np.array([effective_warmup_period(name, beta_2=float(beta_2)) for beta_2 in BETAS]) for name in DRAWN
    }

    def draw(panels: list[Axes]) -> None:
        (axes,) = panels
        for name in DRAWN:
            style = STYLES[name]
            axes.plot(1 - BETAS, periods[name], style.dash, color=style.colour, label=style.label)
        axes.set(xscale="log", yscale="log", xlabel=r"$\beta_2$")
        axes.set(ylabel=r"effective period $\sum_t (1 - \omega_t)$, updates")
        axes.set_xlim(0.1, 1e-4)
        axes.set_xticks([0.1, 0.01, 0.001, 0.0001], ["0.9", "0.99", "0.999", "0.9999"])
        axes.set_title("Effective warmup periods of the three methods")
        axes.legend(loc="upper left")

    draw_and_save(folder, "effective_warmup", draw, {"beta_2": BETAS, **periods}, caption=COMPUTED)
