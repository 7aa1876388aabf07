"""The paper's figure 3: effective warmup periods over beta_2, and the three factors at one beta_2."""

import pathlib

import numpy as np

from tfwarmup import effective_warmup_period, warmups
from trainers.figures.look import METHODS, STYLES, in_one_look, new_figure, save

# From 0.9 to 0.9999, evenly in log(1 - beta_2).
BETAS = 1 - np.logspace(-1, -4, 61)


@in_one_look
def draw_factors(folder: pathlib.Path, beta_2: float, updates: int) -> None:
    """factors.svg, .png, .csv: omega_t of the three methods at one beta_2."""
    t = np.arange(1, updates + 1)
    figure, (axes,) = new_figure()
    numbers = {"t": t}
    for name in METHODS:
        style, period = STYLES[name], effective_warmup_period(name, beta_2=beta_2)
        numbers[name] = warmups.get(name, beta_2=beta_2)(t)
        label = f"{style.label} (effective period {period:.1f})"
        axes.plot(t, numbers[name], style.dash, color=style.colour, label=label)
    axes.set(xlabel="update t", ylabel=r"warmup factor $\omega_t$", xlim=(0, updates), ylim=(0, 1.05))
    axes.set_title(rf"Three warmups of Adam at $\beta_2$ = {beta_2:g}")
    axes.legend(loc="lower right")
    save(folder, "factors", figure, numbers)


@in_one_look
def draw_effective_periods(folder: pathlib.Path) -> None:
    """effective_warmup.svg, .png, .csv: how much learning each method takes away, over beta_2."""
    figure, (axes,) = new_figure()
    numbers = {"beta_2": BETAS}
    for name in METHODS:
        style = STYLES[name]
        numbers[name] = np.array([effective_warmup_period(name, beta_2=float(beta_2)) for beta_2 in BETAS])
        axes.plot(1 - BETAS, numbers[name], style.dash, color=style.colour, label=style.label)
    axes.set(
        xscale="log", yscale="log", ylabel=r"effective period $\sum_t (1 - \omega_t)$, updates", xlabel=r"$\beta_2$"
    )
    axes.set_xlim(0.1, 1e-4)
    axes.set_xticks([0.1, 0.01, 0.001, 0.0001], ["0.9", "0.99", "0.999", "0.9999"])
    axes.set_title("Effective warmup periods of the three methods")
    axes.legend(loc="upper left")
    save(folder, "effective_warmup", figure, numbers)
