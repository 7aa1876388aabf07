"""The paper's figure 3: effective warmup periods over beta_2, and the three factors at one beta_2."""

import pathlib

import numpy as np
from matplotlib.axes import Axes

from tfwarmup import effective_warmup_period, warmups
from trainers.figures.look import METHODS, STYLES, draw_and_save

# From 0.9 to 0.9999, evenly spaced in log(1 - beta_2).
BETAS = 1 - np.logspace(-1, -4, 61)
COMPUTED = "Computed from the formulas; no runs."


def draw_factors(folder: pathlib.Path, beta_2: float, updates: int) -> None:
    """Writes factors.svg, .png, .pdf and .csv: omega_t of the three methods at one beta_2."""
    t = np.arange(1, updates + 1)
    factors = {name: warmups.get(name, beta_2=beta_2)(t) for name in METHODS}
    periods = {name: effective_warmup_period(name, beta_2=beta_2) for name in METHODS}

    def draw(panels: list[Axes]) -> None:
        (axes,) = panels
        for name in METHODS:
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
        name: np.array([effective_warmup_period(name, beta_2=float(beta_2)) for beta_2 in BETAS]) for name in METHODS
    }

    def draw(panels: list[Axes]) -> None:
        (axes,) = panels
        for name in METHODS:
            style = STYLES[name]
            axes.plot(1 - BETAS, periods[name], style.dash, color=style.colour, label=style.label)
        axes.set(xscale="log", yscale="log", xlabel=r"$\beta_2$")
        axes.set(ylabel=r"effective period $\sum_t (1 - \omega_t)$, updates")
        axes.set_xlim(0.1, 1e-4)
        axes.set_xticks([0.1, 0.01, 0.001, 0.0001], ["0.9", "0.99", "0.999", "0.9999"])
        axes.set_title("Effective warmup periods of the three methods")
        axes.legend(loc="upper left")

    draw_and_save(folder, "effective_warmup", draw, {"beta_2": BETAS, **periods}, caption=COMPUTED)
