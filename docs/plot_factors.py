"""Draws the picture at the top of the README: the paper's three warmup factors at beta_2 = 0.999.

Command: `make figures`.
"""

import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from tfwarmup import effective_warmup_period
from tfwarmup.factors import rule

BETA_2 = 0.999
# Three colours that differ in lightness as well, with three dashes: readable in grey and by the colour-blind.
STYLES = {
    "untuned_linear": ("Untuned linear", "#0072B2", "-"),
    "untuned_exponential": ("Untuned exponential", "#D55E00", "--"),
    "radam": ("RAdam", "#1B1B1B", ":"),
}


def draw(folder: pathlib.Path) -> None:
    matplotlib.rcParams["svg.hashsalt"] = "tfwarmup"  # the same file at every run
    t = np.arange(1, 5001)
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for name, (label, colour, dash) in STYLES.items():
        period = effective_warmup_period(name, beta_2=BETA_2)
        omega = rule(name).bind(name, beta_2=BETA_2)(t)
        axes.plot(t, omega, dash, color=colour, linewidth=2, label=f"{label} (effective period {period:.1f})")
    axes.set(xlabel="update t", ylabel=r"warmup factor $\omega_t$", xlim=(0, 5000), ylim=(0, 1.05))
    axes.set_title(rf"Three warmups of Adam at $\beta_2$ = {BETA_2}", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(folder / "factors.svg", metadata={"Date": None})
    figure.savefig(folder / "factors.png", dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    draw(pathlib.Path(__file__).parent)
