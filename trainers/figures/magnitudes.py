"""The paper's figure 2: the distribution of Adam's update magnitudes at a simulated local minimum."""

import pathlib

from matplotlib.axes import Axes

from tfwarmup.analysis.simulation import QUANTILES, Magnitudes
from trainers.figures.look import PLAIN, STYLES, draw_and_save, log_spaced, reference_line

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
